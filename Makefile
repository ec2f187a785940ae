# SPDX-License-Identifier: Apache-2.0
#
#   make            everything          make demo     see it work
#   make install    DESTDIR= PREFIX=/usr/local; uninstall: the same again, out (install.mk)
#   make deb; make rpm; make wheel; make dist  packages, a tarball (packaging/packages.mk)
#   make check      all tests
#   make bench      what all of it costs, in build/bench.json; BASE=FILE: beside an earlier one
#   make check-nccl inside the real NCCL, on a GPU that is played; bench-nccl: the cost there
#   make gpu-check  what only a real GPU can tell; gpu-bundle: a folder to take to one
#   make check-systemd  packages built, and used in a booted system (root, mmdebstrap,
#                   systemd-container, debhelper)
#   make check-deb  packages built where only what they declare is (root, mmdebstrap,
#                   systemd-container, debhelper)
#   make check-wheel  the Python wheel, made for older systems and used in one (root, mmdebstrap)
#   make check-container  the container image, and jobs in containers (root, podman, mmdebstrap)
#   make check-upgrade  with jobs, daemons and command lines of older versions, built from
#                   their commits (FROM="...": which)
#   make check-launchers  what real launchers tell of jobs: Slurm, Open MPI, MPICH (root)
#   make bench-report  what it costs to judge the snapshots of up to ten thousand nodes
#   make check-prometheus  a real Prometheus collects for minutes
#   make bench-fleet  what /metrics of a thousand nodes costs
#   make check-nodes      a job of 32 nodes, explained from one place in three ways
#   make check-otlp       what OpenTelemetry's descriptions make of what is pushed (npm)
#   make check-trace      what Perfetto's trace_processor makes of a trace (npm)
#   make check-aarch64  built for 64-bit Arm, tested under emulation (cross.mk)
#   make bench-growth  how what the daemon costs grows (docs/lab/growth.svg)
#   make soak       the daemon's memory over ten million operations
#   make campaign   faults and clean runs by the hundred: what is found (docs/lab/campaign.md)
#   make fuzz       FUZZ_SECONDS=60 of looking for hostile input, each
#   make fuzz-coverage  how much of what reads foreign bytes the fuzz targets run through
#
# V=1 shows commands; SAN=address or SAN=thread builds beside, in build-$(SAN).
include config.mk

B := build$(if $(SAN),-$(SAN))
Q := $(if $(V),,@)

SANFLAGS_address := -fsanitize=address,undefined -fno-sanitize-recover=undefined
# Its fences are for readers in other processes, where it sees nothing anyway.
SANFLAGS_thread  := -fsanitize=thread -Wno-tsan
SANFLAGS_coverage := --coverage
SANFLAGS_fuzzer  := $(SANFLAGS_address) -fsanitize=fuzzer-no-link
SANFLAGS := $(if $(SAN),$(SANFLAGS_$(SAN)) -fno-omit-frame-pointer)

# Shared memory holds records under several types: no type-based aliasing.
CPPFLAGS += -Iinclude -I. -I$(B) -D_GNU_SOURCE -DNCCLINSP_VERSION='"$(VERSION)"'
# Between a sanitizer's checks gcc takes a pointer to a struct for one to its first
# member, and warns: the other builds warn of what there is.
ALLFLAGS  = -std=gnu11 -fno-strict-aliasing $(CFLAGS) $(if $(SAN),-w,$(WARN)) \
            $(if $(WERROR),-Werror) \
            $(SANFLAGS) -MMD -MP

# ---- dependencies --------------------------------------------------------
# A command, a file or a pkg-config module, and behind "=" the package of Debian
# and Ubuntu that brings it, where that has another name.
NEEDS := gcc g++ make pkg-config /usr/include/stdio.h=libc6-dev clang scdoc mandoc tmux curl jq \
         prove=perl jsonschema=python3-jsonschema pgrep=procps unshare=util-linux \
         /usr/lib/python3/dist-packages/yaml=python3-yaml bindfs check.pc=check \
         jansson.pc=libjansson-dev \
         libcurl.pc=libcurl4-openssl-dev libzstd.pc=libzstd-dev zstd zlib.pc=zlib1g-dev ncursesw.pc=libncurses-dev \
         $(if $(wildcard /usr/local/cuda*/lib*/libnccl.so.2),gdb) \
         $(if $(filter check check-nodes,$(MAKECMDGOALS)),dropbear=dropbear-bin ssh=openssh-client \
           valgrind otf2.pc=libopen-trace-format2-dev otf2-print=otf2-tools libbpf.pc=libbpf-dev /usr/sbin/bpftool=bpftool) \
         $(if $(filter check check-wheel,$(MAKECMDGOALS)),patchelf /usr/share/doc/python3-venv=python3-venv) \
         $(if $(filter check check-trace check-otlp,$(MAKECMDGOALS)),openssl node=nodejs npm) \
         $(if $(filter check-launchers,$(MAKECMDGOALS)),slurmctld slurmd srun=slurm-client \
           munged=munge mpirun.openmpi=openmpi-bin mpiexec.hydra=mpich) \
         $(if $(filter %aarch64,$(MAKECMDGOALS)),mmdebstrap qemu-aarch64-static=qemu-user-static \
           aarch64-linux-gnu-gcc=gcc-aarch64-linux-gnu)
APT := DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120

deps:
	@missing=$$(for need in $(NEEDS); do \
		what=$${need%%=*}; \
		case $$what in \
		*.pc) pkg-config --exists "$${what%.pc}" ;; \
		/*)   test -e "$$what" ;; \
		*)    command -v "$$what" ;; \
		esac >/dev/null 2>&1 || echo "$${need#*=}"; \
	done); \
	[ -z "$$missing" ] && exit; \
	if [ "$$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then \
		echo "  APT   "$$missing; \
		$(APT) update && $(APT) install --no-install-recommends -y $$missing >/dev/null; \
	else \
		echo "Missing; install these (names of Debian and Ubuntu):" $$missing; exit 1; \
	fi

# Engines that users run, for the tests that run against them.  They are unpacked, not installed:
# their packages start servers.  Where there is no apt those tests are skipped.
ENGINES := prometheus victoria-metrics prometheus-alertmanager
engines:
	@missing=$$(PATH=$$PATH:build/engines/usr/bin; for engine in $(ENGINES); do \
		command -v $$engine >/dev/null || echo $$engine; done); \
	[ -z "$$missing" ] && exit; \
	echo "  GET   "$$missing; mkdir -p build/engines && cd build/engines && \
	{ apt-get -qq download $$missing || { $(APT) update; apt-get -qq download $$missing; }; } 2>/dev/null && \
	for package in *.deb; do dpkg -x $$package . && rm $$package; done || \
	echo "Not to be had here: their tests are skipped."

comma := ,
pc = $(shell pkg-config --$(1) $(2) 2>/dev/null)
CLANG := clang
DAEMON_LIBS := jansson libzstd
CLI_LIBS    := libcurl jansson ncursesw libzstd zlib

# ---- what there is -------------------------------------------------------
objs = $(patsubst %.c,$(B)/obj/%.o,$(wildcard $(addsuffix /*.c,$(1))))
# From top to bottom: each calls only those behind it.
ROOMS_OF_DAEMON := ncclinspd $(addprefix ncclinspd/,serve config metrics otlp levels findings keep \
	around compare find sums base) judge tables rows
ROOMS_OF_READER := reader $(addprefix reader/,join read time base)
ROOMS_OF_CLI    := cli $(addprefix cli/,top trace export run offline page doctor view kernels common table base)
archives = $(foreach r,$(1),$(B)/lib/$(subst /,-,$(r)).a)

PLUGIN := $(B)/libnccl-profiler-insp.so
DAEMON := $(B)/ncclinspd
CLI    := $(B)/ncclinsp
# Optional: built where there is what it is made with.
PROBE  := $(if $(SAN)$(EMULATOR),,$(shell PATH=$$PATH:/usr/sbin; pkg-config --exists 'libbpf >= 1.0' && \
	command -v bpftool $(CLANG) >/dev/null && echo $(B)/ncclinsp-probe))
SIM    := $(B)/nccl-sim
REPLAY := $(B)/nccl-replay
ANSWERS := $(B)/api-answers
FLOOD  := $(B)/nccl-flood
SKEWED_CLOCK := $(B)/skewed-clock.so
FAILING := $(B)/failing.so
SENDING := $(B)/sending.so
PLAYED_NVML := $(patsubst %,$(B)/%/libnvidia-ml.so.1,nvml nvml-old nvml-bare)
RECORD := $(B)/libnccl-profiler-record.so
CHAIN  := $(B)/libnccl-profiler-insp-chain.so
NVTX   := $(B)/libncclinsp-nvtx.so
LIBRARY := $(B)/libncclinsp.so.0
STATIC_LIBRARY := $(B)/libncclinsp.a
MAN    := $(patsubst man/%.scd,$(B)/man/%,$(wildcard man/*.scd))

# The link lines are the dependency rules: under -z defs, a call into a room
# that is not listed here does not link.
PLUGIN_OBJS := $(call objs,plugin)    $(B)/obj/shmring/producer.o
READER_LINE := $(call archives,$(ROOMS_OF_READER)) $(B)/obj/shmring/consumer.o $(call archives,util)
DAEMON_LINE := $(call archives,$(ROOMS_OF_DAEMON)) $(READER_LINE)
RECORD_OBJS := $(call objs,record)    $(B)/obj/shmring/producer.o
CHAIN_OBJS  := $(call objs,chain) $(patsubst %,$(B)/obj/plugin/%.o,level loaded)
NVTX_OBJS   := $(call objs,nvtx) $(B)/obj/plugin/loaded.o
# A segment's operations are summed up, and its rows written, as the daemon does it.
CLI_LINE    := $(call archives,$(ROOMS_OF_CLI) ncclinspd/sums judge tables rows) $(READER_LINE)
SIM_MAINS   := $(B)/obj/tests/sim/nccl_sim.o $(B)/obj/tests/sim/nccl_replay.o
SIM_OBJS    := $(filter-out $(SIM_MAINS),$(call objs,tests/sim)) \
	       $(B)/obj/plugin/adapt.o $(B)/obj/record/shape.o

.PHONY: all deps engines check demo bench bench-growth soak clean
.DEFAULT_GOAL := all
all: $(if $(SAN),,$(PLUGIN) $(RECORD) $(CHAIN) $(NVTX) $(LIBRARY) $(STATIC_LIBRARY) $(SKEWED_CLOCK) $(FAILING) $(SENDING)) $(PLAYED_NVML) $(DAEMON) $(CLI) $(PROBE) $(SIM) $(REPLAY) $(ANSWERS) $(FLOOD) $(MAN)

# ---- build ---------------------------------------------------------------
# A thread's lane by descriptor: cheap, and no allocation when the process has loaded
# more libraries since.  A descriptor's slow path may clobber vector registers in C
# libraries older than 2.40 (glibc bug 31372), so the plugin has none in use.  Arm has
# descriptors by default, clang learnt them late.  Gcc before 12 refuses any header's inline
# function that returns a double, called or not: it gets none.
TLSDESC := -mtls-dialect=gnu2 -mgeneral-regs-only -D__NO_INLINE__
TLSDESC := $(shell $(CC) $(TLSDESC) -x c -c /dev/null -o /dev/null 2>/dev/null && echo $(TLSDESC))

$(B)/obj/plugin/%.o $(B)/obj/record/%.o $(B)/obj/chain/%.o $(B)/obj/nvtx/%.o $(B)/obj/shmring/producer.o: ALLFLAGS += -fPIC \
	-fvisibility=hidden -fno-stack-protector -U_FORTIFY_SOURCE $(TLSDESC)
# They are in the programs and in the library.
LIBRARY_OBJS := $(call objs,$(ROOMS_OF_READER) util) $(B)/obj/shmring/consumer.o
$(LIBRARY_OBJS): ALLFLAGS += -fPIC -fvisibility=hidden
# What no event goes through is small rather than fast.
$(patsubst %,$(B)/obj/plugin/%.o,environment gpu identity level loaded orders process room \
	steer sweep): ALLFLAGS += -Os
$(B)/obj/tests/%.o $(B)/obj/bench/%.o: CPPFLAGS += -DB='"$(abspath $(B))"'

# Fields and columns are written in schema/ alone.  A header is only touched when it changes.
SCHEMA_MADE := $(B)/schema/made
$(SCHEMA_MADE): $(wildcard schema/*)
	@mkdir -p $(@D)
	@echo "  GEN   $(@D)"
	$(Q)schema/generate.sh headers $(B) && touch $@

$(B)/schema/%.h: $(SCHEMA_MADE)
	@:

$(call objs,$(ROOMS_OF_DAEMON) $(ROOMS_OF_CLI) util) \
$(patsubst %.c,$(B)/obj/%.o,$(wildcard tests/*.c tests/fuzz/*.c)): | $(SCHEMA_MADE)

# The style and the script of a page, as C strings.
$(B)/page/%.h: cli/page/%
	@mkdir -p $(@D)
	@echo "  GEN   $@"
	$(Q)sed 's/[\\"]/\\&/g; s/.*/"&\\n"/' $< >$@.tmp && mv $@.tmp $@

$(B)/obj/cli/page/page.o: $(B)/page/page.css.h $(B)/page/page.js.h

# The pages in docs/ that are made of it, anew.
.PHONY: schema
schema:
	$(Q)schema/generate.sh pages docs

$(B)/obj/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CC) $(CPPFLAGS) $(ALLFLAGS) $(call pc,cflags,$(DAEMON_LIBS) $(CLI_LIBS) check) -c $< -o $@

# C libraries before 2.34 have dlopen() in another library, which its weak symbols alone do not bring.
DL := $(if $(filter /%,$(shell $(CC) -print-file-name=libdl.so)),-Wl$(comma)--no-as-needed -ldl)
link_plugin = $(CC) $(LDFLAGS) $(SANFLAGS) -shared -o $@ $(filter %.o,$^) \
	-Wl,--version-script=$(filter %.map,$^) -Wl,-z,nodelete -Wl,-z,defs -Wl,-z,now \
	-Wl,--as-needed -Wl,-soname,$(@F) -Wl,-O1 -Wl,-z,noseparate-code $(DL)

$(PLUGIN): $(PLUGIN_OBJS)
$(RECORD): $(RECORD_OBJS)
$(CHAIN): $(CHAIN_OBJS) chain/chain.map
$(NVTX): $(NVTX_OBJS) nvtx/nvtx.map
$(PLUGIN) $(RECORD): plugin/plugin.map
$(PLUGIN) $(RECORD) $(CHAIN) $(NVTX):
	@echo "  LD    $@"
	$(Q)$(link_plugin)

$(LIBRARY): $(B)/obj/reader/inspect.o $(READER_LINE) reader/ncclinsp.map
	@echo "  LD    $@"
	$(Q)$(CC) $(LDFLAGS) $(SANFLAGS) -shared -o $@ $(filter %.o %.a,$^) \
		-Wl,--version-script=$(filter %.map,$^) -Wl,-z,defs -Wl,-z,now -Wl,-z,text -Wl,--as-needed \
		-Wl,-soname,$(@F) -Wl,-O1 -lm

# One object, in which nothing but the public functions can clash with the names of others.
$(STATIC_LIBRARY): $(B)/obj/reader/inspect.o $(READER_LINE)
	@echo "  AR    $@"
	$(Q)$(CC) -r -nostdlib -o $@.o $^ && $(OBJCOPY) --localize-hidden $@.o
	$(Q)rm -f $@ && ar rcs $@ $@.o && rm $@.o

# Links each archive whole with those behind it, without main(): the program's own link lets
# a call upwards pass where the object it leads to is in the program already.
link_one_way = set -- $(1); while [ $$\# -gt 0 ]; do room=$$1; shift; \
	$(CC) $(LDFLAGS) $(SANFLAGS) -Wl,--defsym=main=0 -o /dev/null \
		-Wl,--whole-archive $$room -Wl,--no-whole-archive "$$@" -Wl,-z,defs $(2) || { \
		echo "A room calls one that stands before it in the list of rooms"; exit 1; }; done

$(DAEMON): $(B)/obj/ncclinspd/main.o $(DAEMON_LINE)
	@echo "  LD    $@"
	$(Q)$(call link_one_way,$(DAEMON_LINE),$(call pc,libs,$(DAEMON_LIBS)) -ldl -lm -pthread)
	$(Q)$(CC) $(LDFLAGS) $(SANFLAGS) -o $@ $^ -Wl,-z,defs $(call pc,libs,$(DAEMON_LIBS)) -ldl -lm -pthread

$(CLI): $(B)/obj/cli/main.o $(CLI_LINE)
	@echo "  LD    $@"
	$(Q)$(call link_one_way,$(CLI_LINE),$(call pc,libs,$(CLI_LIBS)) -ldl -lm -pthread)
	$(Q)$(CC) $(LDFLAGS) $(SANFLAGS) -o $@ $^ -Wl,-z,defs $(call pc,libs,$(CLI_LIBS)) -ldl -lm -pthread

# What runs in the kernel, whatever kernel it is: its structs are looked up when it is loaded.
BPF_ARCH := $(if $(findstring x86_64,$(shell $(CC) -dumpmachine)),x86,arm64)
$(B)/probe/%.skel.h: probe/kernel/%.c $(wildcard probe/kernel/*.h probe/*.h)
	@mkdir -p $(@D)
	@echo "  BPF   $<"
	$(Q)$(CLANG) -target bpf -D__TARGET_ARCH_$(BPF_ARCH) -g -O2 -Wall -Wextra -Wno-unused-parameter \
		$(if $(WERROR),-Werror) -I. \
		-idirafter /usr/include/$(shell $(CC) -print-multiarch 2>/dev/null) -c $< -o $(@D)/$*.bpf.o
	$(Q)PATH=$$PATH:/usr/sbin; bpftool gen object $(@D)/$*.o $(@D)/$*.bpf.o && \
		bpftool gen skeleton $(@D)/$*.o name $*_bpf >$@.tmp && mv $@.tmp $@

$(B)/obj/probe/watching.o: $(B)/probe/watch.skel.h
$(B)/obj/probe/attach.o: $(B)/probe/attach.skel.h

$(B)/ncclinsp-probe: $(call objs,probe) $(B)/lib/util.a
	@echo "  LD    $@"
	$(Q)$(CC) $(LDFLAGS) $(SANFLAGS) -o $@ $^ -Wl,-z,defs $(call pc,libs,libbpf) -lm

$(SIM): $(B)/obj/tests/sim/nccl_sim.o $(SIM_OBJS)
$(REPLAY): $(B)/obj/tests/sim/nccl_replay.o $(SIM_OBJS)
$(SIM) $(REPLAY):
	@echo "  LD    $@"
	$(Q)$(CC) $(LDFLAGS) $(SANFLAGS) -o $@ $^ $(call pc,libs,jansson) -ldl -lm -pthread

$(ANSWERS): $(B)/obj/tests/top/answers.o
$(FLOOD): $(B)/obj/tests/flood/flood.o
$(ANSWERS) $(FLOOD):
	@echo "  LD    $@"
	$(Q)$(CC) $(SANFLAGS) -o $@ $^

$(SKEWED_CLOCK): $(B)/obj/tests/preload/skewed_clock.o
$(FAILING): $(B)/obj/tests/preload/failing.o
$(SENDING): $(B)/obj/tests/preload/sending.o
$(SKEWED_CLOCK) $(FAILING) $(SENDING):
	@echo "  LD    $@"
	$(Q)$(CC) $(LDFLAGS) -shared -o $@ $^ -Wl,-z,defs -ldl -pthread

$(B)/obj/tests/preload/%.o: ALLFLAGS += -fPIC

# A test's own code is built quickly rather than fast: it is a third of all that is compiled.
$(B)/obj/tests/test_%.o: ALLFLAGS += -O0
$(B)/obj/tests/test_%_cost.o: ALLFLAGS += $(filter -O%,$(CFLAGS))

# Without a sanitizer: they are loaded into programs that have one.
$(B)/nvml-old/%: CPPFLAGS += -DOLD
$(B)/nvml-bare/%: CPPFLAGS += -DBARE
$(PLAYED_NVML): tests/preload/nvml.c
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CPPFLAGS) -std=gnu11 $(CFLAGS) $(WARN) $(LDFLAGS) -fPIC -shared -o $@ $< \
		-Wl,-soname,$(@F)

# In the order in which they need each other.
ABI := $(patsubst %,include/nci/%.h,abi record token events lane segment control) \
       include/nccl/profiler.h

$(B)/obj/man/nci-abi.7.scd: man/nci-abi.7.scd man/abi.awk $(ABI)
	@mkdir -p $(@D)
	$(Q)awk -f man/abi.awk $(ABI) $< >$@.tmp && mv $@.tmp $@

WORDS := $(B)/obj/man/words
$(WORDS): $(addprefix $(B)/obj/,man/words.o util/words.o util/glossary.o)
	@echo "  LD    $@"
	$(Q)$(CC) $(SANFLAGS) -o $@ $^

$(B)/obj/man/ncclinsp-findings.7.scd: man/ncclinsp-findings.7.scd $(WORDS)
	@mkdir -p $(@D)
	$(Q)$(EMULATOR) $(WORDS) <$< >$@.tmp && mv $@.tmp $@

# Pages with lines @columns and @metrics.
SCHEMA_MAN := $(shell grep -lE '^@(columns|metrics) ' man/*.scd)
$(SCHEMA_MAN:%=$(B)/obj/%): $(B)/obj/man/%: man/% $(wildcard schema/*) util/words.c util/glossary.c
	@mkdir -p $(@D)
	$(Q)awk -v make=page -f schema/generate.awk schema/*.schema util/words.c util/glossary.c \
		$< >$@.tmp && mv $@.tmp $@

$(B)/man/ncclinsp-findings.7: $(B)/obj/man/ncclinsp-findings.7.scd
$(SCHEMA_MAN:man/%.scd=$(B)/man/%): $(B)/man/%: $(B)/obj/man/%.scd
$(B)/man/nci-abi.7: $(B)/obj/man/nci-abi.7.scd
$(B)/man/%: man/%.scd
	@mkdir -p $(@D)
	@echo "  MAN   $@"
	$(Q)scdoc <$(lastword $^) >$@.tmp && mv $@.tmp $@

$(B)/tests/abi_fields.h: man/abi.awk $(ABI)
	@mkdir -p $(@D)
	$(Q)awk -f man/abi.awk $(ABI) >$@.tmp && mv $@.tmp $@

$(B)/obj/tests/test_abi.o: $(B)/tests/abi_fields.h
$(B)/obj/tests/test_abi.o: CPPFLAGS += -I$(B)

# ---- tests ---------------------------------------------------------------
# A test program is tests/test_<module>.c.  It links against every room, each an
# archive, so that it pulls in what it calls and nothing else.  What else lies in
# tests/ is shared by them.
ROOMS := tests tests/sim plugin record chain $(ROOMS_OF_CLI) $(ROOMS_OF_DAEMON) \
	$(ROOMS_OF_READER) shmring util
room_objs = $(filter-out $(addprefix $(B)/obj/,ncclinspd/main.o cli/main.o tests/test_%.o) \
		$(SIM_MAINS),$(call objs,$(1)))
ARCHIVES := $(call archives,$(ROOMS))

define archive_rule
$(call archives,$(1)): $(call room_objs,$(1))
	@mkdir -p $$(@D)
	@rm -f $$@
	$(Q)ar rcs $$@ $$^
endef
$(foreach r,$(ROOMS),$(eval $(call archive_rule,$(r))))

TESTS := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/test_*.c))
SYSTEM_TESTS := $(wildcard tests/system/test_*.sh)

$(B)/tests/%: $(B)/obj/tests/%.o $(ARCHIVES)
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(SANFLAGS) -o $@ $(filter %.o,$^) $(ARCHIVES) \
		$(call pc,libs,check $(DAEMON_LIBS) $(CLI_LIBS)) -ldl -lm -pthread

# Two libraries have the names that NCCL looks for: this one tests the other.
$(B)/tests/test_record $(B)/tests/test_record_replay: $(B)/obj/record/entry.o

# NVIDIA's header of NVTX, where there is one.
NVTX_HEADERS := $(firstword $(wildcard /usr/local/cuda*/include/nvtx3))
$(B)/obj/tests/test_nvtx.o: CPPFLAGS += $(NVTX_HEADERS:%/nvtx3=-isystem %)

# Libraries that are played, for the test to load.
$(B)/tests/test_sensors: | $(PLAYED_NVML)

# What the benchmarks play is counted there.
$(B)/tests/test_plugin_cost: $(B)/obj/bench/stream.o
$(B)/tests/test_pipeline_cost: $(B)/obj/bench/feed.o

# A fuzz target is tests/fuzz/fuzz_<input>.c with its corpus/<input>/.  With the
# plain driver it is one more test: the corpus, then a short random run.
FUZZ := $(patsubst tests/fuzz/fuzz_%.c,$(B)/fuzz/fuzz_%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_SECONDS := 60

FUZZ_MAIN := driver
ifeq ($(SAN),fuzzer)
FUZZ_MAIN := large
FUZZ_LINK := -fsanitize=fuzzer $(patsubst %,-Wl$(comma)--wrap=%,malloc calloc aligned_alloc realloc free)
endif

# Inputs that are JSON are changed as JSON.
FUZZ_JSON := trace answers snapshots kernels
$(patsubst %,$(B)/fuzz/fuzz_%,$(FUZZ_JSON)): $(B)/obj/tests/fuzz/json_mutator.o
$(B)/fuzz/fuzz_answers $(B)/fuzz/fuzz_snapshots: $(B)/obj/tests/fuzz/run_command.o
$(B)/fuzz/fuzz_segment $(B)/fuzz/fuzz_library: $(B)/obj/tests/fuzz/patched.o

$(B)/fuzz/fuzz_%: $(B)/obj/tests/fuzz/fuzz_%.o $(B)/obj/tests/fuzz/$(FUZZ_MAIN).o $(ARCHIVES)
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(FUZZ_LINK) $(SANFLAGS) -o $@ $(filter %.o,$^) $(ARCHIVES) \
		$(call pc,libs,check $(DAEMON_LIBS) $(CLI_LIBS)) -ldl -lm -pthread

# Only what starts threads has races to find.
THREADED := $(patsubst tests/%.c,$(B)-thread/tests/%,$(shell grep -l pthread_create tests/test_*.c))
CHECKED  := $(TESTS) $(patsubst $(B)/%,$(B)-address/%,$(TESTS) $(FUZZ)) $(THREADED)
JOBS     := $(shell nproc)
submake   = $(MAKE) --no-print-directory $(if $(V),,-s) \
	$(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(JOBS))

.PHONY: tests fuzz-targets fuzz fuzz-coverage
tests: $(TESTS)
fuzz-targets: $(FUZZ)

PROVE     = B=$(abspath $(B)) prove --failures --comments --exec tests/tap.sh \
	--statefile=$(B)/prove

# Every build first, so that what prove counts is the last thing to be read.  Tests with
# real processes are long: they begin.  What fails beside others is run again, alone and named,
# at most twice; what a sanitizer has built gets no second chance.  Clang is here for its
# warnings only, and the address sanitizer for what it sees: neither needs to be fast.
check: deps engines
	+@$(submake) B=$(B) all tests $(addprefix $(B)/bench/bench_,answer drain pipeline soak)
	+@$(submake) B=$(B)-clang CC=clang CFLAGS=-O0 all tests
	+@$(submake) B=$(B)-address SAN=address CFLAGS='-O1 -g1' tests fuzz-targets $(B)-address/ncclinspd
	+@$(submake) B=$(B)-thread SAN=thread $(THREADED)
	+@$(build_nccl)
	@rm -f $(B)/prove
	@$(PROVE) -j$$(tests/at_once.sh $(JOBS)) --state=save \
		$(SYSTEM_TESTS) $(NCCL_TESTS) $(CHECKED) || { \
	failed=$$($(PROVE) --state=failed --dry) && [ -n "$$failed" ] && \
	! echo "$$failed" | grep -E '^$(B)-(address|thread)/' && \
	echo "Failed beside others, once more alone:" $$failed && \
	{ $(PROVE) --state=failed,save || $(PROVE) --state=failed,save; }; }

# Files that a target writes lie in memory.
FUZZ_ENV := TMPDIR=$$([ -w /dev/shm ] && echo /dev/shm || echo /tmp)

fuzz: deps
	+@$(submake) B=$(B)-fuzzer SAN=fuzzer CC=clang fuzz-targets
	@for f in $(notdir $(FUZZ)); do \
		mkdir -p $(B)-fuzzer/corpus/$$f; \
		$(FUZZ_ENV) $(B)-fuzzer/fuzz/$$f -max_total_time=$(FUZZ_SECONDS) -timeout=10 \
			-artifact_prefix=$(B)-fuzzer/$$f- \
			$(B)-fuzzer/corpus/$$f tests/fuzz/corpus/$${f#fuzz_} || exit 1; \
	done

# How much of what reads foreign bytes the corpus and a moment's mutations run through.
FUZZ_PARSERS := reader/read/segment.c reader/read/life.c reader/inspect.c ncclinspd/find/cgroup.c \
	ncclinspd/find/mounts.c reader/base/proc.c reader/read/decode.c \
	reader/read/slots.c shmring/consumer.c ncclinspd/serve/http.c \
	ncclinspd/serve/serve_query.c ncclinspd/serve/serve_fields.c \
	ncclinspd/serve/serve_target.c ncclinspd/serve/serve_level_put.c \
	ncclinspd/serve/serve_phase.c:phase_read_member,phase_keep_name,phase_set_all,serve_put_phase \
	ncclinspd/config/config_file.c ncclinspd/config/config_rows.c \
	ncclinspd/config/config.c:reading_take_line,reading_on_line \
	ncclinspd/levels/kept.c:kept_checksum_of,kept_parse,kept_read \
	ncclinspd/levels/marks.c:text_is_terminated,mark_is_sound,marks_take,marks_new \
	ncclinspd/levels/marks.c:mark_restore,marks_appeared \
	ncclinspd/levels/control.c:wishes_take,control_parse_wishes \
	ncclinspd/levels/wishes.c:wish_is_sound \
	ncclinspd/findings/baseline.c:baseline_is_sound,baselines_parse \
	util/procstat.c util/utf8.c util/zst.c \
	util/text.c:code_width,code_decode,text_width,text_fit,text_parse_duration \
	util/scan.c rows/read.c cli/base/intake.c cli/offline/offline.c cli/offline/shots.c cli/offline/hangs.c \
	cli/offline/stragglers.c cli/offline/flight.c cli/base/pickle.c cli/trace/trace_line.c cli/trace/trace_file.c plugin/orders.c:orders_read,orders_apply

fuzz-coverage: deps
	+@$(submake) B=$(B)-coverage SAN=coverage CFLAGS='-O1 -g1' fuzz-targets
	@find $(B)-coverage -name '*.gcda' -delete
	@for f in $(notdir $(FUZZ)); do $(FUZZ_ENV) $(B)-coverage/fuzz/$$f >/dev/null || exit 1; done
	@tests/fuzz/coverage.sh $(B)-coverage/obj $(FUZZ_PARSERS)

# ---- the real NCCL, without a GPU ----------------------------------------------
# tests/nccl/ is built where find.sh finds a libnccl: a CUDA that is played, with the
# layouts of that library, and programs on both.
NCCL := $(B)/nccl
nccl_objs = $(patsubst %,$(NCCL)/%.o,$(1))
NCCL_FAKE := $(call nccl_objs,device memory stream driver kernel conn gpu patch patience)
NCCL_JOB  := $(call nccl_objs,world operation switch calls)
NCCL_PROGRAMS := $(NCCL)/nccl-job $(NCCL)/nccl-cost

$(NCCL)/%.o: tests/nccl/%.c $(NCCL)/layout.h
	@echo "  CC    $<"
	$(Q)$(CC) $(CPPFLAGS) -I$(NCCL) $(ALLFLAGS) -fPIC -fvisibility=hidden -c $< -o $@

$(NCCL)/layout.h: FORCE
	$(Q)tests/nccl/layout.sh "$$(tests/nccl/find.sh)" $@

$(NCCL)/libnvidia-ml.so.1: $(NCCL)/nvml.o
	@echo "  LD    $@"
	$(Q)$(CC) -shared -o $@ $^ -Wl,-soname,$(@F) -Wl,-z,defs

$(NCCL)/libfake-cuda.so: $(NCCL_FAKE) $(NCCL)/libnvidia-ml.so.1
	@echo "  LD    $@"
	$(Q)$(CC) -shared -o $@ -Wl,--no-as-needed $^ -Wl,-soname,$(@F) -Wl,-z,defs \
		-Wl,-rpath,'$$ORIGIN' -ldl -pthread

$(NCCL_PROGRAMS): $(NCCL)/nccl-%: $(NCCL)/%.o $(NCCL_JOB) $(NCCL)/libfake-cuda.so
	@echo "  LD    $@"
	$(Q)lib=$$(tests/nccl/find.sh) && $(CC) -o $@ $^ "$$lib" -Wl,-rpath,'$$ORIGIN' \
		-Wl,-rpath,"$$(dirname "$$lib")" -Wl,--allow-shlib-undefined -pthread

# The plugin with one of its tables, which NCCL calls through translations of its own.
NCCL_OLD := $(foreach v,1 2 3 4,$(NCCL)/v$(v)/$(notdir $(PLUGIN)))

$(NCCL)/v%/plugin.map:
	@mkdir -p $(@D)
	@echo '{ global: ncclProfiler_v$*; local: *; };' >$@

$(NCCL_OLD): $(NCCL)/v%/$(notdir $(PLUGIN)): $(NCCL)/v%/plugin.map $(PLUGIN_OBJS)
	@echo "  LD    $@"
	$(Q)$(link_plugin)

# The tests themselves say why they are skipped.
build_nccl = if tests/nccl/find.sh >/dev/null; then $(submake) B=$(B) nccl; fi
NCCL_TESTS := $(wildcard tests/nccl/test_*.sh)

.PHONY: FORCE nccl check-nccl bench-nccl
nccl: $(NCCL_PROGRAMS) $(NCCL_OLD) $(B)/gpu/gpu-job $(B)/gpu/libnccl-profiler-empty.so

check-nccl: deps
	+@$(submake) B=$(B) all
	+@$(build_nccl)
	@B=$(abspath $(B)) prove -j$(JOBS) --failures --comments --exec tests/tap.sh $(NCCL_TESTS)

bench-nccl: deps
	@tests/nccl/find.sh >/dev/null || { tests/nccl/find.sh; exit 1; }
	+@$(submake) B=$(B) all nccl
	@B=$(abspath $(B)) tests/nccl/cost.sh

# ---- another version's format ---------------------------------------------------
# The plugin and the daemon as the next major version of the format would have them, for
# tests of what an upgrade leaves behind.  Only what names the version differs.
OTHER := $(B)/other-abi
OTHER_OBJS := $(patsubst %.c,$(B)/obj/%.o,$(shell grep -lr --include='*.c' NCI_ABI_MAJOR shmring reader ncclinspd))
other_objs = $(patsubst $(B)/obj/%,$(OTHER)/obj/%,$(filter $(OTHER_OBJS),$(1))) \
	$(filter-out $(OTHER_OBJS),$(1))

$(OTHER)/include/nci/abi.h: include/nci/abi.h
	@mkdir -p $(@D)
	$(Q)sed -e 's/^#define NCI_ABI_MAJOR.*/#define NCI_ABI_MAJOR 3/' $< >$@

$(OTHER)/obj/%.o: %.c $(OTHER)/include/nci/abi.h | $(SCHEMA_MADE)
	@mkdir -p $(@D)
	@echo "  CC    $< (other ABI)"
	$(Q)$(CC) -I$(OTHER)/include $(CPPFLAGS) $(ALLFLAGS) -fPIC -fvisibility=hidden \
		$(TLSDESC) -c $< -o $@

$(OTHER)/$(notdir $(PLUGIN)): $(call other_objs,$(PLUGIN_OBJS)) plugin/plugin.map
	@echo "  LD    $@"
	$(Q)$(link_plugin)

$(OTHER)/ncclinspd: $(call other_objs,$(call objs,$(ROOMS_OF_DAEMON) $(ROOMS_OF_READER) util) $(B)/obj/shmring/consumer.o)
	@echo "  LD    $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -Wl,-z,defs $(call pc,libs,$(DAEMON_LIBS)) -ldl -lm -pthread

.PHONY: other-abi
other-abi: $(OTHER)/$(notdir $(PLUGIN)) $(OTHER)/ncclinspd

# ---- a real GPU --------------------------------------------------------------
# gpu-job is linked with neither NCCL nor CUDA: a call finds what has been loaded by
# then, so it must not be looked for at the start.
GPU := $(B)/gpu
GPU_OBJS := $(filter-out %/empty.o,$(call objs,tests/gpu)) \
	$(patsubst %.c,$(B)/obj/%.o,$(wildcard tests/nccl/world.c tests/nccl/operation.c))
GPU_PARTS := $(GPU)/gpu-job $(GPU)/libnccl-profiler-empty.so

$(GPU)/gpu-job: $(GPU_OBJS)
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) -o $@ $^ -rdynamic -Wl,-z,lazy -Wl,--unresolved-symbols=ignore-in-object-files \
		-ldl -pthread
	$(Q)! nm -u $@ | grep -vE '@| w | U (cuda|nccl)[A-Z]'

$(GPU)/libnccl-profiler-empty.so: $(B)/obj/tests/gpu/empty.o $(B)/obj/plugin/level.o $(B)/obj/plugin/environment.o
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) -shared -o $@ $^ -Wl,-z,defs -Wl,-soname,$(@F)

$(B)/obj/tests/gpu/empty.o: ALLFLAGS += -fPIC -fvisibility=hidden

.PHONY: gpu-bundle gpu-check
gpu-bundle: deps
	+@$(submake) B=$(B) all $(GPU_PARTS)
	@tests/gpu/bundle.sh $(B) $(B)/gpu-bundle

gpu-check: gpu-bundle
	@rm -rf $(B)/gpu-results
	@$(B)/gpu-bundle/run.sh $(B)/gpu-results || [ $$? -eq 77 ]

# The pictures in docs/screens, anew: look at each.
.PHONY: screenshots
screenshots: all
	@B=$(abspath $(B)) tests/screenshots.sh docs/screens

# ---- bench -------------------------------------------------------------------
# A benchmark is bench/bench_<what>.c; what else lies in bench/ is shared by them.
# Their symbols win over the C library's, for what they count.
BENCHES := $(patsubst %.c,$(B)/%,$(wildcard bench/bench_*.c))
BENCH_SHARED := $(filter-out $(B)/obj/bench/bench_%,$(call objs,bench))

$(B)/bench/%: $(B)/obj/bench/%.o $(BENCH_SHARED) $(ARCHIVES)
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(SANFLAGS) -o $@ $(filter %.o,$^) $(ARCHIVES) \
		-Wl,--export-dynamic $(call pc,libs,check $(DAEMON_LIBS) $(CLI_LIBS)) -ldl -lm -pthread

bench: deps
	+@$(submake) B=$(B) all $(BENCHES)
	@B=$(B) BASE=$(BASE) bench/bench.sh

# How what the daemon costs grows, with a picture.
bench-growth: deps
	+@$(submake) B=$(B) all $(B)/bench/bench_load
	@B=$(abspath $(B)) bench/growth.sh docs/lab/growth.svg

# The daemon's memory over ten million operations.
soak: deps
	+@$(submake) B=$(B) $(B)/bench/bench_soak
	@$(B)/bench/bench_soak

# ---- demo --------------------------------------------------------------------
demo: deps
	+@$(submake) B=$(B) all
	@B=$(abspath $(B)) tests/demo.sh

# ---- faults in numbers -----------------------------------------------------------
REAL_KINDS := '^(late 5|late two$$|slow stage|everybody|never|order|type|killed|stopped|deadlock|paused|stuck net|clean: (steady|jitter|checkpoints))'
# The jobs that two cores have room for at once.
REAL_JOBS := '^(dp|moe|pipe)$$'
.PHONY: campaign
campaign: deps
	+@$(submake) B=$(B) all
	@B=$(abspath $(B)) tests/campaign/campaign.sh -b $(CAMPAIGN)
	@$(if $(CAMPAIGN),,B=$(abspath $(B)) tests/campaign/campaign.sh -b -s 45 -n 4 -c 0 -k '^slow stage$$')
	@$(if $(CAMPAIGN),,B=$(abspath $(B)) tests/campaign/campaign.sh -b -r -s 340 -n 1 -c 1 -j 40 -k $(REAL_KINDS) -w $(REAL_JOBS))

# ---- in a system of its own -----------------------------------------------------------
# Packages built where only what they declare is, and in a system that systemd booted.
.PHONY: check-systemd
check-systemd: deps
	+@$(submake) B=$(B) all other-abi deb
	@B=$(abspath $(B)) prove --failures --comments --exec 'timeout -k 5 1800' \
		tests/systemd/test_*.sh

# The wheel for older systems, in one of them and here.
.PHONY: check-wheel
check-wheel: deps
	+@$(submake) B=$(B) all
	@LONG=1 B=$(abspath $(B)) tests/system/test_wheel.sh

# The container image, with jobs in containers beside it.
.PHONY: check-container
check-container: deps
	+@$(submake) B=$(B) all
	@B=$(abspath $(B)) tests/systemd/test_container.sh

.PHONY: check-deb
check-deb: deps
	+@$(submake) B=$(B) deb
	@B=$(abspath $(B)) tests/systemd/test_build.sh

# ---- with older versions -----------------------------------------------------------------
.PHONY: check-upgrade
check-upgrade: deps
	+@$(submake) B=$(B) all
	@B=$(abspath $(B)) tests/upgrade/check.sh

# ---- a real Prometheus ---------------------------------------------------------------
# In `make check` it is skipped where there is none, and is a matter of seconds.
.PHONY: check-prometheus
check-prometheus: deps engines
	+@$(submake) B=$(B) all
	@LONG=1 B=$(abspath $(B)) tests/system/test_prometheus.sh

# What many nodes' /metrics cost those who collect them; in `make check` twenty nodes, for seconds.
.PHONY: bench-fleet
bench-fleet: deps engines
	+@$(submake) B=$(B) all
	@B=$(abspath $(B)) tests/fleet/cost.sh
	@B=$(abspath $(B)) PROFILE=full NODES=100 INTERVAL=10 TURNS=24 tests/fleet/cost.sh

# ---- a job of many nodes ---------------------------------------------------------------
# A late rank, a hang and a dead node among 32, explained by ssh and from two engines, each within 5 s;
# in `make check` four nodes.
.PHONY: check-nodes
check-nodes: deps engines
	+@$(submake) B=$(B) all
	@LONG=1 B=$(abspath $(B)) tests/system/test_nodes.sh

# ---- launchers -------------------------------------------------------------------------
.PHONY: check-launchers
check-launchers: deps
	+@$(submake) B=$(B) all
	@B=$(abspath $(B)) tests/launchers/check.sh

# ---- levels and bursts, at length ------------------------------------------------------
# A minute of bursts with as many operations as there can be, and a thousand switches of
# the level; in `make check` both are a matter of seconds.
.PHONY: check-control
check-control: deps
	+@$(submake) B=$(B) all
	@LONG=1 B=$(abspath $(B)) tests/system/test_bursts.sh
	@LONG=1 B=$(abspath $(B)) tests/system/test_switches.sh

# ---- many nodes' snapshots -------------------------------------------------------------
# In `make check` a hundred small ones; here whole ones, and what they cost.
.PHONY: bench-report
bench-report: deps
	+@$(submake) B=$(B) all
	@LONG=1 B=$(abspath $(B)) tests/system/test_report.sh
	@NODES="100 1000 10000" B=$(abspath $(B)) tests/fleet/report.sh

# ---- traces, read by Perfetto ------------------------------------------------------------
# In `make check` they are checked by rules of our own; here by what people will look at them
# with.
.PHONY: check-trace
check-trace: deps
	+@$(submake) B=$(B) all
	@B=$(abspath $(B)) tests/trace/check.sh

# ---- what is pushed, read by OpenTelemetry's own descriptions ------------------------------
# In `make check` that part is skipped where there is no npm.
.PHONY: check-otlp
check-otlp: deps
	+@$(submake) B=$(B) all
	@B=$(abspath $(B)) tests/system/test_otlp.sh

# ---- onto the system ----------------------------------------------------------------
include install.mk
include packaging/packages.mk

# ---- for other processors ---------------------------------------------------------------
include cross.mk

# ---- the rest ------------------------------------------------------------
clean:
	rm -rf build build-*

-include $(shell find $(B)/obj $(B)/nccl -name '*.d' 2>/dev/null)
.SECONDARY:

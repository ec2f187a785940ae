/* SPDX-License-Identifier: Apache-2.0 */
/* The file itself: what it exports, needs and weighs; and whom it finds in the process. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fixture.h"
#include "tests/plugin_driver.h"

#if defined(__aarch64__)
#define MAX_BYTES	(76 * 1024)	/* padded for systems with pages of 64 KiB */
#else
#define MAX_BYTES	(72 * 1024)
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LINKED_IN 1
#else
#define LINKED_IN 0
#endif

/* Lines that a command prints about the library, each given to `check`. */
static unsigned int each_line(const char *command, void (*check)(const char *line))
{
	char full[8192], line[1024];
	unsigned int n = 0;
	FILE *p;

	snprintf(full, sizeof(full), "%s %s", command, fx_build_path("libnccl-profiler-insp.so"));
	p = popen(full, "r");
	ck_assert_ptr_nonnull(p);
	for (; fgets(line, sizeof(line), p); n++) {
		line[strcspn(line, "\n")] = '\0';
		check(line);
	}
	ck_assert_int_eq(pclose(p), 0);
	return n;
}

static void is_a_table(const char *line)
{
	const char *name = strrchr(line, ' ') + 1;

	if (!strncmp(name, "ncclinsp_tag_", 13) && strstr(line, " T "))
		return;		/* tag.h: for applications */
	ck_assert_msg(strncmp(name, "ncclProfiler_v", 14) == 0 && strstr(line, " D ") &&
		      strlen(name) == 15 && name[14] >= '1' && name[14] <= '7', "%s", line);
}

TEST_LOOP(only_the_tables_are_exported_as_data_and_the_tags, 0, !LINKED_IN)
{
	ck_assert_uint_eq(each_line("nm -D --defined-only", is_a_table), 7 + 4);
}

static void is_libc(const char *line)
{
	const char *needed = strstr(line, "NEEDED");

	if (needed)
		ck_assert_msg(strstr(needed, "libc.so.6") || strstr(needed, "ld-linux"),
			      "%s", line);
}

TEST_LOOP(nothing_but_libc_is_needed, 0, !LINKED_IN)
{
	each_line("readelf -dW", is_libc);
}

static void is_old(const char *line)
{
	const char *version = strstr(line, "GLIBC_");
	int minor = 0;

	if (!version)
		return;
	ck_assert_msg(sscanf(version, "GLIBC_2.%d", &minor) == 1 && minor <= 17, "%s", line);
}

TEST_LOOP(symbols_are_those_of_glibc_2_17, 0, !LINKED_IN)
{
	ck_assert_uint_gt(each_line("objdump -T", is_old), 6);
}

static unsigned int nodelete;

static void look_for_nodelete(const char *line)
{
	nodelete += strstr(line, "NODELETE") != NULL;
	ck_assert_msg(!strstr(line, "STATIC_TLS") && !strstr(line, "TEXTREL"), "%s", line);
}

TEST_LOOP(library_stays_in_memory_and_takes_no_static_tls, 0, !LINKED_IN)
{
	each_line("readelf -dW", look_for_nodelete);
	ck_assert_uint_eq(nodelete, 1);
}

static unsigned int descriptors, vectors;

static void look_for_descriptor(const char *line)
{
	descriptors += strstr(line, "R_X86_64_TLSDESC") != NULL;
}

static void look_for_vector(const char *line)
{
	vectors += strstr(line, "%xmm") || strstr(line, "%ymm") || strstr(line, "%zmm");
}

/* C libraries before 2.40 clobber them in a descriptor's slow path. */
TEST_LOOP(library_with_tls_descriptors_uses_no_vector_register, 0, !LINKED_IN)
{
	each_line("readelf -rW", look_for_descriptor);
	if (!descriptors)
		return fx_skip("built without TLS descriptors");
	each_line("objdump -d", look_for_vector);
	ck_assert_uint_eq(vectors, 0);
}

TEST_LOOP(library_is_at_most_72_kib_without_debug_sections, 0, !LINKED_IN)
{
	char command[8192], path[512];
	struct stat st;

	snprintf(path, sizeof(path), "%s/stripped.so", fx_tmpdir());
	snprintf(command, sizeof(command), "strip -o %s %s", path,
		 fx_build_path("libnccl-profiler-insp.so"));
	ck_assert_int_eq(system(command), 0);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_le(st.st_size, MAX_BYTES);
}

/* ---- the CUDA driver, or what looks like it ---- */

static const char driver_source[] =
	"#include <string.h>\n"
	"void (*driver_waits)(void);\n"
	"int cuCtxGetDevice(int *d) {\n"
	"	if (driver_waits) driver_waits(); *d = 5; return FAIL; }\n"
	"int cuDeviceGetUuid(void *u, int d) { memset(u, 0xa0 + d, 16); return 0; }\n"
	"int cuDeviceGetPCIBusId(char *s, int n, int d) {\n"
	"	strncpy(s, d == 5 ? \"0000:3b:00.0\" : \"?\", n); return 0; }\n";

static void *load_source(const char *text, const char *name, int fail)
{
	char source[512], command[2048], lib[512];
	void *library;
	FILE *f;

	snprintf(source, sizeof(source), "%s/%s.c", fx_tmpdir(), name);
	snprintf(lib, sizeof(lib), "%s/%s", fx_tmpdir(), name);
	f = fopen(source, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
	snprintf(command, sizeof(command),
		 "cc -shared -fPIC -DFAIL=%d -Wl,-soname,%s -o %s %s", fail, name, lib, source);
	ck_assert_int_eq(system(command), 0);
	library = dlopen(lib, RTLD_NOW | RTLD_LOCAL);
	ck_assert_ptr_nonnull(library);
	return library;
}

static void *load_driver(int fail)
{
	return load_source(driver_source, "libcuda.so.1", fail);
}

static struct pd pd;

TEST(gpu_is_named_by_the_driver_that_is_in_the_process)
{
	struct nci_comm comm;

	pd_open(&pd, NULL);
	load_driver(0);
	pd_init(&pd);
	pd_read(&pd);
	comm = pd_comm(&pd, 0);
	ck_assert(comm.flags & NCI_COMM_HAS_GPU);
	for (int i = 0; i < 16; i++)
		ck_assert_uint_eq(comm.gpu_uuid[i], 0xa5);
	ck_assert_str_eq(comm.pci_bus_id, "0000:3b:00.0");
}

TEST(gpu_is_unknown_when_the_driver_cannot_tell)
{
	struct nci_comm comm;

	pd_open(&pd, NULL);
	load_driver(201);
	pd_init(&pd);
	pd_read(&pd);
	comm = pd_comm(&pd, 0);
	ck_assert_uint_eq(comm.flags & NCI_COMM_HAS_GPU, 0);
	ck_assert_uint_eq(comm.gpu_uuid[0], 0);
	ck_assert_uint_eq(comm.pci_bus_id[0], '\0');
}

static pthread_barrier_t asked, answered;

static void wait_in_driver(void)
{
	pthread_barrier_wait(&asked);
	pthread_barrier_wait(&answered);
}

static void *init_one(void *context)
{
	int mask;

	pd.v6->init(context, 1, &mask, "waiting", 1, 1, 0, NULL);
	return NULL;
}

/* The loader and the driver have locks of their own, which others may hold. */
TEST(init_that_waits_for_the_driver_holds_up_no_other)
{
	void *context = NULL;
	pthread_t thread;

	pd_open(&pd, NULL);
	pthread_barrier_init(&asked, NULL, 2);
	pthread_barrier_init(&answered, NULL, 2);
	*(void (**)(void))dlsym(load_driver(0), "driver_waits") = wait_in_driver;
	ck_assert_int_eq(pthread_create(&thread, NULL, init_one, &context), 0);
	pthread_barrier_wait(&asked);
	pd_finalize(&pd, (void *)5);	/* takes the plugin's lock */
	pthread_barrier_wait(&answered);
	pthread_join(thread, NULL);
	ck_assert_ptr_nonnull(context);
}

static const char nccl_source[] =
	"void (*version_asked)(void);\n"
	"int ncclGetVersion(int *v) { if (version_asked) version_asked(); *v = 23007; return 0; }\n"
	"int call_init(int (*init)(void **, unsigned long, int *, const char *, int, int, int,\n"
	"			   void *), void **context, int *mask) {\n"
	"	volatile int r = init(context, 1, mask, \"new\", 1, 1, 0, 0); return r; }\n";

static void finalize_first(void)
{
	pd_finalize(&pd, pd.context);
}

static unsigned int versions_asked;

static void finalize_nothing(void)
{
	versions_asked++;
	pd_finalize(&pd, (void *)5);	/* takes the plugin's lock */
}

/*
 * Asking the loader takes its lock, which a thread may hold that waits for ours.  The last
 * communicator goes while an init relies on what was found out for that one.
 */
TEST(loader_is_asked_without_the_plugin_s_lock)
{
	int (*call_init)(void *init, void **context, int *mask);
	void *nccl, *driver, *context = NULL;
	int mask;

	pd_open(&pd, NULL);
	driver = load_driver(0);
	nccl = load_source(nccl_source, "libnccl.so.2", 0);
	*(void **)&call_init = dlsym(nccl, "call_init");
	pd_init(&pd);
	*(void (**)(void))dlsym(driver, "driver_waits") = finalize_first;
	*(void (**)(void))dlsym(nccl, "version_asked") = finalize_nothing;
	alarm(10);
	call_init((void *)pd.v6->init, &context, &mask);
	ck_assert_ptr_nonnull(context);
	ck_assert_uint_eq(versions_asked, 1);
	pd_read(&pd);
	ck_assert_uint_eq(pd.header.steer.nccl_version, 23007);
}

TEST(driver_is_never_loaded_by_the_plugin)
{
	pd_open(&pd, NULL);
	pd_init(&pd);
	pd_read(&pd);
	ck_assert_uint_eq(pd_comm(&pd, 0).flags & NCI_COMM_HAS_GPU, 0);
	ck_assert_ptr_null(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD));
}

/* ---- forks in the middle of all that ---- */

static _Atomic bool over;

static void *init_until_over(void *arg)
{
	struct nccl_descr_v6 d = { .type = NCCL_GROUP };
	void *context, *h;
	int mask;

	while (!over) {
		pd.v6->init(&context, (uintptr_t)arg, &mask, "short", 1, 2, 0, NULL);
		for (int k = 0; k < 20; k++) {
			pd.v6->startEvent(context, &h, &d);
			pd.v6->stopEvent(h);
		}
		pd.v6->finalize(context);
	}
	return NULL;
}

/* A child has what one thread had, and whatever the others held just then. */
static int use_in_child(void)
{
	struct nccl_descr_v6 d = { .type = NCCL_GROUP };
	void *context, *h;
	int mask;

	alarm(10);
	pd.v6->finalize(pd.context);
	pd.v6->startEvent(pd.context, &h, &d);
	if (h)
		return 1;
	pd.v6->init(&context, 1, &mask, "child", 1, 2, 0, NULL);
	pd.v6->startEvent(context, &h, &d);
	if (!h)
		return 2;
	pd.v6->stopEvent(h);
	pd.v6->finalize(context);
	return 0;
}

/*
 * With a driver to be found: the C library's own search is not safe in such a child.  Locks of a
 * sanitizer, or of the emulator for arm64, stay held in the child of several threads.
 */
TEST_LOOP(children_forked_while_others_init_have_a_plugin_that_works, 0, !LINKED_IN)
{
	pthread_t thread[4];

	if (getenv("QEMU_LD_PREFIX")) {
		fx_skip("this runs in an emulator");
		return;
	}
	pd_open(&pd, "trace");
	load_driver(0);
	pd_init(&pd);
	for (uintptr_t i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, init_until_over, (void *)i), 0);
	for (int i = 0; i < 50; i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0)
			_exit(use_in_child());
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_int_eq(status, 0);
	}
	over = true;
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	ck_assert_uint_eq(pd_segments(&pd), 51);
}

static pthread_barrier_t told;
static pthread_t teller;

/* The first word comes while the library's lock is held, and its thread stays there. */
static void wait_in_logger(int level, unsigned long flags, const char *file, int line,
			   const char *format, ...)
{
	(void)level, (void)flags, (void)file, (void)line, (void)format;
	pthread_barrier_wait(&told);
	pause();
}

static void *init_that_tells(void *v6)
{
	void *context;
	int mask;

	((const struct nccl_profiler_v6 *)v6)->init(&context, 1, &mask, "", 1, 2, 0,
						    wait_in_logger);
	return NULL;
}

static int init_in_child(const struct nccl_profiler_v6 *v6)
{
	struct nccl_descr_v6 d = { .type = NCCL_GROUP };
	void *context, *h;
	int mask;

	alarm(5);
	v6->init(&context, 1, &mask, "child", 1, 2, 0, NULL);
	v6->startEvent(context, &h, &d);
	if (!h)
		return 1;
	v6->stopEvent(h);
	v6->finalize(context);
	return 0;
}

static const char *const locked[] = {
	"libnccl-profiler-insp.so", "libnccl-profiler-insp-chain.so", "libnccl-profiler-record.so",
};

TEST_LOOP(child_forked_while_a_thread_is_within_its_init_does_not_wait_for_it, 0,
	  LINKED_IN ? 0 : FX_COUNT(locked))
{
	void *lib = dlopen(fx_build_path(locked[_i]), RTLD_NOW | RTLD_LOCAL);
	const void *v6;
	char record[512];
	int status;
	pid_t pid;

	ck_assert_msg(lib != NULL, "%s", dlerror());
	v6 = dlsym(lib, "ncclProfiler_v6");
	snprintf(record, sizeof(record), "%s/%%p", fx_tmpdir());
	setenv("NCCLINSP_RECORD", record, 1);
	setenv("NCCLINSP_LEVEL", "trace", 1);
	pthread_barrier_init(&told, NULL, 2);
	ck_assert_int_eq(pthread_create(&teller, NULL, init_that_tells, (void *)v6), 0);
	pthread_barrier_wait(&told);
	pid = fork();
	if (pid == 0)
		_exit(init_in_child(v6));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

int main(void)
{
	return fx_run(NULL, NULL);
}

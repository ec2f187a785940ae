# SPDX-License-Identifier: Apache-2.0
#
#   make aarch64        everything, for 64-bit Arm, in $(B)-aarch64
#   make check-aarch64  its tests under qemu's emulation of a process; some minutes
#
# By Debian's cross compiler and against Debian's libraries for arm64, unpacked in a tree
# of their own: this machine's stay as they are.
#
# What this cannot show: an emulated processor on an x86 machine orders memory as that
# one does, so that a missing barrier does no harm here.  Only a real one tells.
ARM      := $(B)-aarch64
ARM_TREE := $(abspath $(ARM))/tree
ARM_CC   := aarch64-linux-gnu-gcc --sysroot=$(ARM_TREE)
ARM_QEMU := qemu-aarch64-static
# Of this machine's own release, for the cross compiler's own version; the packages are
# those that bring what pkg-config finds here.
ARM_SUITE  = $(shell . /etc/os-release && echo $$VERSION_CODENAME)
ARM_LIBS   = libc6-dev libgcc-$(shell aarch64-linux-gnu-gcc -dumpversion 2>/dev/null)-dev \
             $(foreach need,$(NEEDS),$(if $(filter %.pc,$(firstword $(subst =, ,$(need)))), \
             $(lastword $(subst =, ,$(need)))))
ARM_MAKE  = PKG_CONFIG_SYSROOT_DIR=$(ARM_TREE) \
	PKG_CONFIG_LIBDIR=$(ARM_TREE)/usr/lib/aarch64-linux-gnu/pkgconfig \
	$(submake) B=$(ARM) CC="$(ARM_CC)" OBJCOPY=aarch64-linux-gnu-objcopy EMULATOR="$(ARM_QEMU) -L $(ARM_TREE)"

# Not there: what asks /proc who somebody is, where the emulator tells a start of its own
# (containers, discover); what installs a filter of system calls (loop); what counts pages
# that the emulator does not ask for (shmring_lanes), or what starts programs (faults, raise,
# reader_library, sim_loader, top); and what takes minutes there, and has nothing in it that
# depends on the processor.
ARM_NOT   := containers discover discover_end faults gpuclock loop raise reader_library \
             reconstruct_order shmring_lanes sim_loader steer straggler stream top_keys top_layout
ARM_TESTS := $(filter-out $(ARM_NOT:%=$(ARM)/tests/test_%),$(patsubst $(B)/%,$(ARM)/%,$(TESTS)))

space := $(subst ,, )
comma := ,

$(ARM)/packages: FORCE | deps
	@mkdir -p $(@D)
	@echo $(ARM_SUITE) $(ARM_LIBS) | cmp -s - $@ || echo $(ARM_SUITE) $(ARM_LIBS) >$@

# Its links are made relative: they would lead into this machine's own libraries.  What
# a tree has beside libraries would be found in place of this machine's.
$(ARM_TREE)/.made: $(ARM)/packages
	@rm -rf $(ARM_TREE)
	@echo "  TREE  $(ARM_TREE)"
	$(Q)mmdebstrap --quiet --variant=extract --architectures=arm64 \
		--include=$(subst $(space),$(comma),$(strip $(ARM_LIBS))) $(ARM_SUITE) $(ARM).tar
	$(Q)mkdir $(ARM_TREE) && tar -C $(ARM_TREE) -xf $(ARM).tar ./lib ./usr && rm $(ARM).tar
	$(Q)find $(ARM_TREE) -type l -lname '/*' | while read -r link; do \
		to=$(ARM_TREE)$$(readlink "$$link"); \
		ln -sfn "$$(realpath -m --relative-to="$$(dirname "$$link")" "$$to")" "$$link"; \
	done
	$(Q)touch $@

# Tests that build something, or look into what was built, ask for these by name.
ARM_TOOLS := $(ARM)/tools
$(ARM_TOOLS)/.made: cross.mk
	@mkdir -p $(@D)
	$(Q)printf '#!/bin/sh\nexec $(ARM_CC) "$$@"\n' >$(@D)/cc
	$(Q)printf '#!/bin/sh\nexec aarch64-linux-gnu-strip "$$@"\n' >$(@D)/strip
	$(Q)chmod +x $(@D)/cc $(@D)/strip && touch $@

.PHONY: aarch64 check-aarch64
aarch64: $(ARM_TREE)/.made
	+@$(ARM_MAKE) all

check-aarch64: aarch64 $(ARM_TOOLS)/.made
	+@$(ARM_MAKE) $(ARM_TESTS)
	@PATH=$(abspath $(ARM_TOOLS)):$$PATH B=$(abspath $(ARM)) CK_TIMEOUT_MULTIPLIER=10 \
		QEMU_LD_PREFIX=$(ARM_TREE) prove -j$(JOBS) --failures --comments \
		--exec '$(abspath tests/tap.sh) $(ARM_QEMU)' $(ARM_TESTS)

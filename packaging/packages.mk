# SPDX-License-Identifier: Apache-2.0
#
#   make deb        packages for Debian and Ubuntu, in $(B)/deb; needs debhelper, and
#                   lintian looks at them where it is
#   make rpm        packages for others, in $(B)/rpm; needs rpmbuild
#   make wheel      a Python wheel, in $(B)/wheel; needs python3 and patchelf.  It runs with C libraries
#                   as old as this system's at best; SUITE=bullseye makes it in a tree of that release of
#                   Debian (root, mmdebstrap), and so for older ones
#   make dist       the last commit as $(B)/ncclinsp-VERSION.tar.gz, the same to the byte
#                   wherever it is made
#
# Built from a copy of the tree, as a package's builder gets it.
deb rpm wheel: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || \
	stat -c %Y NEWS.md)

SOURCE = ncclinsp-$(VERSION)
copy_tree = rm -rf $(1) && mkdir -p $(1)/$(SOURCE) && \
	tar -c --exclude-vcs --exclude='./build*' --exclude='./$(B)' . | tar -x -C $(1)/$(SOURCE)

.PHONY: dist deb rpm wheel
dist:
	@mkdir -p $(B)
	$(Q)git archive --prefix=$(SOURCE)/ -o $(B)/$(SOURCE).tar HEAD
	$(Q)gzip -9nf $(B)/$(SOURCE).tar
	$(Q)ls $(B)/$(SOURCE).tar.gz

deb:
	$(Q)$(call copy_tree,$(B)/deb)
	$(Q)cp -r packaging/debian $(B)/deb/$(SOURCE)/debian
	$(Q)printf 'ncclinsp (%s) unstable; urgency=medium\n\n  * See NEWS.md.\n\n -- %s  %s\n' \
		'$(VERSION)' "$$(sed -n 's/^Maintainer: //p' packaging/debian/control)" \
		"$$(date -u -R -d @$(SOURCE_DATE_EPOCH))" >$(B)/deb/$(SOURCE)/debian/changelog
	$(Q)cd $(B)/deb/$(SOURCE) && env -u MAKEFLAGS -u MAKEOVERRIDES -u MAKELEVEL \
		dpkg-buildpackage -us -uc -b >../build.log 2>&1 || { tail -n 40 ../build.log; exit 1; }
	$(Q)rm -rf $(B)/deb/$(SOURCE)
	$(Q)! command -v lintian >/dev/null || lintian --allow-root --fail-on error,warning \
		$(B)/deb/*.changes
	$(Q)ls $(B)/deb/*.deb

rpm:
	$(Q)$(call copy_tree,$(B)/rpm)
	$(Q)tar -C $(B)/rpm -czf $(B)/rpm/$(SOURCE).tar.gz $(SOURCE)
	$(Q)sed -e 's|@VERSION@|$(VERSION)|' packaging/ncclinsp.spec.in >$(B)/rpm/ncclinsp.spec
	$(Q)rpmbuild -bb $(if $(wildcard /etc/debian_version),--nodeps) \
		-D '_topdir $(abspath $(B))/rpm' -D '_sourcedir $(abspath $(B))/rpm' \
		$(B)/rpm/ncclinsp.spec >$(B)/rpm/build.log 2>&1 || { tail -n 40 $(B)/rpm/build.log; exit 1; }
	$(Q)rm -rf $(B)/rpm/$(SOURCE) $(B)/rpm/BUILD $(B)/rpm/BUILDROOT
	$(Q)ls $(B)/rpm/RPMS/*/*.rpm

SUITE  :=
WHEEL  := $(B)/wheel
WHEEL_NEEDS := gcc make pkg-config scdoc python3 patchelf libc6-dev $(foreach need,$(filter %-dev,$(NEEDS)), \
	$(if $(filter %.pc,$(firstword $(subst =, ,$(need)))),$(lastword $(subst =, ,$(need)))))
WHEEL_PAGES  = $(filter-out %/nci-abi.7 %/libncclinsp.3 %/libnccl-profiler-record.7 %/ncclinsp-probe.8,$(MAN))

ifeq ($(SUITE),)
wheel: $(CLI) $(DAEMON) $(PLUGIN) $(CHAIN) $(NVTX) $(WHEEL_PAGES)
	@rm -rf $(WHEEL) && mkdir -p $(WHEEL)
	$(Q)packaging/python/wheel.py $(VERSION) $(WHEEL) $(CLI) $(DAEMON) $(PLUGIN) $(CHAIN) $(NVTX) $(WHEEL_PAGES)
else
wheel:
	@rm -rf $(WHEEL) $(B)/wheel-tree
	$(Q)mmdebstrap --quiet --variant=minbase --include="$(WHEEL_NEEDS)" $(SUITE) $(B)/wheel-tree
	$(Q)$(call copy_tree,$(B)/wheel-tree/src)
	$(Q)env -u MAKEFLAGS -u MAKEOVERRIDES -u MAKELEVEL chroot $(B)/wheel-tree \
		make -C /src/$(SOURCE) -j$(JOBS) B=/wheel CFLAGS="-O2 -g -include packaging/python/glibc.h" \
		wheel >$(B)/wheel.log 2>&1 || { tail -n 40 $(B)/wheel.log; exit 1; }
	$(Q)mv $(B)/wheel-tree/wheel/wheel $(WHEEL) && rm -rf $(B)/wheel-tree && ls $(WHEEL)/*.whl
endif

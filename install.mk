# SPDX-License-Identifier: Apache-2.0
#
#   make install    DESTDIR= PREFIX=/usr/local
#   make uninstall  the same, the other way round
#
# One list says what goes where; both targets walk through it.
DESTDIR    :=
PREFIX     := /usr/local
BINDIR     := $(PREFIX)/bin
SBINDIR    := $(PREFIX)/sbin
LIBDIR     := $(PREFIX)/lib
INCLUDEDIR := $(PREFIX)/include
MANDIR     := $(PREFIX)/share/man
INSTALL    := install

# mode:source:destination, one word each.
files = $(foreach f,$(2),$(1):$(f):$(3)/$(notdir $(f)))
pages = $(foreach f,$(1),644:$(f):$(MANDIR)/man$(patsubst .%,%,$(suffix $(f)))/$(notdir $(f)))

PC := $(B)/ncclinsp.pc

INSTALLED = \
	$(call files,755,$(CLI) $(REPLAY),$(BINDIR)) \
	$(call files,755,$(DAEMON),$(SBINDIR)) \
	$(call files,644,$(PLUGIN) $(RECORD),$(LIBDIR)) \
	$(call files,644,$(wildcard include/nci/*.h),$(INCLUDEDIR)/nci) \
	$(call files,644,$(PC),$(LIBDIR)/pkgconfig) \
	$(call pages,$(MAN))

# What nobody else has files in.
INSTALLED_DIRS = $(INCLUDEDIR)/nci

.PHONY: FORCE install uninstall

# Always made anew: the paths may be others than the last time.
$(PC): packaging/ncclinsp.pc.in FORCE
	$(Q)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' \
		-e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' -e 's|@VERSION@|$(VERSION)|' $< >$@

# A directory in the linker's cache must be told of what is new in it.
install: $(PLUGIN) $(RECORD) $(DAEMON) $(CLI) $(REPLAY) $(MAN) $(PC)
	@echo "  INSTALL  $(DESTDIR)$(PREFIX)"
	$(Q)for row in $(INSTALLED); do \
		mode=$${row%%:*}; row=$${row#*:}; \
		$(INSTALL) -D -m $$mode "$${row%%:*}" "$(DESTDIR)$${row#*:}" || exit 1; \
	done
	$(Q)[ -n "$(DESTDIR)" ] || [ "$$(id -u)" -ne 0 ] || ldconfig

uninstall:
	@echo "  UNINSTALL  $(DESTDIR)$(PREFIX)"
	$(Q)for row in $(INSTALLED); do rm -f "$(DESTDIR)$${row##*:}"; done
	$(Q)for dir in $(INSTALLED_DIRS); do \
		rmdir "$(DESTDIR)$$dir" 2>/dev/null || [ ! -d "$(DESTDIR)$$dir" ] || \
			echo "  KEPT  $(DESTDIR)$$dir"; \
	done

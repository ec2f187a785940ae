# SPDX-License-Identifier: Apache-2.0
#
#   make install    DESTDIR= PREFIX=/usr/local
#   make uninstall  the same, the other way round
#
# One list says what goes where; both targets walk through it.  A directory that is set to
# nothing leaves out what goes there (UNITDIR= where there is no systemd, MANDIR= where
# there is no scdoc).  The configuration is where the daemon looks for it, and what somebody
# has changed there stays.
DESTDIR    :=
PREFIX     := /usr/local
BINDIR     := $(PREFIX)/bin
SBINDIR    := $(PREFIX)/sbin
LIBDIR     := $(PREFIX)/lib
INCLUDEDIR := $(PREFIX)/include
MANDIR     := $(PREFIX)/share/man
UNITDIR    := $(PREFIX)/lib/systemd/system
USERUNITDIR := $(PREFIX)/lib/systemd/user
SYSUSERSDIR := $(PREFIX)/lib/sysusers.d
TMPFILESDIR := $(PREFIX)/lib/tmpfiles.d
BASHDIR    := $(PREFIX)/share/bash-completion/completions
ZSHDIR     := $(PREFIX)/share/zsh/site-functions
FISHDIR    := $(PREFIX)/share/fish/vendor_completions.d
CONFDIR    := /etc/ncclinsp
INSTALL    := install

# mode:source:destination, one word each; the mode "link" makes a link that says `source`.
files = $(if $(3),$(foreach f,$(2),$(1):$(f):$(3)/$(or $(4),$(notdir $(f)))))
pages = $(if $(MANDIR),$(foreach f,$(1),644:$(f):$(MANDIR)/man$(patsubst .%,%,$(suffix \
	$(f)))/$(notdir $(f))))

PC    := $(B)/ncclinsp.pc $(B)/libncclinsp.pc
CONF  := $(B)/ncclinspd.conf
UNITS := $(B)/systemd/ncclinspd.service $(B)/systemd/ncclinspd-user.service \
	$(if $(PROBE),$(B)/systemd/ncclinsp-probe.service)

SHELLS := $(addprefix $(B)/completion/,ncclinsp.bash ncclinsp.zsh ncclinsp.fish)

INSTALLED = \
	$(call files,755,$(CLI) $(REPLAY),$(BINDIR)) \
	$(call files,755,$(DAEMON) $(PROBE),$(SBINDIR)) \
	$(call files,644,$(PLUGIN) $(RECORD) $(CHAIN) $(NVTX) $(LIBRARY) $(STATIC_LIBRARY),$(LIBDIR)) \
	link:$(notdir $(LIBRARY)):$(LIBDIR)/libncclinsp.so \
	$(call files,644,$(wildcard include/nci/*.h),$(INCLUDEDIR)/nci) \
	$(call files,644,$(wildcard include/ncclinsp/*.h),$(INCLUDEDIR)/ncclinsp) \
	$(call files,644,$(PC),$(LIBDIR)/pkgconfig) \
	$(call pages,$(MAN)) \
	$(call files,644,$(B)/systemd/ncclinspd.service systemd/ncclinspd.socket \
		systemd/ncclinsp-finding.socket systemd/ncclinsp-finding@.service,$(UNITDIR)) \
	$(if $(PROBE),$(call files,644,$(B)/systemd/ncclinsp-probe.service systemd/ncclinsp-probe.socket,$(UNITDIR))) \
	$(call files,644,$(B)/systemd/ncclinspd-user.service,$(USERUNITDIR),ncclinspd.service) \
	$(call files,644,systemd/ncclinsp.sysusers,$(SYSUSERSDIR),ncclinsp.conf) \
	$(call files,644,systemd/ncclinsp.tmpfiles,$(TMPFILESDIR),ncclinsp.conf) \
	$(call files,644,$(B)/completion/ncclinsp.bash,$(BASHDIR),ncclinsp) \
	$(call files,644,$(B)/completion/ncclinsp.zsh,$(ZSHDIR),_ncclinsp) \
	$(call files,644,$(B)/completion/ncclinsp.fish,$(FISHDIR))

# What nobody else has files in.
INSTALLED_DIRS = $(INCLUDEDIR)/nci $(INCLUDEDIR)/ncclinsp $(CONFDIR)

.PHONY: install uninstall

# From the programs' own tables.  Where they are built for another machine: its emulator.
EMULATOR :=
$(SHELLS): $(B)/completion/ncclinsp.%: $(CLI)
	@mkdir -p $(@D)
	$(Q)$(EMULATOR) $(CLI) completion $* >$@.tmp && mv $@.tmp $@

$(CONF): $(DAEMON)
	$(Q)$(EMULATOR) $(DAEMON) --print-config >$@.tmp && mv $@.tmp $@

# Always made anew: the paths may be others than the last time.
$(UNITS): $(B)/systemd/%: systemd/%.in FORCE
	@mkdir -p $(@D)
	$(Q)sed -e 's|@SBINDIR@|$(SBINDIR)|' $< >$@

$(PC): $(B)/%.pc: packaging/%.pc.in FORCE
	@mkdir -p $(@D)
	$(Q)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' \
		-e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' -e 's|@VERSION@|$(VERSION)|' $< >$@

.PHONY: installables
installables: $(PLUGIN) $(RECORD) $(CHAIN) $(NVTX) $(LIBRARY) $(STATIC_LIBRARY) $(DAEMON) $(CLI) $(PROBE) $(REPLAY) $(if $(MANDIR),$(MAN)) $(PC) $(CONF) $(UNITS) \
	$(SHELLS)

# A directory in the linker's cache must be told of what is new in it.
install: installables
	@echo "  INSTALL  $(DESTDIR)$(PREFIX)"
	$(Q)for row in $(INSTALLED); do \
		mode=$${row%%:*}; row=$${row#*:}; \
		[ $$mode != link ] || { ln -sfn "$${row%%:*}" "$(DESTDIR)$${row#*:}" || exit 1; continue; }; \
		$(INSTALL) -D -m $$mode "$${row%%:*}" "$(DESTDIR)$${row#*:}" || exit 1; \
	done
	$(Q)[ -e "$(DESTDIR)$(CONFDIR)/$(notdir $(CONF))" ] || \
		$(INSTALL) -D -m 644 $(CONF) "$(DESTDIR)$(CONFDIR)/$(notdir $(CONF))"
	$(Q)[ -n "$(DESTDIR)" ] || [ "$$(id -u)" -ne 0 ] || ldconfig

uninstall: $(CONF)
	@echo "  UNINSTALL  $(DESTDIR)$(PREFIX)"
	$(Q)for row in $(INSTALLED); do rm -f "$(DESTDIR)$${row##*:}"; done
	$(Q)! cmp -s $(CONF) "$(DESTDIR)$(CONFDIR)/$(notdir $(CONF))" || \
		rm "$(DESTDIR)$(CONFDIR)/$(notdir $(CONF))"
	$(Q)for dir in $(INSTALLED_DIRS); do \
		rmdir "$(DESTDIR)$$dir" 2>/dev/null || [ ! -d "$(DESTDIR)$$dir" ] || \
			echo "  KEPT  $(DESTDIR)$$dir"; \
	done

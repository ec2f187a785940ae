#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `make install` into a staged tree: every file with its mode, what lies there works,
# and `make uninstall` takes out what it put in and nothing else.
. "$(dirname "$0")/lib.sh"
cd "$TOP" || exit 1

ROOT=$T/root
P=/opt/insp
make_here() { make --no-print-directory -s B="$B" DESTDIR="$ROOT" PREFIX=$P "$@"; }

# What must be there: mode and path, from what the tree has sources for.
expected() {
	local f
	echo "755 bin/ncclinsp" "755 bin/nccl-replay" "755 sbin/ncclinspd" \
		"644 lib/libnccl-profiler-insp.so" "644 lib/libnccl-profiler-record.so" \
		"644 lib/libnccl-profiler-insp-chain.so" \
		"644 lib/libncclinsp-nvtx.so" \
		"644 lib/pkgconfig/ncclinsp.pc" "644 lib/pkgconfig/libncclinsp.pc" \
		"644 lib/libncclinsp.so.0" "777 lib/libncclinsp.so" "644 lib/libncclinsp.a" \
		"644 lib/systemd/system/ncclinspd.service" \
		"644 lib/systemd/system/ncclinspd.socket" \
		"644 lib/systemd/system/ncclinsp-finding.socket" \
		"644 lib/systemd/system/ncclinsp-finding@.service" \
		"644 lib/systemd/user/ncclinspd.service" \
		"644 share/bash-completion/completions/ncclinsp" \
		"644 share/fish/vendor_completions.d/ncclinsp.fish" \
		"644 share/zsh/site-functions/_ncclinsp" \
		"644 lib/sysusers.d/ncclinsp.conf" "644 lib/tmpfiles.d/ncclinsp.conf" | sed 's/ \([67]\)/\n\1/g'
	[ ! -x "$B/ncclinsp-probe" ] || printf '%s\n' "755 sbin/ncclinsp-probe" \
		"644 lib/systemd/system/ncclinsp-probe.service" "644 lib/systemd/system/ncclinsp-probe.socket"
	for f in include/nci/*.h include/ncclinsp/*.h; do echo "644 $f"; done
	for f in man/*.scd; do
		f=${f#man/} f=${f%.scd}
		echo "644 share/man/man${f##*.}/$f"
	done
}

installed() { find "$ROOT$P" ! -type d -printf '%m %P\n'; }
as_expected() { diff <(expected | sort -k 2) <(installed | sort -k 2); }
directories_are_open() { [ -z "$(find "$ROOT$P" -type d ! -perm 755)" ]; }
CONF=etc/ncclinsp/ncclinspd.conf
nothing_elsewhere() {
	[ "$(find "$ROOT" ! -type d ! -path "$ROOT$P/*" -printf '%m %P\n')" = "644 $CONF" ]
}

# Whatever the caller's umask is, others must be able to use it.
check "it installs" sh -c 'umask 077; exec "$@"' sh \
	make --no-print-directory -s B="$B" DESTDIR="$ROOT" PREFIX=$P install
check "every file is there, with its mode, and no other" as_expected
check "directories can be entered by everybody" directories_are_open
check "nothing lies outside PREFIX but the configuration" nothing_elsewhere
check "which is that of the daemon's defaults" \
	sh -c '"$1/sbin/ncclinspd" --print-config | diff - "$2"' sh "$ROOT$P" "$ROOT/$CONF"
echo "# mine" >>"$ROOT/$CONF"
check "it installs again" make_here install
check "and leaves a configuration that was changed" grep -qx "# mine" "$ROOT/$CONF"

# Another distribution's way: libraries in lib64, no systemd, no scdoc for the man pages.
OTHER=$T/other
PLACES="PREFIX=/usr LIBDIR=/usr/lib64 UNITDIR= USERUNITDIR= SYSUSERSDIR= TMPFILESDIR= MANDIR="
other_make() { make --no-print-directory -s B="$B" DESTDIR="$OTHER" $PLACES "$@"; }
check "it installs into lib64, without systemd and man pages" other_make install
check "with the libraries there" test -e "$OTHER/usr/lib64/libnccl-profiler-insp.so"
elsewhere() {
	find "$OTHER" ! -type d -printf '%P\n' |
		grep -Ev '^(usr/(bin|sbin|lib64|include|share/(bash-completion|zsh|fish))|etc/ncclinsp)/'
}
check "and what was left out nowhere" test -z "$(elsewhere)"
check "without need of scdoc" sh -c '! "$@" | grep -q "scdoc <"' sh \
	make --no-print-directory -nB V=1 B="$B" $PLACES installables
check "pkg-config is told where the plugin is there" grep -qx 'libdir=/usr/lib64' \
	"$OTHER/usr/lib64/pkgconfig/ncclinsp.pc"
check "it uninstalls from there" other_make uninstall
check "all of it" test -z "$(find "$OTHER" ! -type d)"

# Each file is in exactly one package of either kind.
make --no-print-directory -s B="$B" DESTDIR="$T/packaged" PREFIX=/usr LIBDIR=/usr/lib/multi \
	UNITDIR=/lib/systemd/system install
debian_lists() { cat packaging/debian/*.install; }
rpm_lists() {
	sed -e '1,/^%files$/d' packaging/ncclinsp.spec.in |
		grep -Ev '^(%files|%license|%doc|%dir|$)' | sed -e 's/^%config(noreplace) //' \
		-e 's|^/||' -e 's|%{_unitdir}|lib/systemd/system|' \
		-e 's|%{_userunitdir}|usr/lib/systemd/user|' -e 's|%{_libdir}|usr/lib/multi|' \
		-e 's|%{_prefix}|usr|' -e 's|%{_bindir}|usr/bin|' -e 's|%{_sbindir}|usr/sbin|' \
		-e 's|%{_includedir}|usr/include|' -e 's|%{_mandir}|usr/share/man|'
}
once_each() {	# LISTS
	local f pattern n failed=0
	while read -r f; do
		n=0
		while read -r pattern; do
			# Unquoted: it is a pattern.
			case $f in $pattern | $pattern/*) n=$((n + 1)) ;; esac
		done < <("$1")
		[ $n -eq 1 ] || { echo "$f is in $n packages"; failed=1; }
	done < <(find "$T/packaged" ! -type d -printf '%P\n')
	return $failed
}
check "each file is in one Debian package" once_each debian_lists
check "each file is in one RPM package" once_each rpm_lists
rpm_needs() {
	local lib failed=0
	for lib in $(sed -n 's/^\(DAEMON\|CLI\)_LIBS *:= *//p' Makefile) libbpf otf2; do
		grep -Eq "^BuildRequires:.*(pkgconfig\($lib\)|\<$lib-devel)" packaging/ncclinsp.spec.in ||
			{ echo "$lib is missing"; failed=1; }
	done
	return $failed
}
check "RPM packages are built with all that there is code for" rpm_needs

cat >"$T/reader.c" <<'EOF'
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include <nci/segment.h>
#include <nci/sums.h>

int main(int argc, char **argv)
{
	struct nci_header h;
	int fd = open(argv[argc - 1], O_RDONLY);

	if (pread(fd, &h, sizeof(h), 0) != sizeof(h) || h.magic != NCI_MAGIC)
		return 1;
	printf("%u %u.%u\n", h.pid, h.abi_major, NCI_ABI_MINOR);
	return 0;
}
EOF
pc() { PKG_CONFIG_PATH=$ROOT$P/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$ROOT pkg-config "$@"; }
compiles() { "${CC:-gcc}" -Wall -Werror -o "$T/reader" "$T/reader.c" $(pc --cflags --libs ncclinsp); }
tells_version() { [ "$(pc --modversion ncclinsp)" = "$("$B/ncclinspd" --version | cut -d ' ' -f 2)" ]; }
plugin_is_named() { [ "$(pc --variable=plugin ncclinsp)" = "$ROOT$P/lib/libnccl-profiler-insp.so" ] ||
	[ "$(pc --variable=plugin ncclinsp)" = "$P/lib/libnccl-profiler-insp.so" ]; }

check "pkg-config compiles a program against it" compiles
as_cxx() {
	"${CXX:-g++}" -std=c++17 -Wall -Wextra -Werror -o "$T/reader-cxx" -x c++ "$T/reader.c" \
		$(pc --cflags --libs ncclinsp)
}
check "so it does one in C++" as_cxx
check "pkg-config tells the version" tells_version
check "pkg-config tells where the plugin is" plugin_is_named

# The installed plugin, loaded by the name that a user gives NCCL, and the installed rest.
printf 'nodes 1\nprocesses 1\ncomm world ranks 0 channels 1\nAllReduce world 1Ki float32\nhold 60s\n' \
	>"$T/one.scn"
LD_LIBRARY_PATH=$ROOT$P/lib "$B/nccl-sim" --plugin libnccl-profiler-insp.so "$T/one.scn" \
	>/dev/null 2>&1 &
started+=($!)
one_segment() { ls "$SHM"/ncclinsp.* >/dev/null 2>&1 && "$T/reader" "$SHM"/ncclinsp.*; }
reads_the_pid() { [ "$("$T/reader" "$SHM"/ncclinsp.* | cut -d ' ' -f 1)" = "$(ls "$SHM" | cut -d . -f 3)" ]; }
check "the installed plugin is found by its name" wait_until 20 one_segment
check "that program reads the segment of a job" reads_the_pid
reads_the_same() { [ "$("$T/reader" "$SHM"/ncclinsp.*)" = "$("$T/reader-cxx" "$SHM"/ncclinsp.*)" ]; }
check "so does the one in C++" reads_the_same
check "a segment is its owner's alone" \
	test "$(stat -c '%a %u' "$SHM"/ncclinsp.*)" = "600 $(id -u)"

"$ROOT$P/sbin/ncclinspd" --foreground --socket "$SOCK" --shm-dir "$SHM" --state-dir "$T/state" --containers no \
	2>>"$T/daemon.log" &
started+=($!)
sees_the_job() { "$ROOT$P/bin/ncclinsp" ps | grep -q nccl-sim; }
# What zsh loads by its name must answer already when that is called for the first time.
autoloads() {
	[ "$(PATH=$ROOT$P/bin:$PATH zsh -f -c 'fpath=("$1" $fpath); autoload -U _ncclinsp
		compdef() { :; }; compadd() { typeset -a all=("${(@P)argv[-1]}"); print -r -- $all }
		words=(ncclinsp completion "") CURRENT=3; _ncclinsp' zsh \
		"$ROOT$P/share/zsh/site-functions")" = "bash zsh fish" ]
}
if command -v zsh >/dev/null; then
	check "zsh completes at the first attempt" autoloads
else
	skip "zsh completes at the first attempt" "zsh is not here"
fi

check "the installed daemon and command line see the job" wait_until 20 sees_the_job

# The tarball has the whole commit, and is the same whenever it is made.
dist() { make --no-print-directory -s B="$1" dist >/dev/null && cd "$1" && sha256sum *.tar.gz; }
same_twice() { diff <(dist "$T/dist") <(sleep 1.1; dist "$T/again"); }
has_all() {
	diff <(git ls-tree -r --name-only HEAD | sort) \
		<(tar -tf "$T"/dist/*.tar.gz | sed -n 's|^[^/]*/\(.*[^/]\)$|\1|p' | sort)
}
if git rev-parse -q --verify HEAD >/dev/null 2>&1; then
	check "a tarball is the same to the byte when it is made again" same_twice
	check "it has all that is committed" has_all
else
	skip "a tarball has all that is committed" "there is no commit here"
fi

touch "$ROOT$P/lib/another.so" "$ROOT$P/include/nci/own.h"
left() { find "$ROOT" ! -type d -printf '%P\n' | sort | tr '\n' ' '; }
check "it uninstalls" make_here uninstall
check "what others put there stays, and nothing else" \
	test "$(left)" = "$CONF opt/insp/include/nci/own.h opt/insp/lib/another.so "
rm "$ROOT$P/include/nci/own.h"
"$B/ncclinspd" --print-config >"$ROOT/$CONF"
check "it uninstalls where little is" make_here uninstall
check "with a configuration that nobody has changed" test ! -e "$ROOT/$CONF"
check "directories of its own are gone" \
	test ! -e "$ROOT$P/include/nci" -a ! -e "$ROOT$P/include/ncclinsp" -a \
	! -e "$ROOT/etc/ncclinsp"
check "it uninstalls where nothing is" make_here uninstall
done_testing

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The .rpm packages: built, installed into a root of their own, whole, and out again.
# What they need of a distribution that has rpm is that one's to bring.
. "$(dirname "$0")/../system/lib.sh"
cd "$TOP" || exit 1

for need in rpm rpmbuild; do
	command -v $need >/dev/null || skip_all "needs $need (Debian: rpm)"
done
[ "$(id -u)" -eq 0 ] || skip_all "needs root"

R=$T/root
in_root() { rpm --root "$R" "$@" 2>>"$T/rpm.log"; }
RPMS() { ls "$B"/rpm/RPMS/*/*.rpm; }

check "the packages are built" make --no-print-directory -s B="$B" rpm
names=$(for f in $(RPMS); do rpm -qp --qf '%{NAME} ' "$f"; done)
check "each that the recipe tells of is there" test "$(wc -w <<<"$names")" -eq \
	"$(($(grep -c '^%files' "$B/rpm/ncclinsp.spec")))"
mkdir "$R"
in_root --initdb
check "they install" in_root -i --nodeps --noscripts $(RPMS)
check "every file is as it was packed" \
	test -z "$(in_root -V --nodeps $names)"
check "what may be changed is marked" \
	test "$(in_root -qc ncclinsp)" = /etc/ncclinsp/ncclinspd.conf
check "their scripts are sound" sh -c '
	root=$1; shift
	for p in "$@"; do
		rpm --root "$root" -q --qf "%{POSTIN}\n" $p | sed "s/^(none)$//" | sh -n || exit 1
		rpm --root "$root" -q --qf "%{PREUN}\n" $p | sed "s/^(none)$//" | sh -n || exit 1
		rpm --root "$root" -q --qf "%{POSTUN}\n" $p | sed "s/^(none)$//" | sh -n || exit 1
	done 2>/dev/null' sh "$R" $names
check "the daemon runs" "$R/usr/sbin/ncclinspd" --version
check "its unit names it where it is" grep -q '^ExecStart=/usr/sbin/ncclinspd ' \
	"$R/usr/lib/systemd/system/ncclinspd.service"
sees_format() {
	printf '#include <nci/segment.h>\nint main(void) { return NCI_ABI_MAJOR < 1; }\n' >"$T/c.c"
	gcc -Wall -Werror -o "$T/c" "$T/c.c" $(PKG_CONFIG_SYSROOT_DIR=$R \
		PKG_CONFIG_PATH=$(dirname "$(find "$R" -name ncclinsp.pc)") \
		pkg-config --cflags ncclinsp) && "$T/c"
}
check "pkg-config compiles a program against the headers" sees_format
echo "# mine" >>"$R/etc/ncclinsp/ncclinspd.conf"
check "they are removed" in_root -e --nodeps --noscripts $names
check "with everything but a configuration that was changed" \
	test "$(find "$R/usr" "$R/etc" ! -type d -printf '%P\n')" = ncclinsp/ncclinspd.conf.rpmsave
done_testing

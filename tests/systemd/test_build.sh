#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The packages are built where nothing is but what they say they need.
. "$(dirname "$0")/../system/lib.sh"
. "$(dirname "$0")/tree.sh"
cd "$TOP" || exit 1

build_depends() {
	sed -n '/^Build-Depends:/,/^[A-Z]/{/^Standards/!p}' packaging/debian/control |
		sed 's/^Build-Depends://' | dependencies | sed -e 's/^debhelper-compat$/debhelper/' \
		-e '/^dh-sequence/d'
}
# As of the same moment as the packages that were built outside.
export SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH=$(date -d "$(sed -n 's/^Date: //p' "$B"/deb/*.changes 2>/dev/null)" +%s)
build() {
	tar -c --exclude-vcs --exclude='./build*' . | tar -x -C "$T/build/src" &&
		chroot "$T/build" make -C /src B=/out deb
}
sums() { (cd "$1" && sha256sum ncclinsp_*.deb libnccl*insp_*.deb ncclinsp-dev_*.deb); }

fresh_tree build build-essential $(build_depends)
mkdir "$T/build/src"
check "packages are built with the declared dependencies only" build
check "there are as many as are declared" test "$(ls "$T"/build/out/deb/*_*.deb | grep -vc dbgsym)" -eq \
	"$(grep -c "^Package:" packaging/debian/control)"
if [ -d "$B/deb" ]; then
	check "they are those that were built outside, to the byte" \
		diff <(sums "$T/build/out/deb") <(sums "$B/deb")
else
	skip "they are those that were built outside" "there are none in $B/deb"
fi
done_testing

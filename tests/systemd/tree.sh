# SPDX-License-Identifier: Apache-2.0
# Debian trees for tests of packages: made once per build folder, by mmdebstrap.
# Sourced after tests/system/lib.sh.

SUITE=bookworm
TREES=$B/trees

[ "$(id -u)" -eq 0 ] || skip_all "needs root"
for need in mmdebstrap systemd-nspawn dpkg-deb; do
	command -v $need >/dev/null || skip_all "needs $need (mmdebstrap, systemd-container, dpkg)"
done

# The names of a list of dependencies: first alternatives, without versions.
dependencies() { (cat; echo) | tr ',' '\n' | sed -e 's/[|(].*//' -e 's/[[:space:]]//g' -e '/^\$/d' -e '/^$/d'; }

# fresh_tree NAME PACKAGE...: a new tree at $T/NAME with these packages in it.
fresh_tree() {
	local name=$1 list
	shift
	list=$(printf '%s\n' "$@" | sort -u | paste -sd ,)
	mkdir -p "$TREES" "$T/$name"
	if [ "$(cat "$TREES/$name.list" 2>/dev/null)" != "$list" ]; then
		mmdebstrap --quiet --variant=minbase --include="$list" $SUITE "$TREES/$name.tar" \
			>"$T/mmdebstrap.log" 2>&1 ||
			skip_all "no Debian tree can be made: $(grep -m 1 "^E:" "$T/mmdebstrap.log")"
		echo "$list" >"$TREES/$name.list"
	fi
	tar -C "$T/$name" -xf "$TREES/$name.tar"
}

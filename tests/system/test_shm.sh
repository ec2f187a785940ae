#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A shared-memory directory that is full, read-only or missing: the job goes on,
# and one line says why nothing is recorded.
. "$(dirname "$0")/lib.sh"

SCENARIO=$TOP/tests/scenarios/smoke.scn
[ "$(id -u)" -eq 0 ] || skip_all "needs root to mount a small file system"
unshare -m true 2>/dev/null || skip_all "a private mount namespace is refused here"

export NCCL_DEBUG=WARN	# NCCL's logger is the only voice the plugin has

# in_dir MOUNT-OPTIONS: the job with its segment in a file system of its own.
in_dir() {
	mkdir -p "$T/small"
	unshare -m sh -c 'mount -t tmpfs -o "$1" tmpfs "$2" && shift 2 && exec "$@"' sh "$1" "$T/small" \
		env NCCLINSP_SHM_DIR="$T/small" "$B/nccl-sim" --plugin "$PLUGIN" "$SCENARIO" 2>"$T/err"
}

# Each of the scenario's four processes says why, once.
one_line() {
	[ "$(grep -c 'ncclinsp.*nothing is recorded' "$T/err")" -eq 4 ] || { cat "$T/err"; return 1; }
	grep -q "ncclinsp.*$1" "$T/err" || { cat "$T/err"; return 1; }
}

check "the job runs where there is no space at all" in_dir size=16k
check "one line a process says so" one_line 'No space left'
check "the job runs where a segment fits and its lanes do not" in_dir size=400k
check "the job runs where there is no inode" in_dir size=16m,nr_inodes=1
check "one line a process says so" one_line 'No space left'
check "the job runs where the directory is read-only" in_dir size=16m,ro
check "one line a process says so" one_line 'Read-only file system'
check "the job runs where the directory is missing" \
	sh -c 'NCCLINSP_SHM_DIR="$1/none" "$2" --plugin "$3" "$4" 2>"$1/err"' sh "$T" "$B/nccl-sim" "$PLUGIN" "$SCENARIO"
check "one line a process says so" one_line 'No such file'

# What a program serves may hang, and each store into it with it.
if [ -c /dev/fuse ] && command -v bindfs >/dev/null; then
	mkdir "$T/behind" "$T/served"
	bindfs -f "$T/behind" "$T/served" 2>"$T/bindfs" &
	started+=("$!")
	trap 'umount -l "$T/served"; finish' EXIT
	is_served() { grep -qs " $T/served fuse" /proc/mounts; }
fi
if [ -d "$T/served" ] && wait_until 20 is_served; then
	check "the job runs where a program serves the directory" \
		sh -c 'NCCLINSP_SHM_DIR="$1/served" "$2" --plugin "$3" "$4" 2>"$1/err"' sh "$T" "$B/nccl-sim" "$PLUGIN" "$SCENARIO"
	check "one line a process says so" one_line 'It is not in memory'
	check "and nothing is written there" test -z "$(ls "$T/behind")"
else
	skip "the job runs where a program serves the directory" "there is no FUSE"
fi
done_testing

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The plugin built for 64-bit Arm, where a cross compiler and an emulator are: what it
# may need of its system, and that this machine's daemon reads what it writes.  More of
# it in `make check-aarch64`.
. "$(dirname "$0")/lib.sh"
cd "$TOP" || exit 1

for need in aarch64-linux-gnu-gcc qemu-aarch64-static; do
	command -v $need >/dev/null ||
		skip_all "needs $need (Debian: gcc-aarch64-linux-gnu, qemu-user-static)"
done
LIBC=/usr/aarch64-linux-gnu
[ -e $LIBC/lib/libc.so.6 ] && [ -e $LIBC/include/stdint.h ] || skip_all "needs libc6-dev-arm64-cross"

A=$B/arm
P=$A/libnccl-profiler-insp.so
# It needs none of the libraries that this machine has.
export PKG_CONFIG_LIBDIR=$T
check "the plugin is built, without a warning" \
	make --no-print-directory -s B="$A" CC=aarch64-linux-gnu-gcc WERROR=1 "$P" "$A/nccl-flood"
[ -e "$A/nccl-flood" ] || done_testing
versions() { aarch64-linux-gnu-objdump -T "$P" | grep -o 'GLIBC_[0-9.]*' | sort -u; }
check "it needs no symbol that is newer than the first glibc for this processor" \
	test "$(versions)" = GLIBC_2.17
check "and no library but that" test "$(aarch64-linux-gnu-readelf -d "$P" |
	sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -v ld-linux)" = libc.so.6
check "it reads the processor's own counter" \
	sh -c 'aarch64-linux-gnu-objdump -d "$1" | grep -q cntvct_el0' sh "$P"
# The file has up to 4 KiB more, for systems with pages of 64 KiB.
check "code and data are no larger than 64 KiB" \
	test "$(aarch64-linux-gnu-size "$P" | awk 'END { print $1 + $2 }')" -le 65536

start_daemon
# Addresses of the emulated program alone: the directory of segments is this machine's.
qemu-aarch64-static -L $LIBC "$A/nccl-flood" "$P" 2 3 >"$T/flood" 2>"$T/flood.err" &
started+=("$!")
check "it runs" wait_until 60 grep -q ready "$T/flood"
check "this machine's daemon reads what it has written" wait_until 30 api_is processes \
	'[.processes[] | select(.state == "live" and .records == 6 and .comms == 3)] | length == 2'
check "and believes it all" api_is status '.ingest.rejected == 0 and .ingest.lost == 0'
check "with the operations in it" wait_until 30 api_is comms \
	'[.comms[].local_ranks[] | select(.in_flight + (.last_seq | length) > 0)] | length == 6'
done_testing

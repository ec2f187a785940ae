#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the path of an installed libnccl that the tests here can run on; or says
# why there is none and exits 1.  NCCL_LIB names one that is installed elsewhere.

no() { echo "$*"; exit 1; }

candidates() {
	[ -n "${NCCL_LIB:-}" ] && { echo "$NCCL_LIB"; return; }
	ldconfig -p 2>/dev/null | sed -n 's/^\tlibnccl\.so\.2 .*=> //p'
	for dir in ${CUDA_HOME:+"$CUDA_HOME"} /usr/local/cuda*; do
		ls "$dir"/lib64/libnccl.so.2 "$dir"/lib/libnccl.so.2 2>/dev/null
	done
}

[ "$(uname -m)" = x86_64 ] || no "only x86_64 has the jumps that are written over CUDA's functions"
lib=$(candidates | head -n 1)
[ -n "$lib" ] || no "no libnccl.so.2 is installed (NCCL_LIB names one)"
[ -r "$lib" ] || no "cannot read $lib"
command -v gdb >/dev/null || no "gdb, which reads layouts, is not installed"
gdb -nx -batch -ex 'output &((struct ncclKernelComm *)0)->workStarted' "$lib" 2>/dev/null | grep -q 0x ||
	no "$lib has no debug information, or is older than 2.28"
echo "$lib"

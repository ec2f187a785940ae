#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bundle.sh BUILD TO: one folder with all that run.sh needs, for machines that have
# a GPU and nothing of ours.  Tools come with their libraries, the C library and
# its loader among them; the job and what NCCL loads must do with the machine's.
set -eu
B=$1
TO=$2
HERE=$(cd "$(dirname "$0")" && pwd)
TOOLS="$B/ncclinspd $B/ncclinsp $B/nccl-replay $(command -v jq) $(command -v curl)"

rm -rf "$TO"
mkdir -p "$TO/bin" "$TO/lib"
cp "$HERE"/run.sh "$HERE"/*.jq "$HERE"/*.awk "$HERE"/*.py "$HERE"/README.md "$TO"
cp $TOOLS "$B/gpu/gpu-job" "$TO/bin"
cp "$B"/libnccl-profiler-*.so "$B/gpu/libnccl-profiler-empty.so" "$TO/lib"
# "name => path (address)", and the loader as "path (address)"
ldd $TOOLS | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p; s/^\t\(\/[^ ]*ld-linux[^ ]*\).*/\1/p' | sort -u |
	xargs cp -L -t "$TO/lib"

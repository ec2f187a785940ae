#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# layout.sh LIBNCCL HEADER: what the library's debug information says about the
# structures that NCCL shares with kernels and with CUDA, as macros:
#
#   AT_<struct>_<member>     offset in bytes; of a bit field, of the byte it begins in
#   BIT_, WIDTH_             of a bit field: its first bit there, how many
#   LEN_<struct>_<member>    elements of an array
#   SIZE_<struct>            in bytes
#
# HEADER keeps its time if nothing changed.

lib=$1 header=$2
structs='ncclDevKernelArgs ncclDevWorkBatch ncclDevWorkColl ncclDevWorkCollReg ncclDevWorkP2p
	ncclKernelComm ncclKernelCommAndChannels ncclDevChannel ncclDevChannelPeer ncclConnInfo
	ncclConnFifo ncclRecvMem ncclDevProfiler cudaDeviceProp'
enumerators='ncclDevWorkTypeP2p ncclDevWorkTypeColl ncclDevWorkTypeCollReg
	ncclDevWorkStorageTypeArgs'

ask() {
	for s in $structs; do
		printf 'echo struct %s\\n\nptype /o struct %s\n' "$s" "$s"
	done
	for e in $enumerators; do
		printf 'printf "enum %s %%d\\n", (int)%s\n' "$e" "$e"
	done
}

# Members of structures within come after those of the structure itself or have
# names of their own: the first of a name is meant.
macros='
function put(kind, name, value) {
	if (!((kind, s, name) in seen))
		printf "#define %s_%s%s %s\n", kind, s, name, value
	seen[kind, s, name] = 1
}
$1 == "struct" && NF == 2 { s = $2; next }
$1 == "enum" && NF == 3 { printf "#define %s %s\n", $2, $3; next }
/total size \(bytes\)/ { match($0, /[0-9]+ \*/); size = substr($0, RSTART, RLENGTH - 2); next }
/^ *}$/ { if (s != "") put("SIZE", "", size); next }
/;$/ {
	head = $0; sub(/\*\/.*/, "", head)
	offset = head; gsub(/[^0-9: ]/, "", offset); split(offset, number, /[: ]+/)
	first = number[1] == "" ? 2 : 1
	body = $0; sub(/^.*\*\//, "", body); sub(/;$/, "", body)
	width = 0
	if (match(body, / : [0-9]+$/)) {
		width = substr(body, RSTART + 3); body = substr(body, 1, RSTART - 1)
	}
	len = 0
	if (match(body, /\[[0-9]+\]$/)) {
		len = substr(body, RSTART + 1, RLENGTH - 2); body = substr(body, 1, RSTART - 1)
	}
	sub(/^.*[ *}]/, "", body)
	if (len) put("LEN", "_" body, len)
	if (head !~ /\|/) next
	put("AT", "_" body, number[first])
	if (width) { put("BIT", "_" body, number[first + 1]); put("WIDTH", "_" body, width) }
}'

mkdir -p "$(dirname "$header")" && ask >"$header.ask" || exit
{
	echo "/* Made by layout.sh from the debug information of the library named here. */"
	printf '#define NCCL_LIBRARY "%s"\n' "$lib"
	gdb -nx -batch -x "$header.ask" "$lib" | awk "$macros"
} >"$header.tmp"
rm -f "$header.ask"
if cmp -s "$header.tmp" "$header"; then rm "$header.tmp"; else mv "$header.tmp" "$header"; fi

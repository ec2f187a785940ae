#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# prove starts every test program through this: time limits that fit the build,
# and whatever its sanitizer needs.

case $1 in
*-address/*)
	CK_TIMEOUT_MULTIPLIER=3
	UBSAN_OPTIONS=print_stacktrace=1
	# The stack of a function that has returned is somebody else's: gcc looks if asked.
	ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_stack_use_after_return=1
	export CK_TIMEOUT_MULTIPLIER UBSAN_OPTIONS ASAN_OPTIONS
	;;
*/test_*_cost)
	# A trap for each instruction takes long where the machine is itself somebody's guest.
	CK_TIMEOUT_MULTIPLIER=4
	export CK_TIMEOUT_MULTIPLIER
	;;
*-thread/*)
	CK_TIMEOUT_MULTIPLIER=5
	export CK_TIMEOUT_MULTIPLIER
	# Kernels that randomise 32 bits of addresses leave it no room.
	setarch "$(uname -m)" -R true 2>/dev/null && set -- setarch "$(uname -m)" -R "$@"
	;;
esac
exec timeout -k 5 400 "$@"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The libraries that jobs load, built here, in a system with an older C library: that of
# the oldest Debian that is still served.  What they may need is looked at in
# test_plugin_library.c; this is whether a loader agrees.
. "$(dirname "$0")/../system/lib.sh"
. "$(dirname "$0")/tree.sh"

SUITE=bullseye
fresh_tree old perl-base
loads() {
	cp "$1" "$T/old/root/${1##*/}"
	chroot "$T/old" perl -MDynaLoader -e \
		'DynaLoader::dl_load_file($ARGV[0], 0) or die DynaLoader::dl_error(), "\n"' "/root/${1##*/}"
}
older() { [ "$(chroot "$T/old" ldd --version | sed -n '1s/.* //p')" != "$(ldd --version | sed -n '1s/.* //p')" ]; }
check "its C library is another one" older
printf '#include <pthread.h>\nvoid *f(void *p) { pthread_t t; pthread_create(&t, 0, f, p); return 0; }\n' |
	gcc -shared -fPIC -x c -o "$T/newer.so" -
check "what is built here by itself does not load there" exits 255 'GLIBC_2\.[0-9]+. not found' loads "$T/newer.so"
check "the plugin does" loads "$PLUGIN"
check "so does the library that records" loads "$B/libnccl-profiler-record.so"
done_testing

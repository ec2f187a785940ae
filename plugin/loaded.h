/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUGIN_LOADED_H
#define PLUGIN_LOADED_H

/* Libraries that the job has loaded itself: nothing is ever loaded by us. */

#include <stdbool.h>
#include <stdint.h>

/*
 * dlopen() and its like lived in libdl until glibc 2.34, and their names are bound to
 * new versions since.  Asked for weakly and in their first version they are found wherever
 * they are: whoever loaded this library has used them.
 */
#if defined(__x86_64__)
#define LOADED_VERSION "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define LOADED_VERSION "GLIBC_2.17"
#endif
#define LOADED_FIRST(name)							\
	extern __typeof__(name) first_##name __attribute__((weak));		\
	__asm__(".symver first_" #name ", " #name "@" LOADED_VERSION)

/* A handle for loaded_symbol(), to be given back to loaded_close(); NULL: it is not there. */
void *loaded_library(const char *name);
void *loaded_symbol(void *library, const char *name);
void loaded_close(void *library);

/*
 * ncclGetVersion() of the NCCL that this address lies in, 23007 for 2.30.7; 0: not known.
 * Takes the loader's lock: hold none.
 */
uint32_t loaded_nccl_version(const void *address);

/*
 * Whether this address lies in AMD's RCCL, by its file's name: it answers to all of NCCL's.  A
 * logger's does, also where another library calls for it.  Takes that lock as well.
 */
bool loaded_is_rccl(const void *address);

#endif

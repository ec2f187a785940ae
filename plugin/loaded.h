/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUGIN_LOADED_H
#define PLUGIN_LOADED_H

/* Libraries that the job has loaded itself: nothing is ever loaded by us. */

#include <stdint.h>

/* A handle for loaded_symbol(), to be given back to loaded_close(); NULL: it is not there. */
void *loaded_library(const char *name);
void *loaded_symbol(void *library, const char *name);
void loaded_close(void *library);

/*
 * ncclGetVersion() of the NCCL that this address lies in, 23007 for 2.30.7; 0: not known.
 * Takes the loader's lock: hold none.
 */
uint32_t loaded_nccl_version(const void *address);

#endif

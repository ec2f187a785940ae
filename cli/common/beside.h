/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_COMMON_BESIDE_H
#define CLI_COMMON_BESIDE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Find a file of the same build or installation as this program: beside it, or in PREFIX/`dir`
 * where this is in PREFIX/bin.  False: neither is there.
 */
bool beside_find(const char *name, const char *dir, char *path, size_t size);

/* Is the plugin, or the chain, in the text by the name of its file?  NVIDIA's has one like it. */
bool beside_names_plugin(const char *text);

#endif

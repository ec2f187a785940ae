/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_BASE_BOOT_H
#define READER_BASE_BOOT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The kernel's id of this boot, binary; what was written under another one has times
 * that mean nothing now.  False: it is not readable.
 */
bool boot_id_read(uint8_t id[16]);

#endif

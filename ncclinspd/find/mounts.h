/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FIND_MOUNTS_H
#define NCCLINSPD_FIND_MOUNTS_H

/*
 * The mount at /dev/shm for a process, told by the kernel without touching any file system:
 * one that a program or a server serves may not answer.
 */

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/*
 * Reads a /proc/<pid>/mountinfo.  True, and the device: a tmpfs is mounted on /dev/shm, or on
 * /dev, and on the way to it lies nothing that is not the kernel's own.
 */
bool mounts_find_shm(FILE *mountinfo, dev_t *dev);

#endif

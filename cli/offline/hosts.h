/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_OFFLINE_HOSTS_H
#define CLI_OFFLINE_HOSTS_H

/*
 * Names of nodes as Slurm writes them: "gpu[001-064,070],login", several brackets in one name
 * too; "slurm:4711": the nodes of that job, as squeue tells.
 */

#include "util/list.h"

#define HOSTS_MOST 16384

struct hosts {
	LIST(char *) names;	/* each once, in the order in which they were named */
};

#define HOSTS_WHY 256

/* -EINVAL: why[] says what is wrong with the text.  hosts_deinit() in any case. */
int hosts_read(struct hosts *h, const char *text, char why[HOSTS_WHY]);
void hosts_deinit(struct hosts *h);

#endif

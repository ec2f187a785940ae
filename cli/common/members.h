/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_COMMON_MEMBERS_H
#define CLI_COMMON_MEMBERS_H

/*
 * Each rank of this node with its process, user, job and GPU.  Rows that tell nothing of these
 * are filtered by them all the same.
 */

#include "cli/common/cli.h"

/* Do the options ask for a user, a job or a GPU? */
bool members_asked(const struct cli *cli);

/* Ask the daemon; new members, for members_want(), in *members.  As client_get(). */
int members_get(const struct cli *cli, json_t **members);

/* The same from the answers of /v1/processes and /v1/comms. */
json_t *members_join(const json_t *processes, const json_t *comms);

/* Has the row, which tells all of these itself, the pid, user, job and GPU asked for? */
bool members_fit(const struct cli *cli, const json_t *row);

/*
 * Does the row concern one that has the pid, user, job and GPU asked for?  Rows are
 * about a process (pid), a communicator (comm_id, comm_name, nranks), a rank of it
 * (rank), or a GPU (gpu_uuid).
 */
bool members_want(const struct cli *cli, const json_t *members, const json_t *row);

#endif

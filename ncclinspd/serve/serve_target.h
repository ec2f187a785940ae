/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_SERVE_SERVE_TARGET_H
#define NCCLINSPD_SERVE_SERVE_TARGET_H

/* The target of a PUT: the processes that it is about, and what is answered of them. */

#include "ncclinspd/serve/serve_routes.h"

/*
 * The target of a PUT is a wish: its kind, pid, job, id, uid and everybody.
 * target_read() takes these and dry_run from the body and gives all other members to `other`;
 * target_find() sees to it that there are such processes, and that they may be changed.
 * 0, or -EINVAL, -ESRCH, -EPERM, or what `other` returned.
 */
struct wish;
int target_read(struct request *r, struct wish *w, serve_member_fn *other, void *arg);
int target_find(struct request *r, struct wish *w);

/* The live ones: step from *i = 0 until NULL. */
struct process *target_next(const struct request *r, const struct wish *w, size_t *i);

/* The answer to a wish: its members, and whom it is about. */
void serve_put_outcome(struct request *r, struct json *j, const struct wish *w);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_METRICS_INSPECTOR_SERIES_H
#define NCCLINSPD_METRICS_INSPECTOR_SERIES_H

/*
 * The series of NVIDIA's NCCL Inspector, by its names, labels and rules (inspector_prom.cc of
 * NCCL 2.30), so that dashboards that were made for it show what ours sees.  Only operations of
 * 8 KiB and more that were timed on the GPU count, those of the last 15 to 30 s.
 */

#include "reader/base/model.h"

struct accounts;
struct exposition;
struct inspector_series;

/* Combinations of labels, two series each; of more the oldest go, of the user who has most. */
#define INSPECTOR_ROWS	2000

/* Returns 0 or -ENOMEM.  `host` and `accounts` (NULL: each uid is one) are kept. */
int inspector_series_new(struct inspector_series **out, const char *host,
			 const struct accounts *accounts, uint64_t seed);
void inspector_series_free(struct inspector_series *s);

/* A finished operation of that process. */
void inspector_series_op(struct inspector_series *s, const struct process *p, const struct op *op,
			 uint64_t now_ns);

/* All that `uid` may see, or everything. */
void inspector_series_write(const struct inspector_series *s, struct exposition *e, bool all,
			    uid_t uid, uint64_t now_ns);

#endif

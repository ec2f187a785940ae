/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_VIEW_COLUMNS_H
#define CLI_VIEW_COLUMNS_H

/* The columns of rows that the daemon answers, where more than one command shows them. */

#include "cli/common/listing.h"

extern const struct column ops_columns[];
extern const size_t ops_column_count;
extern const struct column inflight_columns[];
extern const size_t inflight_column_count;
extern const struct column peers_columns[];
extern const size_t peers_column_count;
extern const struct column run_columns[];
extern const size_t run_column_count;

/* Rows of /v1/inflight with "progress", the state in words. */
listing_dress inflight_dress;

/* Rows of /v1/peers with "mean", what a step spent in each state. */
listing_dress peers_dress;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the live view: mostly those that commands print. */
#include "cli/view/columns.h"
#include "cli/view/findings.h"
#include "cli/view/view.h"

/* The meaning of each column, in the order of the columns. */
#define MEANINGS(table) static const char *const table##_meanings[]
MEANINGS(rank) = {
#include "schema/rank_meanings.h"
};
MEANINGS(ops) = {
#include "schema/ops_meanings.h"
};
MEANINGS(peers) = {
#include "schema/peers_meanings.h"
};
MEANINGS(inflight) = {
#include "schema/inflight_meanings.h"
};
MEANINGS(finding) = {
#include "schema/finding_meanings.h"
};
MEANINGS(job) = {
#include "schema/job_meanings.h"
};
MEANINGS(comm) = {
#include "schema/comm_meanings.h"
};
MEANINGS(tree) = {
#include "schema/tree_meanings.h"
};
MEANINGS(run) = {
#include "schema/run_meanings.h"
};

const struct view_table_type view_tables[VIEW_TABLES] = {
	[VIEW_RANKS] = { "Ranks", rank_columns, &rank_column_count, rank_meanings,
			 "no rank is alive",
			 "comm_id/comm_name/nranks/rank/pid" },
	[VIEW_OPS] = { "Operations", ops_columns, &ops_column_count, ops_meanings,
		       "no operation has finished lately",
		       "comm_id/comm_name/nranks/func/size_class/algo/proto/timing_source" },
	[VIEW_PEERS] = { "Peers", peers_columns, &peers_column_count, peers_meanings,
			 "no transfer over a network has been seen",
			 "comm_id/comm_name/nranks/rank/pid/direction/peer/channel" },
	[VIEW_INFLIGHT] = { "In flight", inflight_columns, &inflight_column_count,
			    inflight_meanings,
			    "nothing is in flight", "pid/token" },
	[VIEW_FINDINGS] = { "Findings", finding_columns, &finding_column_count,
			    finding_meanings,
			    "nothing was found in the last hour", "id" },
	[VIEW_JOBS] = { "Jobs", job_columns, &job_column_count, job_meanings,
			"no job is alive", "job/user" },
	[VIEW_COMMS] = { "Communicators", comm_columns, &comm_column_count, comm_meanings,
			 "no communicator is alive", "comm_id/comm_name/nranks/job/user" },
	[VIEW_TREE] = { "Ranks", tree_columns, &tree_column_count, tree_meanings,
			"no rank is alive",
			"branch/job/user/comm_id/comm_name/nranks/rank/pid" },
	[VIEW_KINDS] = { "Operations", ops_columns, &ops_column_count, ops_meanings,
			 "no operation has finished lately; 4 shows what is in flight",
			 "comm_id/comm_name/nranks/rank/func/size_class/algo/proto/timing_source" },
	[VIEW_RUNS] = { "Single operations", run_columns, &run_column_count, run_meanings,
			"no such operation is remembered", "pid/token/func" },
};

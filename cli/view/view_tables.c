/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the live view: mostly those that commands print. */
#include "cli/view/columns.h"
#include "cli/view/findings.h"
#include "cli/view/view.h"

const struct view_table_type view_tables[VIEW_TABLES] = {
	[VIEW_RANKS] = { "Ranks", rank_columns, &rank_column_count, "no rank is alive",
			 "comm_id/comm_name/nranks/rank/pid" },
	[VIEW_OPS] = { "Operations", ops_columns, &ops_column_count,
		       "no operation has finished lately",
		       "comm_id/comm_name/nranks/func/size_class/algo/proto/timing_source" },
	[VIEW_PEERS] = { "Peers", peers_columns, &peers_column_count,
			 "no transfer over a network has been seen",
			 "comm_id/comm_name/nranks/rank/pid/direction/peer/channel" },
	[VIEW_INFLIGHT] = { "In flight", inflight_columns, &inflight_column_count,
			    "nothing is in flight", "pid/token" },
	[VIEW_FINDINGS] = { "Findings", finding_columns, &finding_column_count,
			    "nothing was found in the last hour", "id" },
	[VIEW_JOBS] = { "Jobs", job_columns, &job_column_count, "no job is alive", "job/user" },
	[VIEW_COMMS] = { "Communicators", comm_columns, &comm_column_count,
			 "no communicator is alive", "comm_id/comm_name/nranks/job/user" },
	[VIEW_TREE] = { "Ranks", tree_columns, &tree_column_count, "no rank is alive",
			"branch/job/user/comm_id/comm_name/nranks/rank/pid" },
	[VIEW_KINDS] = { "Operations", ops_columns, &ops_column_count,
			 "no operation has finished lately; 4 shows what is in flight",
			 "comm_id/comm_name/nranks/rank/func/size_class/algo/proto/timing_source" },
	[VIEW_RUNS] = { "Single operations", run_columns, &run_column_count,
			"no such operation is remembered", "pid/token/func" },
};

/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp comms: communicators, one row per rank that lives on this node. */
#include "cli/base/member.h"
#include "cli/common/listing.h"
#include "schema/fields.h"

#define COMM_PLACE " "	/* key of a row: which of the answer's communicators it is of */

static const struct column columns[] = {
#include "schema/comms_columns.h"
};

/* {"AllReduce": 5121, "AllGather": 7} -> "AllReduce 5121, AllGather 7" */
static json_t *comm_last_seq(const json_t *last_seq)
{
	char text[256] = "";
	size_t used = 0;
	const char *func;
	json_t *seq;

	json_object_foreach((json_t *)last_seq, func, seq) {
		if (!json_is_integer(seq) || used >= sizeof(text))
			continue;
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "%s%s %" JSON_INTEGER_FORMAT, used ? ", " : "", func,
					 json_integer_value(seq));
	}
	return json_text(text);
}

/* One row per local rank, with its communicator's own members. */
static json_t *comms_reshape(const json_t *comms)
{
	json_t *rows = json_array();
	size_t i;
	json_t *comm;

	json_array_foreach((json_t *)comms, i, comm) {
		json_each(rank, json_object_get(comm, "local_ranks")) {
			json_t *row = json_copy(comm);

			json_object_del(row, "local_ranks");
			json_object_set(row, LISTING_SOURCE, rank);
			json_object_set_new(row, COMM_PLACE, json_integer((json_int_t)i));
			json_object_update(row, rank);
			json_object_set_new(row, "last",
					    comm_last_seq(json_object_get(rank, "last_seq")));
			json_array_append_new(rows, row);
		}
	}
	return rows;
}

/*
 * The answer's own form keeps ranks inside communicators.  These come in the order of their
 * first rank, and their ranks in that of the rows.
 */
static json_t *comms_nest(const json_t *comms, const json_t *kept)
{
	json_auto_t *copies = json_array();
	json_t *all = json_array();
	size_t i;

	for (i = 0; i < json_array_size(comms); i++)
		json_array_append_new(copies, json_null());
	json_each(row, kept) {
		json_t *rank = json_object_get(row, LISTING_SOURCE);
		size_t at = (size_t)json_integer_value(json_object_get(row, COMM_PLACE));
		json_t *copy = json_array_get(copies, at);

		if (json_is_null(copy)) {
			copy = json_copy(json_array_get(comms, at));
			json_object_set_new(copy, "local_ranks", json_array());
			json_array_set_new(copies, at, copy);
			json_array_append(all, copy);
		}
		json_array_append(json_object_get(copy, "local_ranks"), rank);
	}
	return all;
}

int cmd_comms(struct cli *cli)
{
	static const struct listing listing = {
		.array = "comms",
		.asked = COMMS_FIELDS,
		LISTING_COLUMNS(columns),
		.nothing = "no communicator has been seen",
		.reshape = comms_reshape,
		.nested = comms_nest,
		.whole = true,
	};

	return listing_run(cli, &listing, "/v1/comms");
}

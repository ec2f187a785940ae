/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dumps of PyTorch's Flight Recorder, of any bytes: refused, or what is told of them is text that
 * does nothing to a terminal, in lines of bounded length.
 *
 * Input: the same file as the dump of two ranks.
 */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "cli/base/pickle.h"
#include "cli/offline/flight.h"

#define RANKS 3		/* one of them has no dump */
#define NOW_NS UINT64_C(1796000000000000000)

static void demand_line(const json_t *line)
{
	const char *text = json_string_value(line);

	demand(text && strlen(text) < 1024);
	for (; *text; text++)
		demand((unsigned char)*text >= ' ' && *text != 0x7f);
}

static void tell(struct flight *f, int32_t nranks)
{
	static struct local_rank_read rows[RANKS];
	struct shots_node node = { .host = "a", .clock = { NOW_NS, NOW_NS } };
	struct shots_rank ranks[RANKS];
	struct shots_comm comm = { .id = 1, .nranks = nranks,
				   .ranks = { .at = ranks, .n = (uint32_t)nranks,
					      .room = RANKS } };
	const int32_t named[] = { 1, 2 };
	json_t *lines = json_array(), *line;
	size_t i;

	for (int32_t r = 0; r < nranks; r++) {
		rows[r] = (struct local_rank_read){ .rank = r, .world_rank = r,
						    .last_op_mono_ns = NOW_NS - 1000 };
		ranks[r] = (struct shots_rank){ &rows[r], &node, NULL };
	}
	flight_tell(f, &comm, named, 2, lines);
	demand(json_array_size(lines));
	json_array_foreach(lines, i, line)
		demand_line(line);
	json_decref(lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct flight *f = flight_new("dumps");
	const char *why;

	for (int32_t r = 0; r < 2; r++)
		if (!flight_take(f, r, (const char *)data, size, &why))
			demand(why && *why);
	for (int32_t nranks = 2; nranks <= RANKS; nranks++)
		tell(f, nranks);
	flight_free(f);
	return 0;
}

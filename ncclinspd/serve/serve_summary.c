/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/summary: finished operations in sum. */
#include "ncclinspd/serve/serve_impl.h"

#include <errno.h>

#include "ncclinspd/sums/aggregate.h"
#include "reader/time/timeline.h"

static void summary_put_window(const struct serve *s, struct json *j, const void *row)
{
	static const char *const texts[] = {
#define X(NAME, text, slices, ns) [AGGREGATE_##NAME] = text,
		AGGREGATE_WINDOWS(X)
#undef X
	};

	(void)s;
	json_put_string(j, texts[((const struct aggregate_row *)row)->window]);
}

#include "schema/summary.h"

/* Behind the window the fields that each key of ?by= shows, in the order of AGGREGATE_KEYS. */
const struct field_table summary_tables[] = {
	{ NULL, summary_window_fields },
	{ NULL, summary_comm_fields },
	{ NULL, summary_rank_fields },
	{ NULL, summary_func_fields },
	{ NULL, summary_algo_fields },
	{ NULL, summary_proto_fields },
	{ NULL, summary_size_class_fields },
	{ NULL, summary_peer_fields },
	{ NULL, summary_tag_fields },
	{ NULL, summary_phase_fields },
	{ NULL, summary_sum_fields },
	{ NULL, NULL },
};

void serve_put_summary_row(const struct serve *s, struct json *j, const void *row,
			   const struct chosen *chosen)
{
	const struct aggregate_row *a = row;
	unsigned n = 0;

	for (size_t i = 0; summary_tables[i].fields; i++) {
		const struct field *fields = summary_tables[i].fields;
		bool is_key = i && summary_tables[i + 1].fields;

		if (is_key && !(a->by & 1u << (i - 1)))
			n += rows_count(fields);
		else
			n = rows_put_chosen(s, j, fields, row, chosen, n);
	}
}

static void summary_meanwhile(void *arg)
{
	serve_meanwhile(arg);
}

int serve_visit_sums(struct request *r, aggregate_row_fn *visit, void (*restart)(void *arg),
		     void *arg)
{
	struct serve *s = r->serve;
	struct aggregate_query query = {
		.windows = r->query.windows,
		.by = r->query.by,
		.all_users = r->viewer.all,
		.uid = r->viewer.uid,
		.meanwhile = summary_meanwhile,
		.meanwhile_arg = s,
	};
	int err = aggregate_query(s->source.aggregate, &query, s->now_ns, visit, arg);

	if (err == -EAGAIN) {
		restart(arg);
		query.meanwhile = NULL;
		err = aggregate_query(s->source.aggregate, &query, s->now_ns, visit, arg);
	}
	return err;
}

static bool summary_keep_row(const struct aggregate_row *row, void *arg)
{
	struct aggregate_row *copy = listing_add(arg);

	if (copy)
		*copy = *row;
	return copy;
}

static void drop_rows(void *arg)
{
	listing_clear(arg);
}

int serve_take_summary(struct request *r, struct sent_listing *l)
{
	return serve_visit_sums(r, summary_keep_row, drop_rows, l);
}

int serve_summary(struct request *r, struct answer *a)
{
	struct sent_listing *l = listing_new(r->serve, "rows", sizeof(struct aggregate_row),
					     serve_put_summary_row, &r->chosen);

	if (!l || serve_take_summary(r, l) < 0) {
		listing_free(l);
		return -ENOMEM;
	}
	listing_open(l, a);
	return 0;
}

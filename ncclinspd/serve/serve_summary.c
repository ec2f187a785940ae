/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/summary: finished operations in sum. */
#include <errno.h>

#include "ncclinspd/findings/diagnose.h"
#include "ncclinspd/serve/serve_parts.h"
#include "ncclinspd/sums/aggregate.h"
#include "reader/time/timeline.h"

static struct diagnose_usual summary_usual(const struct serve *s, const struct aggregate_row *row)
{
	struct diagnose_usual usual;

	if (s->source.diagnose && diagnose_usual(s->source.diagnose, row, &usual))
		return usual;
	return (struct diagnose_usual){ .ns = UNKNOWN_U64, .busbw_gbs = -1 };
}

#include "schema/summary.h"

void serve_put_summary_row(const struct serve *s, struct json *j, const void *row,
			   const struct chosen *chosen)
{
	const struct aggregate_row *a = row;

	rows_put_keyed(&s->writer, j, summary_tables, a->by, row, chosen);
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
		.meanwhile = serve_meanwhile_arg,
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

	return listing_answer(l, l ? serve_take_summary(r, l) : 0, a);
}

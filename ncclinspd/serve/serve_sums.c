/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sums of a snapshot: operations since the start, with what was added since the
 * snapshot before, network links and queues, and ranks.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/serve/serve_parts.h"
#include "ncclinspd/sums/aggregate.h"
#include "ncclinspd/sums/links.h"
#include "util/list.h"

#define KEYS (AGGREGATE_BY_COMM | AGGREGATE_BY_RANK | AGGREGATE_BY_FUNC | AGGREGATE_BY_ALGO | \
	      AGGREGATE_BY_PROTO | AGGREGATE_BY_SIZE)
#define SUMS	4096	/* rows, as many as there are cells */
#define RANKS	4096	/* rows, the worst first */

/* A row of the snapshot before. */
struct sum {
	uint64_t comm_id, size_class;
	name_t comm_name, func, algo, proto;
	int32_t nranks, rank;
	uint32_t source, zero;	/* no padding: rows are compared byte by byte */
	uint64_t ops, bytes, timed, timed_ns;
};

struct sum_list {
	LIST(struct sum);
};

struct serve_sums {
	uint64_t at_ns;		/* 0: there was none */
	struct sum_list before, now;	/* rows of the one before; of the one that is being made */
	bool of_all_time;	/* its sums are of all time: earlier ones can be taken off */
};

static struct sum sum_make(const struct aggregate_row *row)
{
	return (struct sum){
		.comm_id = row->has_comm_id ? row->comm_id : 0,
		.size_class = row->size_class, .comm_name = row->comm_name, .func = row->func,
		.algo = row->algo, .proto = row->proto, .nranks = row->nranks,
		.rank = row->rank, .source = row->source, .ops = row->ops, .bytes = row->bytes,
		.timed = row->exec.n,
		.timed_ns = row->exec.n ? row->exec.n * row->exec.mean_ns : 0,
	};
}

static int sums_by_key(const void *a, const void *b)
{
	return memcmp(a, b, offsetof(struct sum, ops));
}

#include "schema/sums.h"

/* Nothing is known of a row that has lost cells since. */
static void sums_put_since(const struct rows_writer *w, const struct serve_sums *sums,
			   struct json *j, const struct sum *now)
{
	struct sum since;
	static const struct sum nothing;
	const struct sum *before = bsearch(now, sums->before.at, sums->before.n,
					  sizeof(*now), sums_by_key);

	json_key(j, "since_previous");
	if (!before)
		before = &nothing;
	if (!sums->at_ns || !sums->of_all_time ||
	    now->ops < before->ops || now->bytes < before->bytes ||
	    now->timed < before->timed || now->timed_ns < before->timed_ns) {
		json_put_null(j);
		return;
	}
	since = (struct sum){
		.ops = now->ops - before->ops, .bytes = now->bytes - before->bytes,
		.timed = now->timed - before->timed, .timed_ns = now->timed_ns - before->timed_ns,
	};
	rows_put_object(w, j, since_fields, &since);
}

static void sums_put_row(const struct serve *s, struct json *j, const void *row,
			 const struct chosen *chosen)
{
	struct serve_sums *sums = s->sums;
	struct sum now = sum_make(row), *kept = list_add(&sums->now);

	serve_put_summary_row(s, j, row, chosen);
	sums_put_since(&s->writer, sums, j, &now);
	if (kept)
		*kept = now;
}

static struct serve_sums *sums_of_serve(struct serve *s)
{
	struct serve_sums *sums = s->sums ? s->sums : calloc(1, sizeof(*sums));

	s->sums = sums;
	if (!sums || (!sums->before.at && list_init(&sums->before, SUMS) < 0) ||
	    (!sums->now.at && list_init(&sums->now, SUMS) < 0))
		return NULL;
	return sums;
}

void serve_keep_sums(struct serve *s)
{
	struct serve_sums *sums = s->sums;
	struct sum_list before = sums->before;

	sums->before = sums->now;
	sums->now = before;
	sums->at_ns = s->now_ns;
	list_sort(&sums->before, sums_by_key);
}

static void sums_put_listing(struct json *j, const char *name, struct sent_listing *l, int error)
{
	json_key(j, name);
	if (error < 0)
		json_fail(j, error);
	else
		listing_put_all(l, j);
	listing_free(l);
}

/* The same rows as of GET /v1/ranks, over that window. */
void serve_put_ranks(struct request *r, struct json *j)
{
	struct sent_listing *l = serve_new_ranks(r->serve, NULL);

	r->query.limit = RANKS;
	sums_put_listing(j, "ranks", l, l ? serve_take_ranks(r, l) : -ENOMEM);
}

static void sums_put_operations(struct request *r, struct json *j)
{
	struct sent_listing *l = listing_new(r->serve, "rows", sizeof(struct aggregate_row),
					     sums_put_row, NULL);

	r->query.windows = 1u << r->query.window;
	r->query.by = KEYS;
	sums_put_listing(j, "rows", l, l ? serve_take_summary(r, l) : -ENOMEM);
}

void serve_put_links(struct request *r, struct json *j)
{
	struct sent_listing *l = serve_new_peers(r->serve, NULL);

	r->query.link_windows = 1u << LINKS_60S | 1u << LINKS_ALL;
	sums_put_listing(j, "peers", l, l ? serve_take_peers(r, l) : -ENOMEM);
	r->query.link_windows = 1u << LINKS_60S;	/* traces of long ago have no more */
	l = serve_new_queues(r->serve, NULL);
	sums_put_listing(j, "queues", l, l ? serve_take_queues(r, l) : -ENOMEM);
}

void serve_put_sums(struct request *r, struct json *j)
{
	struct serve *s = r->serve;
	struct serve_sums *sums = sums_of_serve(s);

	if (!sums) {
		json_fail(j, -ENOMEM);
		return;
	}
	sums->of_all_time = r->query.window == AGGREGATE_ALL;
	sums->now.n = 0;
	rows_put_time(&s->writer, j, "previous", sums->at_ns);
	sums_put_operations(r, j);
}

void serve_free_sums(struct serve *s)
{
	if (!s->sums)
		return;
	list_deinit(&s->sums->before);
	list_deinit(&s->sums->now);
	free(s->sums);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A kind of operation that became slower, what changed together with it, and the words. */
#include "judge/regression.h"

#include <inttypes.h>
#include <math.h>

#include "util/phrase.h"
#include "util/text.h"

#define LEAST_CHANGE	0.05	/* difference of logarithms: five percent */
#define MOST		(2.0 / 3)	/* part of all kinds: that many changed, so all did */

static bool row_has_changed(const struct regression_row *row)
{
	return row->change >= LEAST_CHANGE;
}

static bool row_is_told(const struct regression_row *row)
{
	return row->rated && row->alarm > 0 && row_has_changed(row);
}

/* ---- what changed together ------------------------------------------------------ */

static void tally_add(struct regression_tally *t, const struct regression_row *row)
{
	t->all++;
	t->changed += row_has_changed(row);
}

/* Did most of several do so? */
static bool tally_is_common(struct regression_tally t)
{
	return t.all > 1 && (double)t.changed >= MOST * (double)t.all;
}

bool regression_judge(const struct regression_row *rows, size_t n, size_t place,
		      struct regression_case *out)
{
	const struct regression_row *row = &rows[place];
	struct regression_case c = { .row = row };

	if (!row_is_told(row))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!rows[i].rated)
			continue;
		tally_add(&c.node, &rows[i]);
		if (rows[i].comm != row->comm)
			continue;
		tally_add(&c.comm, &rows[i]);
		if (row_is_told(&rows[i]) && rows[i].change > row->change)
			return false;
	}
	c.scope = c.node.all > c.comm.all && tally_is_common(c.node) ? REGRESSION_NODE :
		  tally_is_common(c.comm) ? REGRESSION_COMMUNICATOR : REGRESSION_KIND;
	*out = c;
	return true;
}

/* ---- words -------------------------------------------------------------------- */

static void say_others(struct phrase *text, const struct regression_case *c)
{
	if (c->scope == REGRESSION_NODE)
		phrase_add(text, "So do %" PRIu32 " of %" PRIu32 " kinds of operations on this "
			   "node, on several communicators: see the host, its GPUs' clocks and "
			   "its network interfaces", c->node.changed, c->node.all);
	else if (c->scope == REGRESSION_COMMUNICATOR)
		phrase_add(text, "So do %" PRIu32 " of %" PRIu32 " kinds of operations of this "
			   "communicator, but not those of others: see its links (ncclinsp "
			   "peers) and its other nodes", c->comm.changed, c->comm.all);
	else if (c->node.all > 1)
		phrase_add(text, "So do %" PRIu32 " of %" PRIu32 " kinds of operations here: "
			   "what runs beside this one may have changed", c->node.changed,
			   c->node.all);
	else
		phrase_add(text, "Nothing else here can be compared with it");
}

void regression_say(const struct regression_case *c, uint64_t now_ns, char *text, size_t size)
{
	const struct regression_row *row = c->row;
	struct phrase phrase;
	char bytes[32];

	text_bytes(bytes, sizeof(bytes), row->bytes);
	phrase_start(&phrase, text, size);
	phrase_add(&phrase, "%s of %s on %s (%s, %s) takes %.0f %% longer than usual: ", row->func,
		   bytes, row->comm_name ? row->comm_name : "its communicator", row->algo,
		   row->proto ? row->proto : "-", 100 * (exp(row->change) - 1));
	phrase_add_duration(&phrase, (uint64_t)row->recent_ns);
	phrase_add(&phrase, " instead of ");
	phrase_add_duration(&phrase, (uint64_t)row->usual_ns);
	phrase_add(&phrase, row->from_before ? " (as of an earlier job), for " : ", for ");
	phrase_add_duration(&phrase, now_ns - row->since_ns);
	phrase_add(&phrase, ". ");
	say_others(&phrase, c);
	phrase_add(&phrase, ".");
}

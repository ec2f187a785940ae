/* SPDX-License-Identifier: Apache-2.0 */
/* A slow link in words and in numbers. */
#include "ncclinspd/findings/slow_peer.h"

#include <inttypes.h>

#include "util/json.h"
#include "util/phrase.h"
#include "util/words.h"

/* Rows by enum delay_where. */
static const struct {
	enum verdict verdict;
	const char *action;
} wheres[] = {
	[DELAY_CHANNEL] = { VERDICT_CHANNEL,
			    "see the NIC that NCCL gave this channel: its port counters, its "
			    "rail" },
	[DELAY_LINK] = { VERDICT_LINK,
			 "check that path: port counters, cable, switch, congestion" },
	[DELAY_SEND_SIDE] = { VERDICT_SEND_SIDE,
			      "check what that rank sends with: its NIC, its PCIe lanes, its "
			      "proxy thread's CPU" },
	[DELAY_RECEIVE_SIDE] = { VERDICT_RECEIVE_SIDE,
				 "look at that rank's node: its NIC, its PCIe lanes, and "
				 "ncclinsp diagnose there" },
};

/* Possible causes of a slow link, by sender_cleared and receiver_cleared. */
static const char *const doubts[2][2] = {
	{ "neither has another link here to compare with: it may be the path, the sender's side or "
	  "the receiver's",
	  "others reach that receiver at full speed: it is the path or the sender's side" },
	{ "the sender's other links are not slow: it is the path or the receiver's side",
	  "other links of both are not slow: it is the path between them" },
};

static void say_subject(struct phrase *text, const struct slow_peer *p)
{
	const struct delay_hot *hot = p->hot;
	int pid = (int)p->who->pid;

	if (hot->where == DELAY_CHANNEL)
		phrase_add(text,
			   "channel %" PRIu32 " from rank %" PRId32 " (pid %d) to rank %" PRId32,
			   hot->channel, hot->from, pid, hot->to);
	if (hot->where == DELAY_LINK)
		phrase_add(text, "the link from rank %" PRId32 " (pid %d) to rank %" PRId32,
			   hot->from, pid, hot->to);
	if (hot->where == DELAY_SEND_SIDE)
		phrase_add(text, "all that rank %" PRId32 " (pid %d) sends", hot->from, pid);
	if (hot->where == DELAY_RECEIVE_SIDE)
		phrase_add(text, "all that is sent to rank %" PRId32, hot->to);
}

static void slow_peer_say(const struct slow_peer *p, struct finding *f)
{
	const struct delay_hot *hot = p->hot;
	struct phrase text;

	phrase_start(&text, f->text, sizeof(f->text));
	say_subject(&text, p);
	phrase_add(&text, p->by_room ? " waits for room at the receiver: %.1f times" :
				       " is slow: %.1f times", hot->ratio);
	phrase_add(&text, " the time for a byte of the %s %s seen here (%.2f against %.2f GB/s), "
		   "%.0f %% of wall time",
		   p->siblings ? "links of other communicators like" : "other links of",
		   p->who->comm_name ? p->who->comm_name : "its communicator", p->rate_gbs,
		   p->median_gbs, 100 * p->share);
	if (hot->where == DELAY_LINK && !p->by_room)
		phrase_add(&text, "; %s", doubts[hot->sender_cleared][hot->receiver_cleared]);
	if (p->by_room)
		phrase_add(&text, "; that rank comes late, its GPU does not take the data, or its "
			   "proxy thread does not run: ask the daemon of its node");
	else
		phrase_add(&text, "; %s", wheres[hot->where].action);
}

static void slow_peer_put_rank(struct json *j, const char *key, bool known, int32_t rank)
{
	json_key(j, key);
	if (known)
		json_put_i64(j, rank);
	else
		json_put_null(j);
}

static void slow_peer_show(const struct slow_peer *p, struct finding *f)
{
	const struct delay_hot *hot = p->hot;
	struct json j;

	json_init(&j, FINDING_EVIDENCE);
	json_begin(&j, '{');
	json_key(&j, "aspect");
	json_put_string(&j, p->aspect);
	slow_peer_put_rank(&j, "from", hot->where != DELAY_RECEIVE_SIDE, hot->from);
	slow_peer_put_rank(&j, "to", hot->where != DELAY_SEND_SIDE, hot->to);
	slow_peer_put_rank(&j, "channel", hot->where == DELAY_CHANNEL, (int32_t)hot->channel);
	json_key(&j, "ratio");
	json_put_rounded(&j, hot->ratio);
	json_key(&j, "share");
	json_put_rounded(&j, p->share);
	json_key(&j, "rate_gbs");
	json_put_rounded(&j, p->rate_gbs);
	json_key(&j, "median_gbs");
	json_put_rounded(&j, p->median_gbs);
	json_key(&j, "links");
	json_put_u64(&j, p->links);
	json_key(&j, "siblings");
	json_put_bool(&j, p->siblings);
	json_key(&j, "sender_cleared");
	json_put_bool(&j, hot->where == DELAY_LINK && hot->sender_cleared);
	json_key(&j, "receiver_cleared");
	json_put_bool(&j, hot->where == DELAY_LINK && hot->receiver_cleared);
	json_key(&j, "window_ns");
	json_put_u64(&j, p->window_ns);
	json_end(&j, '}');
	finding_set_evidence(f, &j);
	json_deinit(&j);
}

void slow_peer_describe(const struct slow_peer *p, struct finding *f)
{
	const struct delay_hot *hot = p->hot;
	bool pair = hot->where == DELAY_LINK || hot->where == DELAY_CHANNEL;

	f->verdict = words_verdict(wheres[hot->where].verdict)->name;
	f->ranks[0] = hot->where == DELAY_RECEIVE_SIDE ? hot->to : hot->from;
	f->nranks = 1;
	f->peer = pair ? hot->to : UNKNOWN_I32;
	slow_peer_say(p, f);
	slow_peer_show(p, f);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A slow link in words. */
#include "judge/slow_peer.h"

#include <inttypes.h>

#include "util/phrase.h"

#define LACKS		0.01	/* part of the time without a CPU that is worth a word, */
#define LACKS_OF_SHARE	0.1	/* part of the cost of the link */
#define RESENT		10	/* segments that are worth a word, */
#define RESENT_OF	1e-4	/* part of what the link sent meanwhile: TCP slows down by less */
#define SEGMENT_BYTES	1448	/* the payload of a segment on Ethernet */

/* Rows by enum delay_where. */
static const char *const actions[] = {
	[DELAY_CHANNEL] = "See the NIC that NCCL gave this channel: its port counters, its rail",
	[DELAY_LINK] = "Check that path: port counters, cable, switch, congestion",
	[DELAY_SEND_SIDE] = "Check that rank's NIC, its PCIe lanes, and the CPU of its progress "
			    "thread",
	[DELAY_RECEIVE_SIDE] = "Look at that rank's node: its NIC, its PCIe lanes, and "
			       "ncclinsp diagnose there",
};

/* Possible causes of a slow link, by sender_cleared and receiver_cleared. */
static const char *const doubts[2][2] = {
	{ "Neither has another link here to compare with: the cause may be the path, the sender's "
	  "side or the receiver's side",
	  "Others reach that receiver at full speed: the cause is the path or the sender's side" },
	{ "The sender's other links are not slow: the cause is the path or the receiver's side",
	  "The other links of both are not slow: the cause is the path between them" },
};

/* "rank 3 of dp (global rank 7, pid 4711, node7)" */
static void add_end(struct phrase *text, const struct slow_peer *p, const struct whom *w)
{
	phrase_add(text, "rank %" PRId32 " of ", w->rank);
	whom_add_comm(text, p->worst->comm_name, p->worst->comm_id);
	whom_add(text, w);
}

static void say_subject(struct phrase *text, const struct slow_peer *p)
{
	enum delay_where where = p->hot.where;

	if (where == DELAY_CHANNEL)
		phrase_add(text, "channel %" PRIu32 " from ", p->hot.channel);
	else
		phrase_add(text, where == DELAY_LINK ? "the link from " :
				 where == DELAY_SEND_SIDE ? "all that " : "all that is sent to ");
	if (where != DELAY_RECEIVE_SIDE)
		add_end(text, p, &p->from);
	if (where == DELAY_SEND_SIDE)
		phrase_add(text, " sends");
	else if (where != DELAY_RECEIVE_SIDE)
		phrase_add(text, " to ");
	if (where != DELAY_SEND_SIDE)
		add_end(text, p, &p->to);
}

/* Enough to be why, or a part of it: then nobody is sent to look at cables. */
static bool slow_peer_lacks_cpu(const struct slow_peer *p)
{
	return p->away >= LACKS && p->away >= LACKS_OF_SHARE * p->share;
}

static void add_cpu(struct phrase *text, const struct slow_peer *p)
{
	phrase_add(text, "The progress thread of ");
	if (p->away_rank == UNKNOWN_I32)
		phrase_add(text, "a rank here");
	else
		phrase_add(text, "rank %" PRId32, p->away_rank);
	phrase_add(text, " got no CPU for %.0f %% of the time, which makes transfers look slow: "
		   "give it a CPU, then look again", 100 * p->away);
}

static bool slow_peer_lost_segments(const struct slow_peer *p)
{
	const struct slow_peer_resent *resent = &p->resent;
	double sent = (double)p->worst->bytes / SEGMENT_BYTES / (double)p->window_ns *
		      (double)resent->window_ns;

	return p->aspect == SLOW_PEER_WIRE && resent->segments != UNKNOWN_U64 &&
	       resent->segments >= RESENT && (double)resent->segments >= RESENT_OF * sent;
}

/* "Its queue pair 279 (channel 2, NIC 0) takes 3.0 times as long as ..." */
static void add_queue(struct phrase *text, const struct slow_peer_queue *q)
{
	phrase_add(text, "Its %s %" PRIu32 " (channel %" PRIu32,
		   q->is_socket ? "socket" : "queue pair", q->number, q->channel);
	if (q->nic != UNKNOWN_I32)
		phrase_add(text, ", NIC %" PRId32, q->nic);
	phrase_add(text, ") takes %.1f times as long as the median of all %" PRIu32 " to that "
		   "rank. ", q->load.ratio, q->load.others + 1);
}

void slow_peer_say(const struct slow_peer *p, char *text, size_t size)
{
	const struct delay_hot *hot = &p->hot;
	bool by_room = p->aspect == SLOW_PEER_ROOM, by_queue = p->queue.load.others;
	struct phrase phrase;

	phrase_start(&phrase, text, size);
	say_subject(&phrase, p);
	phrase_add(&phrase, by_room ? " waits for room at the receiver: a byte waits" :
				      " is slow: a byte takes");
	phrase_add(&phrase, " %.1f times as long as on the %s ", hot->ratio,
		   p->siblings ? "links of other communicators like" : "other links of");
	whom_add_comm(&phrase, p->worst->comm_name, p->worst->comm_id);
	phrase_add(&phrase, " seen here (%.2f against %.2f GB/s), which takes %.0f %% of the "
		   "time. ", p->rate_gbs, p->median_gbs, 100 * p->share);
	if (by_queue)
		add_queue(&phrase, &p->queue);
	else if (hot->where == DELAY_LINK && !by_room)
		phrase_add(&phrase, "%s. ", doubts[hot->sender_cleared][hot->receiver_cleared]);
	if (p->nic.fault) {
		phrase_add(&phrase, "On this node, ");
		nic_say_cause(&phrase, &p->nic);
		phrase_add(&phrase, ". ");
	}
	if (slow_peer_lost_segments(p))
		phrase_add(&phrase, "%" PRIu64 " TCP segments from the sending process to %s "
			   "were sent again in the last %.0f s. ",
			   p->resent.segments, p->resent.to,
			   (double)p->resent.window_ns / 1e9);
	if (p->apart) {
		phrase_add(&phrase, "The progress thread of %s ",
			   hot->where == DELAY_RECEIVE_SIDE ? "the receiver" : "the sender");
		placement_say(&phrase, &p->placement);
		phrase_add(&phrase, ". ");
	}
	if (by_queue)
		phrase_add(&phrase, "Check the path that the network chose for it (ECMP), and the "
			   "NIC of its channel: port counters, cables, congestion");
	else if (slow_peer_lacks_cpu(p))
		add_cpu(&phrase, p);
	else if (by_room)
		phrase_add(&phrase, "The receiver comes late, its GPU does not take the data, or "
			   "its progress thread does not run: see ncclinsp diagnose on its node");
	else
		phrase_add(&phrase, "%s", actions[hot->where]);
	phrase_add(&phrase, ".");
}

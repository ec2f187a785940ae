/* SPDX-License-Identifier: Apache-2.0 */
/* Words of the daemon's answers, field by field: what explain knows beside findings. */
#include "util/glossary.h"

#include "util/list.h"

#define W(word, text)	{ .name = word, .meaning = text }

static const struct word grades[] = {
	W("found", "It is beyond the limits of its kind."),
	W("suspected",
	  "It is short of them so far: an operation in flight for 5 s that does not move, a rank "
	  "that comes last over the last minutes. It is no alarm yet; its text says when it will "
	  "be found. One that proves wrong leaves nothing."),
};

static const struct word severities[] = {
	W("info", "Worth knowing; nothing has to be done, and diagnose and check do not count it."),
	W("warning", "It costs time, or hides something."),
	W("critical", "A job stands still, or a process has died."),
};

static const struct word limits[] = {
	W("minimum", "The least limit that there is, --stall-min."),
	W("history", "8 times the 99th percentile of the same operation and size, the two "
		     "longest left out."),
	W("period", "Three iterations of the job."),
	W("no_history", "Nothing like it has been seen: six times --stall-min."),
	W("first_operation",
	  "The first one on its communicator, which sets up connections: twelve times "
	  "--stall-min."),
	W("maximum", "The greatest limit that there is, --stall-max."),
	W("absence",
	  "Half as much again as the longest time for which a rank of the communicator was "
	  "missing before, and came after all."),
	W("proof", "None: the cause is proven, and no time has to pass."),
};

static const struct word aspects[] = {
	W("wire", "A byte takes longer on the network."),
	W("room", "The receiver has no room for what is ready to be sent."),
};

static const struct word scopes[] = {
	W("kind",
	  "One kind of operation (function, size, algorithm) has become slower, others have "
	  "not."),
	W("communicator", "Most kinds of operations of one communicator have."),
	W("node", "Most kinds of operations on this node have."),
};

static const struct word processes[] = {
	W("live", "It runs, and holds the lock on its segment."),
	W("exited", "It ended by itself: the plugin said so."),
	W("died", "It ended without a word: a signal, a crash, the out-of-memory killer."),
	W("finalized", "Of a rank: its process runs, but has left the communicator."),
};

static const struct word levels[] = {
	W("off", "Nothing is asked of NCCL."),
	W("ops", "Which operations are posted; nothing of when they run."),
	W("kernel", "Also when their kernels run on the GPU."),
	W("net", "Also what goes over the network, by sums of each link."),
	W("trace", "Also each network transfer by itself."),
	W("mask", "What NCCL_PROFILE_EVENT_MASK says, or what somebody else has set."),
};

static const struct word reasons[REASON_END] = {
	[REASON_OUTSIDE] = {
	  .name = "somebody else has set what NCCL is asked for; that is left as it is",
	  .meaning = "NCCL's RAS can do so from 2.31 on (ncclras, or a client of its port).",
	  .action = "Nothing; the level comes back with the next job, or where what was set is set "
		"back to what this plugin had asked for." },
	[REASON_API] = {
	  .name = "kernels are not timed: this NCCL's profiler API is older than v5",
	  .meaning = "When kernels run cannot be known; times come from the network's part, "
		"or there are none.",
	  .action = "Use a newer NCCL (2.28 and later)." },
	[REASON_SETTING] = {
	  .name = "kernels are not timed: that is the setting",
	  .meaning = "NCCLINSP_KERNELS=never in the job's environment, or `kernels = never` in "
		"ncclinspd.conf when the job began.",
	  .action = "Start the job with another one: libnccl-profiler-insp(7)." },
	[REASON_ALLGATHERV] = {
	  .name = "kernels are not timed any more: Broadcasts of several roots in one group",
	  .meaning = "From 2.29.2 on NCCL makes one AllGatherV of them, or of Broadcasts beside "
		"sends, and would wait for ever for times that no kernel writes.",
	  .action = "Nothing. With NCCL_ALLGATHERV_ENABLE=0 in the job's environment NCCL does "
		"without AllGatherV." },
	[REASON_GRAPHS] = {
	  .name = "the timing of kernels stays as it is: the process captures CUDA graphs",
	  .meaning = "Replays go on as they were captured; NCCL would count others wrongly.",
	  .action = "Choose when the job starts: NCCLINSP_KERNELS=always, or never." },
	[REASON_LIBRARIES] = {
	  .name = "the timing of kernels stays as it is: two NCCLs in the process",
	  .meaning = "What one of them is asked for says nothing about the other.",
	  .action = "See which libraries bring libnccl (ldd, /proc/PID/maps), and keep one." },
	[REASON_SENDERS] = {
	  .name = "the timing of kernels stays as it is: several threads send and receive",
	  .meaning = "A change between a send and a receive of one group could hang the job, and "
		"no moment is sure to be outside of all groups.",
	  .action = "Choose when the job starts: NCCLINSP_KERNELS=always, or never." },
	[REASON_OVER] = {
	  .name = "kernels are not timed any more: that was for the job's first seconds",
	  .meaning = "From 2.31 on NCCL counts wrongly once the timing has paused: so it is on "
		"from the first operation, and goes off for good.",
	  .action = "For longer start the job with NCCLINSP_KERNELS=\"first 600s\", or always." },
	[REASON_SCARCE] = {
	  .name = "kernels are not timed: too little shared memory to spare",
	  .meaning = "NCCL takes 33 MiB of /dev/shm for it, for each communicator of a rank.",
	  .action = "Enlarge /dev/shm (--shm-size of a container)." },
	[REASON_SELF] = {
	  .name = "kernels are not timed any more: a rank sends to itself",
	  .meaning = "After that this NCCL waits for the times of the wrong kernels, and for ever "
		"where these are not timed.",
	  .action = "Where they are wanted all the same, start the job with "
		"NCCLINSP_KERNELS=always." },
	[REASON_PAUSE] = {
	  .name = "kernels are not timed any more: calls were not watched for a while",
	  .meaning = "At level off it was not seen how the process uses NCCL.",
	  .action = "Nothing; level ops costs next to nothing, and does not have this effect." },
	[REASON_SETTLING] = {
	  .name = "kernels are not timed yet: how the process uses NCCL has yet to show",
	  .meaning = "Bursts begin after 30 s of activity: graphs are captured, and threads begin "
		"to send, in a job's first seconds.",
	  .action = "Wait; ncclinsp level -o csv says until when (kernels_from_at)." },
};

const struct word *words_reason(enum reason reason)
{
	return &reasons[reason];
}

static const struct word kernels[] = {
	W("never", "No operation's kernels are timed: the level asks for none, or level_reason "
	  "says why."),
	W("always", "All operations' kernels are timed."),
	W("inside", "They are timed now: it is within a burst, or within the job's first seconds."),
	W("outside", "They are timed in bursts, and none is on now."),
	{ .name = "settling",
	  .meaning = "They are not timed yet: bursts begin after 30 s of activity, when it has "
		"shown how the process uses NCCL.",
	  .action = "Wait. NCCLINSP_SETTLE makes the time another one: libnccl-profiler-insp(7)." },
};

static const struct word samplings[] = {
	W("all", "Every operation is timed."),
	W("budget", "Those within bursts are timed, as many as the budget allows; or those of the "
	  "job's first seconds."),
};

static const struct word losses[] = {
#include "schema/lost_words.h"
};

static const struct word events[] = {
	W("Group", "What NCCL launches together."),
	W("Coll", "A collective operation."),
	W("P2p", "A send or a receive."),
	W("ProxyOp", "The network's part of an operation, on one channel with one peer."),
	W("ProxyStep", "One transfer of a ProxyOp."),
	W("ProxyCtrl", "What a progress thread does besides."),
	W("KernelCh", "A kernel on one channel."),
	W("NetPlugin", "An event of the network plugin."),
	W("GroupApi", "From ncclGroupStart to ncclGroupEnd."),
	W("CollApi", "The call of a collective operation, on the host."),
	W("P2pApi", "The call of a send or a receive, on the host."),
	W("KernelLaunch", "The launch of a kernel."),
	W("CeColl", "A collective operation by copy engines."),
	W("CeSync", "Copy engines wait for each other."),
	W("CeBatch", "A batch of copies."),
};

static const struct word operations[] = {
	W("posted", "The call was made; more cannot be seen of it."),
	W("not_started", "No kernel of it has begun, and no transfer is done."),
	W("running", "A kernel has begun, or data have moved."),
	W("finishing", "Its kernel has ended on all channels; the rest is the host's."),
};

static const struct word parts[] = {
	W("SendPosted", "A send waits for data of its own GPU (before API v4)."),
	W("SendRemFifoWait", "A send waits for the receiver to have room (before API v4)."),
	W("SendTransmitted",
	  "A send is in the network, which has not confirmed it (before API v4)."),
	W("SendDone", "A send has ended (before API v4)."),
	W("RecvPosted", "A receive waits for data from the sender (before API v4)."),
	W("RecvReceived", "Data have come and are flushed into the GPU's memory (before API v4)."),
	W("RecvTransmitted", "The own GPU has not yet taken what has come (before API v4)."),
	W("RecvDone", "A receive has ended (before API v4)."),
	W("SendGPUWait", "A send waits for data of its own GPU."),
	W("SendWait", "A send is in the network, which has not confirmed it."),
	W("RecvWait", "A receive waits for data from the sender."),
	W("RecvFlushWait", "Data have come and are flushed into the GPU's memory."),
	W("RecvGPUWait", "The own GPU has not yet taken what has come."),
	W("Idle", "A progress thread has nothing to do."),
	W("Active", "A progress thread works."),
	W("Sleep", "A progress thread lies down."),
	W("Wakeup", "A progress thread was woken."),
	W("Append", "A progress thread takes new work."),
	W("AppendEnd", "A progress thread has taken new work."),
	W("InProgress", "A progress thread has begun with this ProxyOp."),
	W("SendPeerWait", "A send waits for the receiver to have room."),
	W("Update", "The network plugin has told something."),
	W("KernelChStop", "A kernel has ended on this channel."),
	W("GroupStartApiStop", "ncclGroupStart has returned."),
	W("GroupEndApiStart", "ncclGroupEnd was called."),
};

static const struct word timings[] = {
	W("kernel_gpu", "The GPU's own stamps of its kernels."),
	W("kernel_cpu", "When the host saw kernels begin and end."),
	W("proxy_cpu", "From the first data that could be sent, or had come, to the end of the "
	  "last network transfer, on the host's clock."),
	W("enqueue_cpu", "The posting of an operation by copy engines."),
};

static const struct word arrivals[] = {
	W("gpu_clock",
	  "When each rank's kernel began, on the host's clock: the brackets do not reach each "
	  "other, so the order is certain."),
	W("initial_sync",
	  "How long each waited for the others at its beginning, as symmetric kernels tell "
	  "themselves (NCCL 2.31's KernelPhase): no two clocks have to agree."),
	W("duration", "Who was inside for longest came first, since all leave nearly together."),
};

static const struct word stamps[] = {
	W("zero", "NCCL gave none."),
	W("backwards", "It stops before it starts, or before what its queue told last."),
	W("repeated", "Another kernel was told to run at that time."),
	W("overrun",
	  "Of a later operation, or not known not to be: the progress thread came more than "
	  "64 works late."),
	W("drifted", "Of an earlier operation: it was over before this one was launched."),
	W("distrusted",
	  "Good by itself, but its channel lied a while ago, or NCCL's counters may have "
	  "drifted."),
};

static const struct word bounds[] = {
	W("gpu", "The own GPU: nothing was ready to be sent, or what came was not taken."),
	W("peer", "The receiver had no room for what was ready."),
	W("net", "The network: data were on the wire."),
};

static const struct word methods[] = {
	W("hull", "The lower hull of the times, at the mean size."),
	W("least_squares", "Least squares through the low times of each size."),
	W("theil_sen", "The median slope between pairs of sizes."),
};

static const struct word lineless[] = {
	W("no_times", "No send that was timed found the network idle. Receives cannot tell, nor "
	  "can NCCL before 2.27."),
	W("few_sizes", "Fewer than three sizes of transfers."),
	W("close_sizes", "The largest size is less than four times the smallest."),
	W("no_line", "The times do not grow with the sizes along a line."),
	W("too_fast", "The line would be ten times faster than the busy network: the progress "
	  "thread saw transfers begin late."),
};

static const struct topic topics[] = {
#define T(field, title, words) { field, title, words, ARRAY_LEN(words) }
	T("severity", "severities of findings", severities),
	T("grade", "grades of findings", grades),
	T("limit_reason", "what a stall's limit rests on", limits),
	T("aspect", "what is slow at a slow peer", aspects),
	T("scope", "how far a regression goes", scopes),
	T("process_state", "states of a process", processes),
	T("level", "levels", levels),
	T("level_reason", "why less is seen than the level says", reasons),
	T("kernels", "which kernels are timed now", kernels),
	T("sampling", "which operations are timed", samplings),
	T("lost", "causes of loss", losses),
	T("event_type", "what can be in flight", events),
	T("state", "states of an operation", operations),
	T("state", "states of a part of an operation", parts),
	T("timing_source", "where a duration comes from", timings),
	T("arrival_source", "what the order of ranks rests on", arrivals),
	T("stamps_why", "what is wrong with a GPU stamp", stamps),
	T("bound", "what takes the time of a link", bounds),
	T("method", "how the line of a link was found", methods),
	T("missing", "why a link has no line", lineless),
#undef T
};

const struct topic *glossary_topic(size_t i)
{
	return i < ARRAY_LEN(topics) ? &topics[i] : NULL;
}

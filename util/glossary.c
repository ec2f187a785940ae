/* SPDX-License-Identifier: Apache-2.0 */
/* Words of the daemon's answers, field by field: what explain knows beside findings. */
#include "util/glossary.h"

#include "util/list.h"

#define W(word, text)	{ .name = word, .meaning = text }

static const struct word grades[] = {
	W("found", "It is beyond the limits of its kind: certain."),
	W("suspected",
	  "It is not beyond these limits yet: an operation is in flight for 5 s without "
	  "progress, or a rank comes last over the last minutes. It is no alarm yet; its text "
	  "says when it will be found. If it proves wrong, it disappears."),
};

static const struct word severities[] = {
	W("info", "Good to know. Nothing has to be done; diagnose and check do not count it."),
	W("warning", "It costs time, or hides something."),
	W("critical", "A job is stuck, or a process has died."),
};

static const struct word gaps[] = {
	{ .name = "MISSING",
	  .meaning = "Ranks of a communicator are in none of the files: ncclinsp report judges it "
		     "without them.",
	  .action = "Add the files of their nodes." },
	{ .name = "SILENT",
	  .meaning = "Nodes that were asked did not answer: what runs there is in no figure.",
	  .action = "Try ssh to one of them. If it is down, the other ranks wait because of "
		    "that." },
};

static const struct word limits[] = {
	W("minimum", "The shortest limit (--stall-min)."),
	W("history", "8 times the 99th percentile of the same operation and size, without the "
		     "two longest."),
	W("period", "Three iterations of the job."),
	W("no_history", "No such operation was seen before: six times --stall-min."),
	W("first_operation",
	  "The first one on its communicator, which sets up connections: twelve times "
	  "--stall-min."),
	W("maximum", "The longest limit (--stall-max)."),
	W("absence",
	  "1.5 times the longest time for which a rank of the communicator was missing before, "
	  "and then came."),
	W("proof", "None: the cause is proven, and no time has to pass."),
};

static const struct word aspects[] = {
	W("wire", "A byte takes longer on the network."),
	W("room", "The receiver has no room for what is ready to be sent."),
};

static const struct word scopes[] = {
	W("kind",
	  "One kind of operation (function, size, algorithm) has become slower; other kinds have "
	  "not."),
	W("communicator", "Most kinds of operations of one communicator have become slower."),
	W("node", "Most kinds of operations on this node have become slower."),
};

static const struct word processes[] = {
	W("live", "It runs, and holds the lock on its segment."),
	W("exited", "It ended by itself: the plugin reported an exit."),
	W("died", "It ended without an exit: a signal, a crash, the out-of-memory killer."),
	W("finalized", "A rank: its process runs, but has left the communicator."),
};

static const struct word levels[] = {
	W("off", "NCCL reports nothing."),
	W("ops", "Which operations are posted, but not when they run."),
	W("kernel", "Also when their kernels run on the GPU."),
	W("net", "Also network transfers, as sums for each link."),
	W("trace", "Also each network transfer separately."),
	W("mask", "What NCCL_PROFILE_EVENT_MASK says, or what another program has set."),
};

static const struct word reasons[REASON_END] = {
	[REASON_OUTSIDE] = {
	  .name = "another program has set NCCL's event mask; the plugin leaves it as it is",
	  .meaning = "NCCL's RAS can do this from 2.31 on (ncclras, or another client of its "
		     "port).",
	  .action = "Nothing. The level comes back with the next job, or when the mask is set "
		"back to what this plugin had set." },
	[REASON_API] = {
	  .name = "kernels are not timed: this NCCL's profiler API is older than v5",
	  .meaning = "It is unknown when kernels run; times come from the network's part, or "
		"there are none.",
	  .action = "Use a newer NCCL (2.28 and later)." },
	[REASON_SETTING] = {
	  .name = "kernels are not timed: that is the setting",
	  .meaning = "NCCLINSP_KERNELS=never in the job's environment, or `kernels = never` in "
		"ncclinspd.conf when the job began.",
	  .action = "Start the job with another setting: libnccl-profiler-insp(7)." },
	[REASON_ALLGATHERV] = {
	  .name = "kernels are not timed any more: Broadcasts of several roots in one group",
	  .meaning = "From 2.29.2 on NCCL makes one AllGatherV of them, or of Broadcasts beside "
		"sends, and would wait for ever for times that no kernel writes.",
	  .action = "Nothing. With NCCL_ALLGATHERV_ENABLE=0 in the job's environment NCCL does "
		"without AllGatherV." },
	[REASON_GRAPHS] = {
	  .name = "the timing of kernels stays as it is: the process captures CUDA graphs",
	  .meaning = "Replays go on as they were captured; NCCL would count others wrongly.",
	  .action = "Choose at the start of the job: NCCLINSP_KERNELS=always, or never." },
	[REASON_LIBRARIES] = {
	  .name = "the timing of kernels stays as it is: two NCCLs in the process",
	  .meaning = "The event mask of one says nothing about the other.",
	  .action = "See which libraries bring libnccl (ldd, /proc/PID/maps), and keep one." },
	[REASON_SENDERS] = {
	  .name = "the timing of kernels stays as it is: several threads send and receive",
	  .meaning = "A change between a send and a receive of one group could hang the job, and "
		"no moment is certain to be outside all groups.",
	  .action = "Choose at the start of the job: NCCLINSP_KERNELS=always, or never." },
	[REASON_OVER] = {
	  .name = "kernels are not timed any more: that was for the job's first seconds",
	  .meaning = "From 2.31 on NCCL counts wrongly after a pause of the timing. So the "
		"timing is on from the first operation, and then goes off for good.",
	  .action = "To time for longer, start the job with NCCLINSP_KERNELS=\"first 600s\", or "
		    "always." },
	[REASON_SCARCE] = {
	  .name = "kernels are not timed: too little shared memory to spare",
	  .meaning = "NCCL takes 33 MiB of /dev/shm for it, for each communicator of a rank.",
	  .action = "Enlarge /dev/shm (--shm-size of a container)." },
	[REASON_SELF] = {
	  .name = "kernels are not timed any more: a rank sends to itself",
	  .meaning = "After that this NCCL waits for the times of the wrong kernels, and waits "
		"for ever where these are not timed.",
	  .action = "If you want the times all the same, start the job with "
		"NCCLINSP_KERNELS=always." },
	[REASON_PAUSE] = {
	  .name = "kernels are not timed any more: calls were not watched for a while",
	  .meaning = "At level off the plugin does not see how the process uses NCCL.",
	  .action = "Nothing. Level ops costs next to nothing and does not have this effect." },
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
	W("never", "No kernels are timed: the level does not include them, or level_reason says "
	  "why."),
	W("always", "All operations' kernels are timed."),
	W("inside", "They are timed now, in a burst or in the job's first seconds."),
	W("outside", "They are timed in bursts, and none is on now."),
	{ .name = "settling",
	  .meaning = "They are not timed yet: bursts begin after 30 s of activity, when it is "
		"clear how the process uses NCCL.",
	  .action = "Wait. NCCLINSP_SETTLE changes this time: libnccl-profiler-insp(7)." },
};

static const struct word samplings[] = {
	W("all", "Every operation is timed."),
	W("budget", "Operations within bursts are timed, as many as the budget allows, or those "
	  "of the job's first seconds."),
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
	W("ProxyCtrl", "Other work of a progress thread."),
	W("KernelCh", "A kernel on one channel."),
	W("NetPlugin", "A request of the network plugin: of a queue pair of InfiniBand (`qp`, "
	  "`nic`, `wr_id`) or a socket. NCCL tells it at level `trace`, if it was built with "
	  "`NET_PROFILER=1`."),
	W("GroupApi", "From ncclGroupStart to ncclGroupEnd."),
	W("CollApi", "The call of a collective operation, on the host."),
	W("P2pApi", "The call of a send or a receive, on the host."),
	W("KernelLaunch", "The launch of a kernel."),
	W("CeColl", "A collective operation by copy engines."),
	W("CeSync", "Copy engines wait for each other."),
	W("CeBatch", "A batch of copies."),
};

static const struct word operations[] = {
	W("posted", "The call was made; its progress is unknown."),
	W("not_started", "No kernel of it has begun, and no transfer is done."),
	W("running", "A kernel has begun, or data have moved."),
	W("finishing", "Its kernel has ended on all channels; the host's part has not."),
};

static const struct word parts[] = {
	W("SendPosted", "A send waits for data from its own GPU (before API v4)."),
	W("SendRemFifoWait", "A send waits for the receiver to have room (before API v4)."),
	W("SendTransmitted",
	  "A send is in the network, which has not confirmed it (before API v4)."),
	W("SendDone", "A send has ended (before API v4)."),
	W("RecvPosted", "A receive waits for data from the sender (before API v4)."),
	W("RecvReceived", "Data have come and are flushed into the GPU's memory (before API v4)."),
	W("RecvTransmitted", "The rank's own GPU has not yet taken the data (before API v4)."),
	W("RecvDone", "A receive has ended (before API v4)."),
	W("SendGPUWait", "A send waits for data from its own GPU."),
	W("SendWait", "A send is in the network, which has not confirmed it."),
	W("RecvWait", "A receive waits for data from the sender."),
	W("RecvFlushWait", "Data have come and are flushed into the GPU's memory."),
	W("RecvGPUWait", "The rank's own GPU has not yet taken the data."),
	W("Idle", "A progress thread has nothing to do."),
	W("Active", "A progress thread works."),
	W("Sleep", "A progress thread goes to sleep."),
	W("Wakeup", "A progress thread was woken."),
	W("Append", "A progress thread takes new work."),
	W("AppendEnd", "A progress thread has taken new work."),
	W("InProgress", "A progress thread has begun with this ProxyOp."),
	W("SendPeerWait", "A send waits for the receiver to have room."),
	W("Update", "The network plugin has reported something."),
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
	  "When each rank's kernel began, on the host's clock; the uncertainties do not "
	  "overlap, so the order is certain."),
	W("initial_sync",
	  "How long each rank waited for the others at the beginning, as symmetric kernels "
	  "report it (NCCL 2.31's KernelPhase): no two clocks have to agree."),
	W("duration", "The rank that was inside for the longest came first, because all leave "
		      "nearly together."),
};

static const struct word stamps[] = {
	W("zero", "NCCL gave no time."),
	W("backwards", "It stops before it starts, or before its queue's last time."),
	W("repeated", "NCCL reports another kernel at that time."),
	W("overrun",
	  "It is a later operation's time, or may be: the progress thread was more than 64 "
	  "kernels behind."),
	W("drifted", "It is an earlier operation's time: that one ended before this one was "
		     "launched."),
	W("distrusted",
	  "It may be right, but its channel gave wrong times a while ago, or NCCL's counters may "
	  "have drifted."),
};

static const struct word bounds[] = {
	W("gpu", "The rank's own GPU: it had nothing ready to send, or did not take what came."),
	W("peer", "The receiver had no room for what was ready."),
	W("net", "The network: data were on the wire."),
};

static const struct word methods[] = {
	W("hull", "The lower hull of the times, at the mean size."),
	W("least_squares", "Least squares through the low times of each size."),
	W("theil_sen", "The median slope between pairs of sizes."),
};

static const struct word lineless[] = {
	W("no_times", "No timed send found the network idle. Receives do not show it, and NCCL "
	  "before 2.27 does not."),
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
	T("report", "what a report of many nodes lacks", gaps),
	T("limit_reason", "why a stall has this limit", limits),
	T("aspect", "what is slow at a slow peer", aspects),
	T("scope", "how much a regression covers", scopes),
	T("process_state", "states of a process", processes),
	T("level", "levels", levels),
	T("level_reason", "why less is recorded than the level says", reasons),
	T("kernels", "which kernels are timed now", kernels),
	T("sampling", "which operations are timed", samplings),
	T("lost", "causes of loss", losses),
	T("event_type", "what can be in flight", events),
	T("state", "states of an operation", operations),
	T("state", "states of a part of an operation", parts),
	T("timing_source", "where a duration comes from", timings),
	T("arrival_source", "where the order of ranks comes from", arrivals),
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

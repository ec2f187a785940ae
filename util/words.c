/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A finding is said by the daemon, explained by the command line and listed in a man page:
 * one table keeps the three alike.
 */
#include "util/words.h"

#include "util/glossary.h"
#include "util/list.h"

#include <strings.h>

#define KIND(word, id)		.name = word, .message_id = id
#define VERDICT(NAME)		[KINDS + VERDICT_##NAME] = { .name = #NAME
#define KINDS			11

static const struct word words[] = {
	{ KIND("stall", "695df236c8eb4bcf96dc80460ebc9618"),
	  .meaning = "An operation has been in flight for longer than its limit, or a job has "
		     "posted nothing for a long time.",
	  .evidence = "The limit is the largest of 10 s (--stall-min), 8 times the 99th "
		      "percentile of the same operation and size, and 3 iterations, but 60 s "
		      "(--stall-max) at most. None has to pass where the cause is proven: a rank "
		      "of this node that others wait for is dead (RANK_DEAD) or stopped (STOPPED). "
		      "It is critical when nothing has moved, a warning when transfers still go "
		      "on.",
	  .action = "Read its verdict; it names the rank to look at." },
	{ KIND("desync", "d79ee70f395945f1a3bdf374c69faa6c"),
	  .meaning = "Ranks of a communicator do not make the same calls: a rank has not come, "
		     "or makes another call.",
	  .evidence = "What each rank on this node has posted on each communicator, by NCCL's "
		      "own sequence numbers. Different arguments and a different order are found "
		      "within three seconds. A rank that has not come is found beyond the limits "
		      "of a stall.",
	  .action = "Compare what the named ranks run: py-spy dump, gdb -p, the step in their "
		    "logs." },
	{ KIND("straggler", "4e6c51865b354fb08069022b213f88a1"),
	  .meaning = "A rank comes late to its operations again and again, and the others wait for "
		     "it.",
	  .evidence = "Who came last, how often, by how much, and what it cost the others.",
	  .action = "See that rank's GPU clock and temperature, its CPU, its input pipeline." },
	{ KIND("slow_peer", "8d971b57eb1a4ccdba1123bcd059a879"),
	  .meaning = "Transfers with one peer, on one channel or in one direction are slower "
		     "than the others.",
	  .evidence = "A byte takes at least 1.5 times as long on the network as on the other "
		      "links of the communicator that this node sends over (twice as long, if "
		      "there are two links), and that costs at least 2 % of the time. A single "
		      "link is compared with those of other communicators of the job that have "
		      "its name and size. The verdict is SEND_SIDE or RECEIVE_SIDE (everything "
		      "that a rank sends or receives), CHANNEL or LINK. Where the links seen here "
		      "do not tell these apart, it is LINK, and the text says what else it may "
		      "be. As info: a peer on another node has no room for what it is sent.",
	  .action = "Check that link: port counters, cable, the other node." },
	{ KIND("proxy_starved", "868b787667d241938fb96d0a61abce83"),
	  .meaning = "NCCL's progress threads, which drive the network, do not run when they are "
		     "needed.",
	  .evidence = "A progress thread saw kernels 1 ms or more after they had begun by the "
		      "GPU's own stamps: at least one kernel in twenty, at least five times, and "
		      "for at least 2 % of the time. The text says whether the thread waited for "
		      "a CPU or slept, where the kernel counts that (schedstat in /proc), and "
		      "whether the CPU limit of its cgroup was used up (cpu.stat; a container may "
		      "hide it). As info: the thread waited for a CPU for a tenth of the time, and "
		      "too few kernels are timed to tell what that costs. "
		      "Several processes of a job are one finding.",
	  .action = "Check CPU pinning, cgroup limits and other processes on those cores. If the "
		    "thread slept, find what stops it." },
	{ KIND("regression", "f9a81e01cd53458287b007110dd2553c"),
	  .meaning = "An operation has become slower than it used to be.",
	  .evidence = "Its own baseline: the lower quartile of its times in windows of 10 s. The "
		      "baseline is known after 24 windows and learned over 200. The daemon keeps "
		      "it in its state directory for later jobs of the same name, nodes and "
		      "ranks, and adds up what short jobs leave. A slowdown of 5 % or more is "
		      "found by cumulative sums, with about one false alarm a week. The text says "
		      "whether one kind of operation, all of a communicator or all on this node "
		      "changed.",
	  .action = "See what changed at that time: driver, topology, other jobs, settings." },
	{ KIND("slow_compute", "2f7be6a0c1d94b0db6c0f1a4f2e8d953"),
	  .meaning = "All ranks of a communicator compute longer between NCCL's operations than "
		     "they did. NCCL is not the cause.",
	  .evidence = "The time of an iteration (lower quartile of 5 s) without the time inside "
		      "NCCL's operations, the median over the ranks of this node, compared with "
		      "its baseline as for regression. It grew by 10 % or more and by 2 % of an "
		      "iteration or more, and was at least 5 % of the iteration.",
	  .action = "See the GPUs' clocks (nvidia-smi -q -d PERFORMANCE), and what else changed: "
		    "the model's step, batches, input, other jobs on the node." },
	{ KIND("loss", "6f15bacc4b7c42a2a79fc3c8337631b6"),
	  .meaning = "Records of a process are lost. Its counts are too low by this share; some "
		     "operations lack timings or look unfinished. Treat findings about it with "
		     "care. As info: the process ran before the daemon started, and what it did "
		     "then is unknown.",
	  .evidence = "The loss counters of the process, by cause, over the last 15 to 30 s: one "
		      "record in a thousand and 100 at least, or a table of names or communicators "
		      "that is full.",
	  .action = "Give the daemon CPU time, lower the level (ncclinsp level), or make room in "
		    "shared memory: the text says which one, by the cause that lost the most." },
	{ KIND("died", "5dd69bbbf8d74c628466bd33b37ab49f"),
	  .meaning = "A process ended without a clean exit: a signal, the out-of-memory killer, a "
		     "crash.",
	  .evidence = "The lock on its segment is gone, and the plugin did not report an exit. "
		      "The segment still has what was in flight. Processes of one communicator "
		      "that die within 30 s of each other are one finding, which lists the first "
		      "one that was seen dead first; within a tenth of a second the order is "
		      "unknown. Linux 6.15 and newer tell by which signal or exit code it ended, "
		      "once its parent has waited for it. Where ranks of this node wait for it, "
		      "the verdict is RANK_DEAD.",
	  .action = "See the log of the first, and dmesg for \"Out of memory\" and Xid. The black "
		    "box in the daemon's state directory has its last operations." },
	{ KIND("unwritten", "cd40003ddcf544869281c4a4d66642b7"),
	  .meaning = "The daemon cannot write files: snapshots, black boxes, exemplars or the "
		     "metrics' text. The live view is not affected; what should be kept for "
		     "later is missing.",
	  .evidence = "The last file failed and none was written since, or a file has waited for "
		      "ten seconds for a disk that does not answer. All directories are one "
		      "finding, which ends with the next file that is written.",
	  .action = "Make room, mount the directory for writing, or check the server that it is "
		    "mounted from: the text says which one, by the error." },
	{ KIND("unwatched", "bf3ef94c7c2a480e8092ea5795f64646"),
	  .meaning = "The daemon does not watch some processes, containers, files or "
		     "communicators, because there are too many. No figure and no other finding "
		     "contains them.",
	  .evidence = "Processes that hold a segment and wait to be read, now, for each user; or "
		      "one of the daemon's other bounds was reached in the last half a minute. "
		      "Whoever has few processes is read before whoever has many.",
	  .action = "See who owns them and which of them need not run; the text names the bound." },

	VERDICT(RANK_DEAD),
	  .flight_recorder = "COLLECTIVE_STATE_MISMATCH", .ncclx = "JOB_RANK_PROCESS_DEAD",
	  .meaning = "The others wait for a rank whose process has ended. Kind died, or stall if "
		     "the process ended by itself.",
	  .evidence = "The process is gone, and had not completed the operation.",
	  .action = "See why it died. The job must be restarted." },
	VERDICT(NO_ANSWER),
	  .flight_recorder = "COLLECTIVE_STATE_MISMATCH", .ncclx = "JOB_RANK_PROCESS_DEAD",
	  .meaning = "The others wait for a rank on another node whose process does not answer "
		     "NCCL's RAS: it has ended or is stopped, or its node or the network there is "
		     "gone.",
	  .evidence = "The ranks of this node show no cause, and NCCL's RAS, which the daemon asks "
		      "on loopback (ras in ncclinspd.conf(5)), had no answer from that process. "
		      "RAS takes a process for dead after 60 s.",
	  .action = "See on that node whether the process lives (ps -o stat PID), its log, and "
		    "dmesg. If it has ended, the job must be restarted." },
	VERDICT(STOPPED),
	  .flight_recorder = "COLLECTIVE_STATE_MISMATCH",
	  .ncclx = "JOB_STUCK_IN_NCCL_RANK_NOT_JOIN",
	  .meaning = "The others wait for a rank whose process is stopped: by a signal, or by a "
		     "debugger.",
	  .evidence = "The kernel reports state T or t in /proc/PID/stat at two or more checks, "
		      "and TracerPid in /proc/PID/status.",
	  .action = "kill -CONT PID lets it continue. SIGSTOP and SIGTSTP come from a shell "
		    "(Ctrl-Z), a batch system that suspends the job, or a tool that meant "
		    "another process." },
	VERDICT(NOT_JOINED),
	  .flight_recorder = "COLLECTIVE_STATE_MISMATCH",
	  .ncclx = "JOB_STUCK_IN_NCCL_RANK_NOT_JOIN",
	  .meaning = "A rank lives but has not made the call that the others wait in.",
	  .evidence = "Its newest sequence number of that function is lower than theirs, and it "
		      "has nothing else in flight. It may be writing a checkpoint: this is a "
		      "warning, and critical after 5 min (--not-joined-critical), or, where ranks "
		      "of that communicator came late before, after three times the longest of "
		      "these times, and a minute at least. Of a rank on another node NCCL's RAS "
		      "tells it: it counts fewer calls of that rank than of those here.",
	  .action = "See what its process does: py-spy dump -p PID, gdb -p PID. Often a branch "
		    "that only this rank takes, a data loader, or an exception that was "
		    "swallowed." },
	VERDICT(ORDER_MISMATCH),
	  .flight_recorder = "COLLECTIVE_TYPE_MISMATCH",
	  .meaning = "A rank made a different call than the others at the same place.",
	  .evidence = "On the same communicator it has an operation of another function in flight, "
		      "which the others have not posted.",
	  .action = "Compare the code path of that rank with the others': the calls on one "
		    "communicator must come in the same order on all ranks." },
	VERDICT(COMM_DEADLOCK),
	  .flight_recorder = "UNDECIDED", .ncclx = "JOB_CONTAINS_COLL_DEADLOCK",
	  .meaning = "Ranks wait for each other on different communicators, in a circle.",
	  .evidence = "Each has an operation in flight on one communicator and is missing on the "
		      "next.",
	  .action = "Give all ranks the same order of calls over these communicators, or run them "
		    "on streams that cannot block each other." },
	VERDICT(METADATA_MISMATCH),
	  .flight_recorder = "SIZE_OR_SYNTAX_MISMATCH",
	  .ncclx = "JOB_CONTAINS_COLL_METADATA_MISMATCH",
	  .meaning = "All ranks are in the same call, but with different arguments.",
	  .evidence = "Count, datatype or root as each application passed them.",
	  .action = "Compare the tensors of the named ranks: uneven last batches are the usual "
		    "cause." },
	VERDICT(CONFIG_MISMATCH),
	  .flight_recorder = "UNDECIDED",
	  .meaning = "NCCL runs the same call with different algorithms on different ranks.",
	  .evidence = "Algorithm, protocol or number of channels differ.",
	  .action = "Compare NCCL_* variables, NCCL's version and tuner plugins of these ranks." },
	VERDICT(PARTIAL),
	  .flight_recorder = "COLLECTIVE_STATE_MISMATCH",
	  .meaning = "Some ranks have completed the operation, others have not.",
	  .evidence = "It has ended on some ranks of this node and is in flight on the named "
		      "ranks.",
	  .action = "Look at the named ranks' GPUs and at the links to them." },
	VERDICT(LINK),
	  .flight_recorder = "UNDECIDED",
	  .meaning = "Kind stall: a transfer was handed to the network and does not end. Kind "
		     "slow_peer: the network between two ranks is slower than the other links.",
	  .evidence = "Stall: a step is in SendWait: the data left the GPU, the peer had room, the "
		      "network has not confirmed. Slow_peer: the time for a byte, against the "
		      "other links; where these do not tell the sender's side, the receiver's and "
		      "the path apart, the text says so. With ncclinsp-probe(8) it says how many "
		      "segments TCP had to send again.",
	  .action = "Check the path between the two ranks: port counters, link state, the fabric, "
		    "the other node's NIC." },
	VERDICT(NO_ROOM),
	  .flight_recorder = "UNDECIDED",
	  .meaning = "A rank waits for data, and its sender waits for room there: the receiver "
		     "did not report room, or that message was lost.",
	  .evidence = "The sender's step is in SendPeerWait, the receiver's in RecvWait for that "
		      "sender, and no GPU or network holds up either.",
	  .action = "See whether the progress threads of process PID run (top -H -p PID), and its "
		    "node's NIC: port counters, errors. Keep NCCL's debug log of both ranks." },
	VERDICT(GPU_STUCK),
	  .flight_recorder = "UNDECIDED",
	  .meaning = "A GPU has begun the operation and makes no progress.",
	  .evidence = "Its kernel runs, and the transfers wait for it to give or to take data, "
		      "while it waits for no other rank.",
	  .action = "See nvidia-smi and dmesg for Xid; attach cuda-gdb to that process." },
	VERDICT(NOT_RUNNING),
	  .flight_recorder = "UNDECIDED",
	  .meaning = "A rank has posted the operation, but its GPU has not begun it.",
	  .evidence = "No kernel of it has started there, while that of another rank here has, or "
		      "all ranks are here. Nobody here waits for the first data of a rank "
		      "elsewhere: that one would be the cause, and what tells of kernels may have "
		      "ended with it.",
	  .action = "Something else occupies that GPU or stream: a compute kernel that does not "
		    "end, a wait for an event, too few free SMs. See nvidia-smi; py-spy dump that "
		    "process." },
	VERDICT(INTERNAL),
	  .flight_recorder = "UNDECIDED",
	  .meaning = "Every rank waits for another rank, in a circle: the cause is NCCL itself, "
		     "or something that cannot be seen.",
	  .evidence = "The transfers of all ranks on this node, each waiting for the next.",
	  .action = "Keep the evidence (ncclinsp snapshot) and NCCL's debug log, and report it "
		    "to NCCL." },
	VERDICT(SLOW),
	  .flight_recorder = "UNDECIDED",
	  .meaning = "The operation takes far longer than usual, but it goes on.",
	  .evidence = "Some of its transfers or kernels ended since the last check.",
	  .action = "Wait, and look for a slow link or a throttled GPU." },
	VERDICT(OUTSIDE),
	  .flight_recorder = "UNDECIDED", .ncclx = "JOB_STUCK_OUTSIDE_NCCL",
	  .meaning = "No operation is in flight and no new one comes: the job is not in NCCL.",
	  .evidence = "The time since the last operation. It is a note after ten iterations of "
		      "the job and 3 s, and found after two minutes (12 times --stall-min), ten "
		      "iterations, and twice the job's longest pause so far.",
	  .action = "A checkpoint, an evaluation or the end of the job look the same. If it should "
		    "run: py-spy dump the ranks." },
	VERDICT(SILENCED),
	  .flight_recorder = "UNDECIDED", .ncclx = "JOB_STUCK_OUTSIDE_NCCL",
	  .meaning = "All ranks fell silent within a second, and what was watched has ended: the "
		     "job is not in NCCL, or recording was switched off from outside (NCCL's RAS "
		     "can do that from 2.31 on).",
	  .evidence = "As for OUTSIDE. After such a switch NCCL no longer calls the plugin, so "
		      "the two cases look the same.",
	  .action = "See whether the job goes on: its log, its GPUs. If it does, ncclras CONTROL "
		    "PROFILER_MASK all brings the recording back; if it should and does not, "
		    "py-spy dump the ranks." },
	VERDICT(UNKNOWN),
	  .flight_recorder = "UNDECIDED", .ncclx = "UNKNOWN_VERDICT_TYPE",
	  .meaning = "This node alone does not show the cause.",
	  .evidence = "All ranks of this node are in the operation; the others are on other nodes, "
		      "and NCCL's RAS, if it answers, does not show the cause either. Or ranks "
		      "have not come, and may be held up in their last call on another "
		      "communicator, whose end is not watched.",
	  .action = "Ask all nodes of the job at once: ncclinsp -H HOSTS diagnose. Without ssh: "
		    "ncclinsp report over a snapshot of each node." },
	VERDICT(STEADY),
	  .meaning = "A rank comes late to many operations, and the others wait for it.",
	  .evidence = "For three minutes (three of --straggler-window) it came so late, in a "
		      "third of operations at least or in most seconds, that the others "
		      "would save 1.5 % of the time if all late ranks came as early as the "
		      "punctual half, and chance does not explain it. Delay passed on from "
		      "another communicator is not counted.",
	  .action = "Read what the finding says about the cause: the GPU, the host that calls "
		    "late, or serial launches of one process." },
	VERDICT(INTERMITTENT),
	  .meaning = "A rank is much later than usual now and then, mostly the same one.",
	  .evidence = "As for STEADY, but in less than a third of operations, and not in most "
		      "seconds. One long stop a minute is enough, if chance does not explain it.",
	  .action = "Look for what stops it: garbage collection, input, other processes, "
		    "throttling." },
	VERDICT(ELSEWHERE),
	  .meaning = "All ranks of a communicator on this node wait for a rank on another node.",
	  .evidence = "They are inside for more than 1.3 times what the transfer takes (its 5th "
		      "percentile), and chance does not explain it.",
	  .action = "ncclinsp -H HOSTS diagnose names the rank; without ssh, ncclinsp report "
		    "over a snapshot of each node. Or look for the node whose remote_wait_ns in "
		    "/v1/comms is near zero." },
	VERDICT(SLOWER),
	  .meaning = "Nearly every operation takes longer than it used to, for the last rank too.",
	  .evidence = "The shortest time inside of this node's ranks, against its 5th percentile "
		      "in the last eight windows.",
	  .action = "If all ranks are on this node, the links are slower. Otherwise a rank on "
		    "another node may be late each time: ncclinsp -H HOSTS diagnose shows which." },
	VERDICT(CHANNEL),
	  .meaning = "One channel between two ranks is slower than the other channels.",
	  .evidence = "The time for a byte on it against the other links; those of the same two "
		      "ranks on other channels are not slow.",
	  .action = "See the NIC that NCCL gave this channel: its port counters, its rail." },
	VERDICT(SEND_SIDE),
	  .meaning = "Everything that a rank sends is slower than what other ranks send.",
	  .evidence = "Its links to all peers that this node sees are slow, and the links of "
		      "other ranks to these peers are not.",
	  .action = "Check that rank's NIC, its PCIe lanes, and the CPU of its progress "
		    "thread." },
	VERDICT(RECEIVE_SIDE),
	  .meaning = "Everything that is sent to a rank is slower than what other ranks receive.",
	  .evidence = "The links to it from all senders that this node sees are slow, and their "
		      "other links are not.",
	  .action = "Look at that rank's node: its NIC, its PCIe lanes, and ncclinsp diagnose "
		    "there." },
};
_Static_assert(ARRAY_LEN(words) == KINDS + VERDICT_END, "every verdict has a row");

const struct topic *words_topic(size_t i)
{
	static const struct topic own[] = {
		{ "kind", "kinds of findings", words, KINDS },
		{ "verdict", "verdicts of findings", words + KINDS, VERDICT_END },
	};

	return i < ARRAY_LEN(own) ? &own[i] : glossary_topic(i - ARRAY_LEN(own));
}

const struct word *words_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (!strcasecmp(words[i].name, name))
			return &words[i];
	return NULL;
}

const struct word *words_verdict(enum verdict verdict)
{
	return &words[KINDS + verdict];
}

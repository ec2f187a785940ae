/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data on its way: what each stage hands to the next, and when.
 *
 *     discover -> drain -> decode -> reconstruct -> ranks
 *                                    ranks -> aggregate, oplog, diagnose, metrics -> serve
 *                                    ranks -> straggler -> diagnose
 *                                    reconstruct -> links, transferlog, queues -> serve
 */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ncclinspd/base/jobs.h"
#include "ncclinspd/daemon.h"
#include "ncclinspd/findings/cpuwait.h"
#include "ncclinspd/findings/ending.h"
#include "ncclinspd/findings/resources.h"
#include "reader/follow.h"
#include "reader/read/life.h"
#include "shmring/clock.h"

#define TICKS_NS	UINT64_C(1000000000)	/* between two pairs later */
#define CPUWAIT_FILES	256	/* read in /proc at each look of diagnose, at most */
#define CALLING_EVERY	4	/* looks: what threads that call NCCL do is told over 20 s ... */
#define CALLING_NS	UINT64_C(20000000000)	/* not without records for so long */
#define LOOK_SHARE	100	/* all that is done at one may take 1/100 of a core, */
#define IDLE_SHARE	1000	/* only 1/1000 where nothing has come for a while, ... */
#define LOOK_MOST_NS	UINT64_C(5000000000)	/* ... unless it comes as seldom as that */
#define IDLE_NS		UINT64_C(10000000000)

static void flow_count_posted(struct process *p, const struct nci_record *rec)
{
	bool groups_of_api = p->api_version >= 5;

	bool inside = rec->form & NCI_FORM_WATCHED;

	if (rec->type == (groups_of_api ? NCI_EV_GROUP_API : NCI_EV_GROUP)) {
		(*(p->group_inside ? &p->groups_inside : &p->groups_outside))++;
		p->group_inside = false;
	} else if (rec->type == NCI_EV_COLL || rec->type == NCI_EV_P2P) {
		(*(inside ? &p->ops_inside : &p->ops_outside))++;
		p->group_inside |= inside;
	}
}

void flow_event(void *arg, struct process *p, const struct event *event, uint64_t now_ns)
{
	struct daemon *d = arg;

	flow_count_posted(p, event->rec);
	reconstruct_event(d->reconstruct, p, event, now_ns);
	if (d->serve)
		serve_record(d->serve, p, event);
}

void flow_done(const struct op *op, uint64_t now_ns, void *arg)
{
	struct daemon *d = arg;

	ranks_add(d->ranks, op, now_ns);
}

/* An operation that several ranks did together, or one rank that is alone here. */
void flow_joint(const struct op *const *ops, uint32_t n, uint32_t expected,
		     uint64_t now_ns, void *arg)
{
	struct daemon *d = arg;
	struct process *const *list;
	size_t count = discover_processes(d->discover, &list);

	straggler_see(d->straggler, ops, n, list, count, now_ns);
	diagnose_ops(d->diagnose, ops, n, now_ns);
}

static void exemplar_look_for(struct daemon *d, const struct op *op, uint64_t now_ns)
{
	struct aggregate_usual usual;

	if (d->exemplars && aggregate_usual(d->aggregate, op, EXEMPLARS_EXCESS_NS, &usual))
		exemplars_op(d->exemplars, op, &usual, oplog_newest(d->oplog), now_ns);
}

void flow_op(const struct op *op, uint64_t now_ns, void *arg)
{
	struct daemon *d = arg;

	exemplar_look_for(d, op, now_ns);	/* before it is one of those it is compared with */
	aggregate_add(d->aggregate, op, now_ns);
	oplog_add(d->oplog, op);
	steer_op(d->steer, op);
	metrics_op(d->metrics, op, now_ns);
	if (!op->local_ranks)
		flow_joint(&op, 1, 1, now_ns, d);
	exports_op(d, op);
	if (d->serve)
		serve_op(d->serve, op);
}

void flow_moved(const struct transfers *t, uint64_t now_ns, void *arg)
{
	struct daemon *d = arg;
	struct links_row row;

	links_add(d->links, t, now_ns);
	links_last(d->links, &row);
	metrics_moved(d->metrics, &row, now_ns);
	transferlog_add(d->transferlog, t, d->links);
}

void flow_requested(const struct net_request *request, uint64_t now_ns, void *arg)
{
	struct daemon *d = arg;

	queues_add(d->queues, request, now_ns);
}

/* Reads the kernel's word about the process. */
static void process_open_kernel(struct process *p)
{
	const struct segment *seg = process_segment(p);

	p->pidfd = p->state == PROCESS_LIVE ? ending_open(LIFE_PROC, seg->host_pid,
							  seg->start_time) : -1;
	p->has_pidfd = p->pidfd >= 0;
	if (p->state == PROCESS_LIVE && p->proven)
		p->resources = resources_new(&resources_roots, seg->host_pid, seg->start_time);
}

static void process_close_kernel(struct process *p)
{
	cpuwait_free(p->cpuwait);
	cpuwait_free(p->calling);
	p->cpuwait = p->calling = NULL;
	resources_free(p->resources);
	p->resources = NULL;
	if (p->has_pidfd)
		close(p->pidfd);
	p->has_pidfd = false;
}

void flow_appeared(void *arg, struct process *p, uint64_t now_ns)
{
	struct daemon *d = arg;
	int r = reconstruct_attach(d->reconstruct, p);

	process_open_kernel(p);
	marks_appeared(d->marks, p);
	if (r < 0)
		log_say(LOG_WARN, "operations of pid=%d cannot be followed error=\"%s\"",
			(int)p->pid, strerror(-r));
	log_say(LOG_DEBUG, "process appeared pid=%d command=%s", (int)p->pid, p->command);
	loop_arm(d->loop, &d->poll_timer, now_ns);	/* it may fill its lanes soon */
	loop_arm(d->loop, &d->steer_timer, now_ns);	/* it may be of a job that is wished for */
	if (d->serve)
		serve_process(d->serve, p);
}

void flow_ended(void *arg, struct process *p, uint64_t now_ns)
{
	struct daemon *d = arg;

	reconstruct_end(d->reconstruct, p, now_ns);
	ranks_end(d->ranks, p, now_ns);
	diagnose_ended(d->diagnose, p, now_ns);
	process_close_kernel(p);
	metrics_ended(d->metrics, p, now_ns);
	if (d->serve)
		serve_process(d->serve, p);
}

void flow_forgotten(void *arg, struct process *p)
{
	struct daemon *d = arg;

	process_close_kernel(p);	/* one that was caught lying never ended */
	if (d->serve)
		serve_flush_records(d->serve);
	diagnose_forgotten(d->diagnose, p);
	metrics_forgotten(d->metrics, p);
	straggler_forget(d->straggler, p->id);
	reconstruct_detach(d->reconstruct, p);
}

static void flow_account(struct daemon *d, uint64_t now_ns)
{
	struct process *const *list;
	size_t n = discover_processes(d->discover, &list);

	for (size_t i = 0; i < n; i++)
		aggregate_account(d->aggregate, list[i]->id, list[i]->records,
				  process_lost(list[i]), now_ns);
}

static void exemplar_arm(struct daemon *d)
{
	uint64_t due_ns = d->exemplars ? exemplars_due_ns(d->exemplars, oplog_newest(d->oplog)) :
					 UINT64_MAX;

	if (due_ns != UINT64_MAX)
		loop_arm(d->loop, &d->exemplar_timer, due_ns);
}

void flow_poll(void *arg, uint64_t now_ns)
{
	struct daemon *d = arg;
	struct process *const *list;
	uint64_t next_ns;
	size_t n;

	ticks_watch(&d->ticks);
	next_ns = drain_poll(d->drain, now_ns);
	if (d->serve)
		serve_flush_records(d->serve);
	flow_account(d, now_ns);
	n = discover_processes(d->discover, &list);
	follow_settle(d->drain, d->reconstruct, list, n, now_ns);
	ranks_flush(d->ranks, now_ns);
	if (next_ns - now_ns >= LOOP_TURN_NS)
		next_ns = loop_next_turn_ns(now_ns);
	loop_arm(d->loop, &d->poll_timer, next_ns);
	exemplar_arm(d);
}

/* A timer of its own: a poll may be due in the middle of an answer, and so be no place for one. */
void flow_exemplar(void *arg, uint64_t now_ns)
{
	struct daemon *d = arg;

	exemplars_run(d->exemplars, oplog_newest(d->oplog), now_ns, clock_ns(CLOCK_REALTIME));
	exemplar_arm(d);
}

void flow_start_snapshots(struct daemon *d, uint64_t now_ns)
{
	uint64_t due_ns = snapshots_due_ns(d->config.snapshot_interval_ns, now_ns,
					   clock_ns(CLOCK_REALTIME));

	if (!d->snapshots)
		return;
	if (due_ns == UINT64_MAX)
		loop_cancel(d->loop, &d->snapshot_timer);
	else
		loop_arm(d->loop, &d->snapshot_timer, due_ns);
}

void flow_snapshot(void *arg, uint64_t now_ns)
{
	struct daemon *d = arg;

	snapshots_write(d->snapshots, now_ns, clock_ns(CLOCK_REALTIME));
	flow_start_snapshots(d, loop_clock_ns());
}

static void threads_look(struct daemon *d, struct process *p, enum segment_thread kind,
			 struct cpuwait **c, uint64_t now_ns, uint32_t *files)
{
	const struct segment *seg = process_segment(p);
	pid_t tids[CPUWAIT_THREADS];
	uint32_t n = drain_threads(d->drain, p, kind, tids, CPUWAIT_THREADS);

	if (n && !*c)
		cpuwait_new(c, LIFE_PROC, seg->host_pid, seg->start_time);
	if (*c)
		cpuwait_look(*c, tids, n, now_ns, files);
}

static void process_watch(struct daemon *d, struct process *p, bool calling, uint64_t now_ns,
			  uint32_t *files)
{
	if (p->state != PROCESS_LIVE || !p->proven)
		return;
	threads_look(d, p, SEGMENT_PROGRESS, &p->cpuwait, now_ns, files);
	if (now_ns > p->last_record_ns + CALLING_NS) {
		cpuwait_free(p->calling);
		p->calling = NULL;
	} else if (calling) {
		threads_look(d, p, SEGMENT_CALLING, &p->calling, now_ns, files);
	}
}

/* Each time another process is first: all get their turn where they have too many files. */
static void threads_watch(struct daemon *d, uint64_t now_ns)
{
	struct process *const *list;
	size_t n = discover_processes(d->discover, &list);
	uint32_t files = CPUWAIT_FILES;

	for (size_t i = 0; i < n && files; i++) {
		size_t at = (d->watch_turn + i) % n;

		process_watch(d, list[at], (d->watch_turn + at) % CALLING_EVERY == 0, now_ns,
			      &files);
	}
	d->watch_turn++;
}

void flow_waited(void *arg, uint64_t process_id, const struct probe_event *e, uint64_t now_ns)
{
	struct daemon *d = arg;
	struct process *const *list;
	size_t n = discover_processes(d->discover, &list);
	const struct process *p = jobs_process(list, n, process_id);

	if (p && p->cpuwait)
		cpuwait_add(p->cpuwait, e, now_ns);
	if (p && p->calling)
		cpuwait_add(p->calling, e, now_ns);
}

/* ---- the way back ------------------------------------------------------------ */

static void steering_arm(struct daemon *d, uint64_t now_ns)
{
	uint64_t end_ns = steer_next_end(d->steer, now_ns);

	if (end_ns == UINT64_MAX)
		loop_cancel(d->loop, &d->steer_timer);
	else
		loop_arm(d->loop, &d->steer_timer, end_ns);
}

int flow_steer(struct daemon *d, uint64_t now_ns)
{
	struct process *const *list;
	size_t n = discover_processes(d->discover, &list);
	int r = steer_changed(d->steer, list, n, now_ns);

	steering_arm(d, now_ns);
	return r;
}

static void steering_on_timer(void *arg, uint64_t now_ns)
{
	flow_steer(arg, now_ns);
}

void flow_start_steering(struct daemon *d, uint64_t now_ns)
{
	d->steer_timer = (struct loop_timer){ .fn = steering_on_timer, .arg = d };
	loop_arm(d->loop, &d->steer_timer, now_ns);
}

/* ---- what is wrong ------------------------------------------------------------- */

static bool flow_is_idle(struct daemon *d, uint64_t now_ns)
{
	uint64_t records = reconstruct_stats(d->reconstruct)->records;

	if (records != d->looked_records)
		d->moved_ns = now_ns;
	d->looked_records = records;
	return now_ns - d->moved_ns >= IDLE_NS;
}

uint64_t flow_next_look(struct daemon *d, uint64_t now_ns, uint64_t cost_ns)
{
	uint64_t wait_ns = cost_ns * (flow_is_idle(d, now_ns) ? IDLE_SHARE : LOOK_SHARE);

	if (wait_ns < DAEMON_LOOK_NS)
		wait_ns = DAEMON_LOOK_NS;
	return now_ns + (wait_ns < LOOK_MOST_NS ? wait_ns : LOOK_MOST_NS);
}

void flow_look(void *arg, uint64_t now_ns)
{
	struct daemon *d = arg;
	struct process *const *list;
	size_t n = discover_processes(d->discover, &list);
	uint64_t from_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	threads_watch(d, now_ns);
	if (d->sensors)
		sensors_look(d->sensors, list, n, now_ns);
	if (d->nics)
		nics_look(d->nics, n > 0);
	if (d->probe)
		probelink_look(d->probe, list, n, now_ns);
	exports_watch(d, now_ns);
	straggler_turn(d->straggler, now_ns);
	diagnose_look(d->diagnose, now_ns);
	steer_look(d->steer, list, n, now_ns, clock_ns(CLOCK_REALTIME));
	marks_look(d->marks, list, n, now_ns);
	steering_arm(d, now_ns);
	metrics_look(d->metrics, now_ns);
	if (d->blackbox)
		blackbox_tick(d->blackbox, now_ns, clock_ns(CLOCK_REALTIME));
	loop_arm(d->loop, &d->look_timer,
		 flow_next_look(d, now_ns, clock_ns(CLOCK_THREAD_CPUTIME_ID) - from_ns));
}

void flow_finding(void *arg, const struct finding *f, uint64_t now_ns)
{
	struct daemon *d = arg;
	struct process *const *list;
	size_t n = discover_processes(d->discover, &list);

	if (steer_finding(d->steer, f, list, n, now_ns) && d->raise)
		raise_finding(d->raise, f, list, n, now_ns);
	journal_finding(&d->journal, f);
	if (d->blackbox)
		blackbox_note(d->blackbox, f, now_ns);
	exports_finding(d, f);
	if (d->serve)
		serve_finding(d->serve, f);
}

void flow_gathered(void *arg, const struct finding *f, uint64_t now_ns)
{
	struct daemon *d = arg;

	if (d->blackbox)
		blackbox_ask(d->blackbox, f, now_ns);
}

/* ---- time ------------------------------------------------------------------- */

/* Often at first, when each pair makes the rate much better. */
static void ticks_on_timer(void *arg, uint64_t now_ns)
{
	struct daemon *d = arg;

	ticks_look(&d->ticks);
	loop_arm(d->loop, &d->ticks_timer, now_ns + d->ticks_wait_ns);
	if (d->ticks_wait_ns < TICKS_NS)
		d->ticks_wait_ns *= 2;
}

void flow_start_ticks(struct daemon *d)
{
	ticks_start(&d->ticks);
	d->ticks_wait_ns = TICKS_START_NS;
	d->ticks_timer = (struct loop_timer){ .fn = ticks_on_timer, .arg = d };
	loop_arm(d->loop, &d->ticks_timer, loop_clock_ns() + d->ticks_wait_ns);
}

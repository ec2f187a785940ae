/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_DAEMON_H
#define NCCLINSPD_DAEMON_H

/*
 * The parts of the daemon, and what its four files hand to each other: main.c (start
 * and stop), flow.c (data on its way), answers.c (what is asked), exports.c (what
 * leaves the node).
 */

#include "ncclinspd/around/nics.h"
#include "ncclinspd/around/sensors.h"
#include "ncclinspd/base/loop.h"
#include "ncclinspd/compare/ranks.h"
#include "ncclinspd/compare/straggler.h"
#include "ncclinspd/config/config.h"
#include "ncclinspd/find/discover.h"
#include "ncclinspd/findings/diagnose.h"
#include "ncclinspd/findings/journal.h"
#include "ncclinspd/findings/notify.h"
#include "ncclinspd/findings/probelink.h"
#include "ncclinspd/instance.h"
#include "ncclinspd/keep/blackbox.h"
#include "ncclinspd/keep/exemplars.h"
#include "ncclinspd/keep/snapshots.h"
#include "ncclinspd/levels/marks.h"
#include "ncclinspd/levels/raise.h"
#include "ncclinspd/levels/steer.h"
#include "ncclinspd/manager.h"
#include "ncclinspd/metrics/metrics.h"
#include "ncclinspd/metrics/textfile.h"
#include "ncclinspd/otlp/otlp.h"
#include "ncclinspd/serve/serve.h"
#include "ncclinspd/sums/aggregate.h"
#include "ncclinspd/sums/links.h"
#include "ncclinspd/sums/queues.h"
#include "ncclinspd/sums/oplog.h"
#include "ncclinspd/sums/transferlog.h"
#include "reader/base/accounts.h"
#include "reader/base/memory.h"
#include "reader/base/names.h"
#include "reader/join/reconstruct.h"
#include "reader/read/drain.h"
#include "reader/time/ticks.h"

#define DAEMON_LOOK_NS	UINT64_C(1000000000)	/* between two looks of diagnose, at least */
#define DAEMON_OUTPUTS	4			/* directories that files go to */
#define DAEMON_UNWATCHED 64			/* users whose processes wait, and other bounds */

struct daemon {
	struct config config;
	struct config_reading reading;
	int argc;			/* to be read again with the configuration */
	char **argv;
	struct manager manager;
	struct instance instance;
	int listen_fd;			/* ours until serve has it; -1: none */
	bool no_state;			/* its directory did not answer at the start */
	int ready_fd;			/* the pipe on which our parent waits; -1: no parent does */
	struct loop *loop;
	struct ticks ticks;
	uint64_t ticks_wait_ns;
	uint64_t started_mono_ns, started_real_ns;
	struct accounts *accounts;
	struct memory memory;
	struct names *names;
	struct reconstruct *reconstruct;
	struct ranks *ranks;
	struct straggler *straggler;
	struct sensors *sensors;	/* NULL: there is no thread for them */
	struct nics *nics;		/* the same */
	struct aggregate *aggregate;
	struct links *links;
	struct queues *queues;
	struct transferlog *transferlog;
	struct oplog *oplog;
	struct diagnose *diagnose;
	struct journal journal;
	struct blackbox *blackbox;	/* NULL: there is no place for any */
	struct exemplars *exemplars;	/* NULL likewise */
	struct snapshots *snapshots;	/* NULL likewise */
	struct drain *drain;
	struct discover *discover;
	struct metrics *metrics;
	struct serve *serve;
	struct serve *scrape;		/* over TCP; NULL: nowhere */
	int scrape_error;		/* why not: a negative errno */
	struct otlp *otlp;		/* NULL: nothing is pushed */
	struct textfile *textfile;	/* NULL: none */
	int textfile_error;
	struct writer_output outputs[DAEMON_OUTPUTS];	/* found at the last look */
	uint32_t noutputs;
	struct unwatched unwatched[DAEMON_UNWATCHED];	/* found when last asked */
	size_t watch_turn;		/* the process whose threads are looked at first */
	uint64_t looked_records;	/* records that had come at the last look, */
	uint64_t moved_ns;		/* the time at which new ones came last */
	struct steer *steer;
	struct marks *marks;
	struct raise *raise;		/* NULL: other nodes are not asked */
	struct notify *notify;		/* NULL: nobody acts on findings */
	struct probelink *probe;	/* NULL: none is asked */
	struct loop_timer poll_timer, ticks_timer, serve_timer, look_timer, steer_timer;
	struct loop_timer exemplar_timer, alive_timer, lock_timer, scrape_timer, textfile_timer;
	struct loop_timer snapshot_timer, otlp_timer, notify_timer;
};

/*
 * flow.c: hooks of the stages.  `arg` is the struct daemon in all of them; their
 * contracts are those of the stage that calls.
 */
void flow_event(void *arg, struct process *p, const struct event *event, uint64_t now_ns);
void flow_done(const struct op *op, uint64_t now_ns, void *arg);
void flow_joint(const struct op *const *ops, uint32_t n, uint32_t expected, uint64_t now_ns,
		void *arg);
void flow_op(const struct op *op, uint64_t now_ns, void *arg);
void flow_moved(const struct transfers *t, uint64_t now_ns, void *arg);
void flow_requested(const struct net_request *request, uint64_t now_ns, void *arg);
void flow_appeared(void *arg, struct process *p, uint64_t now_ns);
void flow_ended(void *arg, struct process *p, uint64_t now_ns);
void flow_forgotten(void *arg, struct process *p);
void flow_finding(void *arg, const struct finding *f, uint64_t now_ns);
void flow_gathered(void *arg, const struct finding *f, uint64_t now_ns);
void flow_waited(void *arg, uint64_t process_id, const struct probe_event *e, uint64_t now_ns);

/* Timers: read all rings and what follows from them; look for what is wrong. */
void flow_poll(void *arg, uint64_t now_ns);
void flow_look(void *arg, uint64_t now_ns);

/*
 * When to look again, after a look that took so much CPU.  Hundreds of processes, or thousands of
 * communicators, are looked at less often.  Findings take several looks, so that this delays
 * them: much only where nothing goes on.
 */
uint64_t flow_next_look(struct daemon *d, uint64_t now_ns, uint64_t cost_ns);

/* Timer: write the exemplars that are due. */
void flow_exemplar(void *arg, uint64_t now_ns);

/* Timer: write a snapshot, if it is wanted; and when it is wanted from now on. */
void flow_snapshot(void *arg, uint64_t now_ns);
void flow_start_snapshots(struct daemon *d, uint64_t now_ns);

/* The control file, now and when something in it ends.  0, or why it cannot be written. */
int flow_steer(struct daemon *d, uint64_t now_ns);

void flow_start_steering(struct daemon *d, uint64_t now_ns);

/* Two pairs before the first segment is read, so that no tick is without a time. */
void flow_start_ticks(struct daemon *d);

/* answers.c: what stages and the server may ask; `arg` is the struct daemon. */
size_t answers_processes(void *arg, struct process *const **list);
int answers_slots(void *arg, struct process *p, const struct live_slot **slots);

/* Things that bounds keep from being watched, as of now. */
size_t answers_unwatched(void *arg, const struct unwatched **list);
uint64_t answers_waited_ns(void *arg);

/* Something takes long: poll if it is due. */
void answers_meanwhile(void *arg);

/* The content of a black box, as serve_snapshot(). */
int answers_snapshot(void *arg, const char *reason, uint64_t now_ns, struct json *j);

/* The content of a regular snapshot. */
int answers_interval(void *arg, uint64_t now_ns, struct json *j);

/* The content of an exemplar, as serve_exemplar_fill(). */
int answers_exemplar(void *arg, const struct exemplar *e, uint64_t now_ns, struct json *j);

/* Arm `timer` for the time when that server is to run again at the latest. */
void answers_arm(struct daemon *d, struct serve *s, struct loop_timer *timer, uint64_t now_ns);

/* exports.c: what leaves the node.  What cannot be is told, and no failure. */
void exports_start(struct daemon *d, const struct serve_config *config,
		   const struct serve_source *source);
void exports_stop(struct daemon *d);
size_t exports_list(void *arg, struct serve_exporter out[SERVE_EXPORTERS]);

/* Once a second: are files written?  And what was found then. */
void exports_watch(struct daemon *d, uint64_t now_ns);
size_t exports_outputs(void *arg, const struct writer_output **list);

/* Begin to push: before metrics, which tell of it.  What cannot be is told, and no failure. */
void exports_start_otlp(struct daemon *d);

/* Push a finding; an operation, if it is one to be traced; those of an exemplar. */
void exports_finding(struct daemon *d, const struct finding *f);
void exports_op(struct daemon *d, const struct op *op);
void exports_exemplar(struct daemon *d, const struct exemplar *e);

/* The end of a round of the loop. */
void exports_round(struct daemon *d, uint64_t now_ns);

/* Takes over d->listen_fd.  0 or negative errno, told of. */
int answers_start(struct daemon *d);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of three processes, in any order and with anything in them, through all
 * stages from decode to findings.  Two processes are ranks of one user's communicators;
 * the third one is another user's, and claims to be in them.
 *
 * Input: steps of 24 bytes, see struct step.
 */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "ncclinspd/compare/ranks.h"
#include "ncclinspd/findings/diagnose.h"
#include "ncclinspd/sums/aggregate.h"
#include "ncclinspd/sums/oplog.h"
#include "ncclinspd/sums/queues.h"
#include "nci/token.h"
#include "reader/base/names.h"
#include "reader/join/reconstruct.h"
#include "reader/read/decode.h"

#define PROCESSES	3
#define COMMS		3
#define STEPS		64
#define ASKS		1	/* in a run: they take longer than steps */
#define SECOND		UINT64_C(1000000000)
#define START_NS	(1000 * SECOND)
#define GPU_NS		UINT64_C(1700000000000000000)

struct step {
	uint8_t type;		/* modulo: an event, or one of `others` */
	uint8_t form;		/* flags */
	uint8_t who;		/* process and communicator */
	uint8_t token, parent, group;	/* numbers of tokens; 0: none */
	uint8_t x, y;		/* what the type makes of them */
	uint16_t start, span;	/* microseconds: before now, and long */
	uint16_t pass;		/* time: milliseconds */
	uint8_t at;		/* word of the record that is replaced by `word`; 0: none */
	uint8_t live;		/* odd: the event is in flight */
	uint64_t word;
};
_Static_assert(sizeof(struct step) == 24, "the input's layout");

static const char *const texts[] = {
	"AllReduce", "Send", "Recv", "Broadcast", "ncclFloat32", "RING", "SIMPLE",
};
#define TEXTS (sizeof(texts) / sizeof(texts[0]))

static struct process processes[PROCESSES];
static struct process *list[PROCESSES];
static struct comm comms[PROCESSES][COMMS];
static name_t strings[TEXTS];
static uint64_t tags[TEXTS];
static uint64_t now_ns;
static unsigned asked;

static struct names *names;
static struct reconstruct *recon;
static struct ranks *ranks;
static struct aggregate *aggregate;
static struct links *links;
static struct queues *queues;
static struct oplog *oplog;
static struct diagnose *diagnose;

/* ---- the stages, as the daemon joins them ---------------------------------- */

static size_t all_processes(void *arg, struct process *const **out)
{
	(void)arg;
	*out = list;
	return PROCESSES;
}

static int no_slots(void *arg, struct process *p, const struct live_slot **slots)
{
	(void)arg;
	(void)p;
	(void)slots;
	return 0;
}

static void on_done(const struct op *op, uint64_t at_ns, void *arg)
{
	(void)arg;
	ranks_add(ranks, op, at_ns);
}

static void on_joint(const struct op *const *ops, uint32_t n, uint32_t expected, uint64_t at_ns,
		     void *arg)
{
	(void)arg;
	demand(n <= expected && n <= OP_RANKS);
	for (uint32_t i = 1; i < n; i++)
		demand(ops[i]->uid == ops[0]->uid);
	diagnose_ops(diagnose, ops, n, at_ns);
}

static void on_op(const struct op *op, uint64_t at_ns, void *arg)
{
	aggregate_add(aggregate, op, at_ns);
	oplog_add(oplog, op);
	if (!op->local_ranks)
		on_joint(&op, 1, 1, at_ns, arg);
}

static void on_moved(const struct transfers *t, uint64_t at_ns, void *arg)
{
	(void)arg;
	links_add(links, t, at_ns);
}

static void on_requested(const struct net_request *request, uint64_t at_ns, void *arg)
{
	(void)arg;
	queues_add(queues, request, at_ns);
}

static void make_stages(void)
{
	const struct reconstruct_limits limits = {
		.ops = 16, .apis = 8, .proxies = 8, .plans = 8, .spans = 16, .groups = 4,
		.parts = 16, .ended = 8, .processes = PROCESSES,
		.seed = 1,
	};
	const struct ranks_limits joints = { .ops = 8, .joints = 4, .cohorts = 2, .seed = 1 };
	const struct ranks_hooks hooks = { all_processes, on_op, on_joint, NULL };
	const struct aggregate_limits cells = {
		.cells = 16, .slices = 64, .chunks = 256, .seed = 1,
	};
	const struct links_limits few = { .links = 4, .seed = 1 };
	const struct queues_limits short_ones = { .queues = 4, .chunks = 8, .seed = 1 };
	const struct diagnose_config config = { .findings = 4,
						.times = { .stall_min_ns = SECOND } };

	demand(names_new(&names, 64) == 0);
	demand(reconstruct_new(&recon, &limits, names, on_done, NULL) == 0);
	demand(ranks_new(&ranks, &joints, &hooks) == 0);
	demand(aggregate_new(&aggregate, &cells, now_ns) == 0);
	demand(links_new(&links, &few, now_ns) == 0);
	demand(queues_new(&queues, &short_ones) == 0);
	demand(oplog_new(&oplog, 16) == 0);
	demand(diagnose_new(&diagnose, &config, &(struct diagnose_source){
		.processes = all_processes, .slots = no_slots, .reconstruct = recon,
		.links = links, .queues = queues }) == 0);
	reconstruct_tell_moved(recon, on_moved);
	reconstruct_tell_requests(recon, on_requested);
}

static void free_stages(void)
{
	diagnose_free(diagnose);
	oplog_free(oplog);
	queues_free(queues);
	links_free(links);
	aggregate_free(aggregate);
	ranks_free(ranks);
	reconstruct_free(recon);
	names_free(names);
}

static void make_process(uint32_t i)
{
	struct process *p = list[i] = &processes[i];

	*p = (struct process){
		.id = i + 1, .pid = (pid_t)(10 + i), .uid = i < 2 ? 100 : 101, .nonce = i + 1,
		.api_version = 5, .mask = UINT32_MAX, .lanes = 2, .comms = comms[i],
		.ncomms = COMMS, .strings = strings, .tags = tags, .nstrings = TEXTS,
		.first_ticks = 1,
		.clock = { NCI_CLOCK_TSC, START_NS, START_NS, 1, 0 },
	};
	for (uint32_t k = 0; k < COMMS; k++)
		comms[i][k] = (struct comm){
			.ready = true, .has_id = k < 2, .id = k, .rank = (int32_t)i, .nranks = 2,
			.nnodes = 1 + (int32_t)k, .has_gpu = k > 0, .name = "dp",
			.init_ticks = START_NS,
		};
	demand(reconstruct_attach(recon, p) == 0);
}

/* ---- a record --------------------------------------------------------------- */

static const uint8_t types[] = {
#define X(id, NAME, name, least, most) (id),
	NCI_EVENTS(X)
#undef X
};

static const uint8_t lines_of[NCI_EV_END] = {
#define X(id, NAME, name, least, most) [id] = (most),
	NCI_EVENTS(X)
#undef X
};

/* Generations of four slots in each of two lanes; every two of these share their places. */
static uint64_t token_of(uint8_t number)
{
	return number ? nci_token(number / 4 % 2, number % 2 + number / 2 % 2 * 1024u,
				  1 + number / 8) : 0;
}

static void fill(struct nci_slot *slot, const struct step *s)
{
	struct nci_record *rec = (struct nci_record *)slot;
	struct nci_ev_coll *coll = (void *)rec;
	struct nci_ev_p2p *p2p = (void *)rec;
	struct nci_ev_kernel_ch *kernel = (void *)rec;
	struct nci_ev_proxy_op *proxy = (void *)rec;
	struct nci_ev_proxy_step *transfer = (void *)rec;
	struct nci_ev_proxy_sums *sums = (void *)rec;
	struct nci_ev_coll_api *api = (void *)rec;
	struct nci_ev_net_plugin *request = (void *)rec;

	switch (rec->type) {
	case NCI_EV_COLL:
		coll->seq = s->x;
		coll->count = s->y;
		coll->func = 1;
		coll->datatype = 5;
		coll->channels = 1;
		coll->group = token_of(s->group);
		break;
	case NCI_EV_P2P:
		p2p->peer = s->x % 3;
		p2p->count = s->y;
		p2p->func = (uint16_t)(2 + s->y % 2);
		p2p->datatype = 5;
		p2p->channels = 1;
		p2p->group = token_of(s->group);
		break;
	case NCI_EV_KERNEL_CH:
		kernel->gpu_start = GPU_NS + rec->start - START_NS - s->x * UINT64_C(100);
		kernel->gpu_stop = kernel->gpu_start + s->span * UINT64_C(1000);
		kernel->channel = s->y % 4;
		break;
	case NCI_EV_PROXY_OP:
		proxy->peer = s->x % 4;
		proxy->channel = s->y % 4;
		proxy->steps_done = s->y;
		proxy->bytes = s->y * UINT64_C(4096);
		break;
	case NCI_EV_PROXY_STEP:
		transfer->step = s->x;
		transfer->bytes = s->y * 512u;
		transfer->span[0] = 1 + s->x;
		transfer->span[1] = 1 + s->x * 2u;
		transfer->span[2] = 1 + s->x * 3u;
		break;
	case NCI_EV_PROXY_SUMS:
		sums->steps = s->x;
		sums->bytes = s->y * UINT64_C(512);
		sums->busy = sums->covered = s->span * UINT64_C(500);
		sums->ticks[2] = sums->busy;
		sums->point[0] = (struct nci_point){ s->y * 512u, 1 + s->x };
		sums->point[1] = (struct nci_point){ s->y * 1024u, 1 + s->x * 2u };
		break;
	case NCI_EV_NET_PLUGIN:
		request->id = s->y % 2 ? NCI_NET_IB_V1 : NCI_NET_SOCKET_V1;
		request->op = token_of(s->group);
		request->peer = s->x % 4;
		request->channel = s->y % 4;
		request->bytes = s->y * UINT64_C(4096);
		request->queue = s->x;
		break;
	case NCI_EV_COLL_API:
	case NCI_EV_P2P_API:
		api->count = s->y;
		api->func = (uint16_t)(1 + s->x % 4);
		api->datatype = 5;
		break;
	}
}

static void make(struct nci_slot *slot, const struct step *s)
{
	struct nci_record *rec = (struct nci_record *)slot;
	uint64_t back_ns = s->start * UINT64_C(1000);

	memset(slot, 0, sizeof(*slot));
	rec->type = types[s->type % sizeof(types)];
	rec->form = (uint8_t)(lines_of[rec->type] | (s->form & 0xf0));
	rec->comm = (uint16_t)(s->who / PROCESSES % (COMMS + 1));
	rec->token = token_of(s->token);
	rec->parent = token_of(s->parent);
	rec->start = now_ns - back_ns;
	rec->stop = rec->start + (s->span < s->start ? s->span : s->start) * UINT64_C(1000);
	if (lines_of[rec->type] == 2)
		slot->line[1].word[0] = NCI_LINE_CONT;
	fill(slot, s);
	if (s->at)
		slot->line[s->at / 8 % 2].word[s->at % 8] = s->word;
}

static void give(const struct step *s)
{
	struct process *p = list[s->who % PROCESSES];
	struct live_slot live = { .tid = 1 };
	struct event event;

	make(&live.slot, s);
	if (p->state != PROCESS_LIVE)
		return;
	if (s->live & 1) {
		if (decode_slot(p, &live.slot, now_ns, &event) == DECODE_OK)
			reconstruct_settle(recon, p, &live, 1, now_ns);
	} else if (decode_record(p, (struct nci_record *)&live.slot, now_ns, &event) == DECODE_OK) {
		reconstruct_event(recon, p, &event, now_ns);
	}
}

/* ---- what else happens ------------------------------------------------------- */

static void end(struct process *p)
{
	if (p->state != PROCESS_LIVE)
		return;
	p->state = PROCESS_DIED;
	p->ended_ns = now_ns;
	reconstruct_end(recon, p, now_ns);
	ranks_end(ranks, p, now_ns);
	diagnose_ended(diagnose, p, now_ns);
}

static bool look_at_link(const struct links_row *row, void *arg)
{
	struct fit_line line;

	(void)arg;
	links_bound(row);
	fit_line(&row->sums.fit, &line);
	return true;
}

static bool look_at_queue(const struct queues_row *row, void *arg)
{
	(void)arg;
	demand(row->requests);
	return true;
}

static bool look_at_cell(const struct aggregate_row *row, void *arg)
{
	(void)arg;
	demand(row->ops);
	return true;
}

static void ask(void)
{
	const struct links_query peers = { .windows = ~0u, .all_users = true };
	const struct aggregate_query summary = {	/* another window each time */
		.windows = 1u << now_ns / SECOND % AGGREGATE_WINDOW_END, .by = 15,
		.all_users = true,
	};

	links_visit(links, &peers, now_ns, look_at_link, NULL);
	queues_visit(queues, &peers, now_ns, look_at_queue, NULL);
	aggregate_query(aggregate, &summary, now_ns, look_at_cell, NULL);
	diagnose_look(diagnose, now_ns);
}

static void take(const struct step *s)
{
	now_ns += s->pass * UINT64_C(1000000);
	give(s);
	if (s->live & 2 && asked++ < ASKS)
		ask();
	if (s->live & 4) {
		reconstruct_flush(recon, now_ns);
		ranks_flush(ranks, now_ns);
	}
	if (s->live == 0xff)
		end(list[s->who % PROCESSES]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct step step;

	if (fuzz_begins_anew()) {
		free_stages();
		now_ns = START_NS;
		make_stages();
	}
	now_ns += SECOND;
	asked = 0;
	for (size_t i = 0; i < TEXTS; i++)
		tags[i] = nci_tag_of_name(strings[i] = texts[i], (uint32_t)strlen(texts[i]));
	for (uint32_t i = 0; i < PROCESSES; i++)
		make_process(i);
	for (size_t i = 0; i < STEPS && size >= sizeof(step); i++, size -= sizeof(step)) {
		memcpy(&step, data + i * sizeof(step), sizeof(step));
		take(&step);
	}
	for (uint32_t i = 0; i < PROCESSES; i++) {
		end(list[i]);
		diagnose_forgotten(diagnose, list[i]);
		reconstruct_detach(recon, list[i]);
	}
	ask();
	return 0;
}

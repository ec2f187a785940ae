/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/feed.h"

#include "reader/base/pool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCS	4

enum { NAME_FUNC = 1, NAME_FLOAT = NAME_FUNC + FUNCS, NAME_RING, NAME_SIMPLE };
_Static_assert(NAME_SIMPLE == FEED_STRINGS, "a text for each name");

static const char *const texts[FEED_STRINGS] = {
	"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "ncclFloat32", "RING", "SIMPLE",
};

static void feed_must(int err)
{
	if (!err)
		return;
	fprintf(stderr, "bench: %s\n", strerror(-err));
	exit(1);
}

/* ---- what main() joins ----------------------------------------------------- */

static void feed_on_done(const struct op *op, uint64_t now_ns, void *arg)
{
	struct feed *f = arg;

	ranks_add(f->ranks, op, now_ns);
}

static void feed_on_joint(const struct op *const *ops, uint32_t n, uint32_t expected,
			  uint64_t now_ns, void *arg)
{
	struct feed *f = arg;

	straggler_see(f->straggler, ops, n, f->list, FEED_PROCESSES, now_ns);
	diagnose_ops(f->diagnose, ops, n, now_ns);
}

static void feed_on_op(const struct op *op, uint64_t now_ns, void *arg)
{
	struct feed *f = arg;

	aggregate_add(f->aggregate, op, now_ns);
	oplog_add(f->oplog, op);
	if (!op->local_ranks)
		feed_on_joint(&op, 1, 1, now_ns, f);
	f->ops++;
}

static void feed_on_moved(const struct transfers *t, uint64_t now_ns, void *arg)
{
	struct feed *f = arg;

	links_add(f->links, t, now_ns);
}

static size_t list_processes(void *arg, struct process *const **list)
{
	struct feed *f = arg;

	*list = f->list;
	return FEED_PROCESSES;
}

/* Nothing is in flight between two polls. */
static int list_slots(void *arg, struct process *p, const struct live_slot **slots)
{
	*slots = NULL;
	return 0;
}

static void feed_open_stages(struct feed *f)
{
	const struct ranks_hooks hooks = {
		.processes = list_processes, .op = feed_on_op, .joint = feed_on_joint, .arg = f,
	};
	const struct diagnose_config config = { 0 };
	struct diagnose_source source = {
		.arg = f, .processes = list_processes, .slots = list_slots,
	};

	feed_must(names_new(&f->names, NAMES_DEFAULT));
	feed_must(reconstruct_new(&f->reconstruct, NULL, f->names, feed_on_done, f));
	reconstruct_tell_moved(f->reconstruct, feed_on_moved);
	feed_must(ranks_new(&f->ranks, NULL, &hooks));
	feed_must(straggler_new(&f->straggler, NULL));
	feed_must(aggregate_new(&f->aggregate, NULL, 1));
	feed_must(links_new(&f->links, NULL, 1));
	feed_must(oplog_new(&f->oplog, 0));
	source.reconstruct = f->reconstruct;
	source.straggler = f->straggler;
	feed_must(diagnose_new(&f->diagnose, &config, &source));
}

/* ---- processes ------------------------------------------------------------- */

static void feed_start_process(struct feed *f, uint32_t i)
{
	struct process *p = &f->process[i];
	uint64_t generation = f->processes / FEED_PROCESSES;

	*p = (struct process){
		.id = ++f->processes, .pid = (pid_t)f->processes, .nonce = i + 1,
		.api_version = 6,
		.mask = f->mix.channels ? NCI_EVENT_BIT(NCI_EV_KERNEL_CH) : 0,
		.comms = calloc(f->ncomms, sizeof(*p->comms)), .ncomms = f->ncomms,
		.strings = f->strings, .nstrings = FEED_STRINGS,
		.clock = { .ns_per_tick = 1 },
	};
	feed_must(p->comms ? 0 : -1);
	for (uint32_t c = 0; c < f->ncomms; c++)
		p->comms[c] = (struct comm){
			.ready = true, .has_id = true, .id = generation << 32 | (c + 1),
			.rank = (int32_t)i, .nranks = FEED_PROCESSES, .nnodes = 1,
			.init_ticks = 1,
		};
	feed_must(reconstruct_attach(f->reconstruct, p));
	f->list[i] = p;
}

static void feed_end_process(struct feed *f, struct process *p, uint64_t now_ns)
{
	p->state = PROCESS_EXITED;
	p->ended_ns = now_ns;
	reconstruct_end(f->reconstruct, p, now_ns);
	ranks_end(f->ranks, p, now_ns);
	diagnose_ended(f->diagnose, p, now_ns);
}

static void feed_forget_process(struct feed *f, struct process *p)
{
	diagnose_forgotten(f->diagnose, p);
	straggler_forget(f->straggler, p->id);
	reconstruct_detach(f->reconstruct, p);
	free(p->comms);
}

void feed_restart(struct feed *f, uint64_t now_ns)
{
	for (uint32_t i = 0; i < FEED_PROCESSES; i++)
		feed_end_process(f, &f->process[i], now_ns);
	for (uint32_t i = 0; i < FEED_PROCESSES; i++)
		feed_forget_process(f, &f->process[i]);
	for (uint32_t i = 0; i < FEED_PROCESSES; i++)
		feed_start_process(f, i);
}

void feed_open(struct feed *f, const struct feed_mix *mix, uint32_t ncomms, uint32_t room)
{
	*f = (struct feed){ .mix = *mix, .ncomms = ncomms };
	pool_use_fresh_pages();
	f->room = room * (3 + mix->channels + 2 * mix->proxies);
	f->records = calloc(f->room, sizeof(*f->records));
	feed_must(f->records ? 0 : -1);
	feed_open_stages(f);
	for (int i = 0; i < FEED_STRINGS; i++)
		f->strings[i] = names_intern(f->names, 0, texts[i], strlen(texts[i]));
	for (uint32_t i = 0; i < FEED_PROCESSES; i++)
		feed_start_process(f, i);
}

/* Stamps that are refused take another way, which is not what is measured. */
void feed_close(struct feed *f)
{
	feed_must(reconstruct_stats(f->reconstruct)->stamps_refused ? -EINVAL : 0);
	for (uint32_t i = 0; i < FEED_PROCESSES; i++)
		feed_forget_process(f, &f->process[i]);
	diagnose_free(f->diagnose);
	straggler_free(f->straggler);
	ranks_free(f->ranks);
	reconstruct_free(f->reconstruct);
	oplog_free(f->oplog);
	links_free(f->links);
	aggregate_free(f->aggregate);
	names_free(f->names);
	free(f->records);
}

/* ---- records --------------------------------------------------------------- */

/* Tokens as a plugin gives them: the lowest slots of a lane, over and over. */
static void *feed_next_record(struct feed *f, uint8_t type, uint8_t lines, uint64_t token,
			      uint64_t parent, uint64_t start)
{
	struct nci_record *rec = (void *)&f->records[f->nrecords++];

	memset(rec, 0, sizeof(struct nci_slot));
	rec->type = type;
	rec->form = lines;
	rec->token = token;
	rec->parent = parent;
	rec->start = start;
	rec->stop = start + 1000;
	return rec;
}

/* A ProxyOp behind the sums of its steps: sends and receives by turns. */
static void feed_make_transfers(struct feed *f, uint32_t i, uint64_t nth,
				const struct nci_ev_coll *coll)
{
	uint64_t token = nci_token(1, 100 + i, nth + 1), at = coll->start + 1000;
	struct nci_ev_proxy_sums *sums = feed_next_record(f, NCI_EV_PROXY_SUMS, 2,
							  nci_token(1, 200 + i, nth + 1), token,
							  at);
	struct nci_ev_proxy_op *op = feed_next_record(f, NCI_EV_PROXY_OP, 2, token, coll->token,
						      at);
	uint32_t bytes = 1u << (16 + nth % 4);

	sums->comm = op->comm = coll->comm;
	op->form |= i % 2 ? NCI_FORM_SEND : 0;
	op->channel = (uint8_t)(i / 2);
	op->peer = i % 2 ? 1 : 7;
	op->steps_done = sums->steps = 8;
	op->bytes = sums->bytes = 8 * bytes;
	for (int k = 0; k < 3; k++)
		sums->ticks[k] = sums->longest[k] = 300;
	sums->busy = 300;
	sums->covered = 600;
	sums->point[0] = sums->point[1] = (struct nci_point){ bytes, 100 + bytes / 50 };
}

/* The host sees a kernel begin and end when it has. */
static void feed_make_kernel(struct feed *f, uint32_t channel, uint64_t nth,
			     const struct nci_ev_coll *coll)
{
	struct nci_ev_kernel_ch *k = feed_next_record(f, NCI_EV_KERNEL_CH, 1,
						      nci_token(1, channel, nth + 1), coll->token,
						      coll->start + 1000);

	k->comm = coll->comm;
	k->channel = (uint8_t)channel;
	k->gpu_start = coll->start + 5000 + channel;
	k->gpu_stop = coll->start + 25000 + nth % 64 * 100;
	k->start = k->gpu_start + 700;
	k->stop = k->gpu_stop + 700;
}

void feed_make(struct feed *f, uint64_t nth)
{
	uint32_t comm = (uint32_t)(nth % f->ncomms);
	uint64_t at = feed_time_ns(nth), seq = nth / f->ncomms;
	struct nci_record *group;
	struct nci_ev_coll_api *api = feed_next_record(f, NCI_EV_COLL_API, 1,
						       nci_token(0, 1, nth + 1), 0, at);
	struct nci_ev_coll *coll = feed_next_record(f, NCI_EV_COLL, 2,
						    nci_token(0, 2, nth + 1), api->token,
						    at + 2000);

	api->comm = coll->comm = (uint16_t)comm;
	api->func = coll->func = (uint16_t)(NAME_FUNC + comm % FUNCS);
	api->datatype = coll->datatype = NAME_FLOAT;
	api->count = coll->count = UINT64_C(1) << (10 + seq % f->mix.sizes);
	coll->algo = NAME_RING;
	coll->proto = NAME_SIMPLE;
	coll->seq = seq;
	coll->channels = (uint8_t)f->mix.channels;
	coll->group = nci_token(0, 3, nth + 1);
	coll->form |= f->mix.channels ? NCI_FORM_WATCHED : 0;
	group = feed_next_record(f, NCI_EV_GROUP, 1, coll->group, 0, at + 1500);
	group->comm = coll->comm;
	for (uint32_t i = 0; i < f->mix.proxies; i++)
		feed_make_transfers(f, i, nth, coll);
	for (uint32_t i = 0; i < f->mix.channels; i++)
		feed_make_kernel(f, i, nth, coll);
}

void feed_run(struct feed *f, uint32_t process, uint64_t now_ns)
{
	struct process *p = &f->process[process];

	for (uint32_t i = 0; i < f->nrecords; i++) {
		const struct nci_record *rec = (const void *)&f->records[i];
		struct event ev = { rec, &p->comms[rec->comm] };

		reconstruct_event(f->reconstruct, p, &ev, now_ns);
	}
	p->records += f->nrecords;
	aggregate_account(f->aggregate, p->id, p->records, 0, now_ns);
	reconstruct_flush(f->reconstruct, now_ns);
	ranks_flush(f->ranks, now_ns);
	straggler_turn(f->straggler, now_ns);
}

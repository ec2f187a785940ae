/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon's pure stages cost: records per second of one core's time, from
 * reconstruct_event() to the aggregates and the log, for the mixes that jobs make.
 * `--json` prints one object.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/aggregate.h"
#include "ncclinspd/oplog.h"
#include "ncclinspd/reconstruct.h"
#include "shmring/clock.h"

#define PROCESSES	8
#define BATCH		4096	/* operations prepared at a time, off the clock */

enum { NAME_ALLREDUCE = 1, NAME_FLOAT, NAME_RING, NAME_SIMPLE, NAMES };

static const char *const texts[NAMES] = { "", "AllReduce", "ncclFloat32", "RING", "SIMPLE" };

/* One operation's records: a call, a head, and so many children. */
static const struct mix {
	const char *name;
	uint32_t channels;
	uint32_t proxies;
} mixes[] = {
	{ "ops: call and collective",        0,  0 },
	{ "kernel, 1 channel",               1,  0 },
	{ "kernel, 16 channels",            16,  0 },
	{ "net, 16 channels, 32 proxy ops", 16, 32 },
};

struct sinks {
	struct aggregate *agg;
	struct oplog *oplog;
	uint64_t ops;
};

struct bench {
	struct names *names;
	struct reconstruct *rc;
	struct sinks sinks;
	struct process process[PROCESSES];
	struct comm comm;
	name_t strings[NAMES - 1];
	struct nci_slot *records;
	uint32_t nrecords;
};

static void done(const struct op *op, uint64_t now_ns, void *arg)
{
	struct sinks *sinks = arg;

	aggregate_add(sinks->agg, op, now_ns);
	oplog_add(sinks->oplog, op);
	sinks->ops++;
}

static void must(int err)
{
	if (!err)
		return;
	fprintf(stderr, "bench_pipeline: %s\n", strerror(-err));
	exit(1);
}

static void open_processes(struct bench *b, const struct mix *mix)
{
	b->comm = (struct comm){
		.ready = true, .has_id = true, .id = 0xabc, .nranks = PROCESSES, .nnodes = 1,
	};
	for (int i = 1; i < NAMES; i++)
		b->strings[i - 1] = names_intern(b->names, 0, texts[i], strlen(texts[i]));
	for (uint32_t i = 0; i < PROCESSES; i++) {
		b->process[i] = (struct process){
			.id = i + 1, .nonce = i + 1, .api_version = 6,
			.mask = mix->channels ? NCI_EVENT_BIT(NCI_EV_KERNEL_CH) : 0,
			.comms = &b->comm, .ncomms = 1,
			.strings = b->strings, .nstrings = NAMES - 1,
			.clock = { .ns_per_tick = 0.4 },
		};
		must(reconstruct_attach(b->rc, &b->process[i]));
	}
}

static void bench_open(struct bench *b, const struct mix *mix)
{
	memset(b, 0, sizeof(*b));
	b->records = calloc(BATCH * (2 + mix->channels + mix->proxies), sizeof(*b->records));
	must(b->records ? 0 : -1);
	must(names_new(&b->names, NAMES_DEFAULT));
	must(aggregate_new(&b->sinks.agg, NULL, 1));
	must(oplog_new(&b->sinks.oplog, 0));
	must(reconstruct_new(&b->rc, NULL, b->names, done, &b->sinks));
	open_processes(b, mix);
}

static void bench_close(struct bench *b)
{
	reconstruct_free(b->rc);
	oplog_free(b->sinks.oplog);
	aggregate_free(b->sinks.agg);
	names_free(b->names);
	free(b->records);
}

/* ---- records ------------------------------------------------------------- */

/* Tokens as a plugin gives them: the lowest slots of a lane, over and over. */
static void *next_record(struct bench *b, uint8_t type, uint8_t lines, uint64_t token,
			 uint64_t parent, uint64_t start)
{
	struct nci_record *rec = (void *)&b->records[b->nrecords++];

	memset(rec, 0, sizeof(struct nci_slot));
	rec->type = type;
	rec->form = lines;
	rec->token = token;
	rec->parent = parent;
	rec->start = start;
	rec->stop = start + 1000;
	return rec;
}

static void prepare_op(struct bench *b, const struct mix *mix, uint64_t seq)
{
	uint64_t at = 1000000 + seq * 100000;
	struct nci_ev_coll_api *api = next_record(b, NCI_EV_COLL_API, 1,
						  nci_token(0, 1, seq + 1), 0, at);
	struct nci_ev_coll *coll = next_record(b, NCI_EV_COLL, 2,
					       nci_token(0, 2, seq + 1), api->token, at + 2000);

	api->func = coll->func = NAME_ALLREDUCE;
	api->datatype = coll->datatype = NAME_FLOAT;
	api->count = coll->count = UINT64_C(1) << (10 + seq % 8);
	coll->algo = NAME_RING;
	coll->proto = NAME_SIMPLE;
	coll->seq = seq;
	coll->channels = (uint8_t)mix->channels;
	for (uint32_t i = 0; i < mix->proxies; i++)
		next_record(b, NCI_EV_PROXY_OP, 2, nci_token(1, 100 + i, seq + 1), coll->token,
			    at + 3000);
	for (uint32_t i = 0; i < mix->channels; i++) {
		struct nci_ev_kernel_ch *k = next_record(b, NCI_EV_KERNEL_CH, 1,
							 nci_token(1, i, seq + 1),
							 coll->token, at + 3000);

		k->channel = (uint8_t)i;
		k->gpu_start = at + i;
		k->gpu_stop = at + 20000 + seq % 64 * 100;
	}
}

/* Feed what is prepared, as drain does: lane after lane, then a flush. */
static uint64_t feed(struct bench *b, uint32_t process, uint64_t now_ns)
{
	uint64_t from = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	for (uint32_t i = 0; i < b->nrecords; i++) {
		struct event ev = { (const void *)&b->records[i], &b->comm };

		reconstruct_event(b->rc, &b->process[process], &ev, now_ns);
	}
	reconstruct_flush(b->rc, now_ns);
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) - from;
}

static void run(const struct mix *mix, bool json, bool last)
{
	struct bench b;
	uint64_t ns = 0, records = 0, now_ns = 1;

	bench_open(&b, mix);
	for (uint64_t round = 0; ns < 400000000; round++) {
		b.nrecords = 0;
		for (uint32_t i = 0; i < BATCH; i++)
			prepare_op(&b, mix, round / PROCESSES * BATCH + i);
		now_ns += 10000000;
		ns += feed(&b, round % PROCESSES, now_ns);
		records += b.nrecords;
	}
	printf(json ? "\"%s\": {\"records_per_s\": %.0f, \"ns_per_record\": %.1f, "
		      "\"ns_per_operation\": %.0f}%s" :
		      "%-32s %6.1f M records/s  %6.1f ns/record  %6.0f ns/operation%s",
	       mix->name, (double)records * (json ? 1e9 : 1e3) / (double)ns,
	       (double)ns / (double)records, (double)ns / (double)b.sinks.ops,
	       json && !last ? ",\n " : "\n");
	bench_close(&b);
}

int main(int argc, char **argv)
{
	bool json = argc > 1 && !strcmp(argv[1], "--json");
	size_t n = sizeof(mixes) / sizeof(*mixes);

	if (json)
		printf("{");
	for (size_t i = 0; i < n; i++)
		run(&mixes[i], json, i == n - 1);
	if (json)
		printf("}\n");
	return 0;
}

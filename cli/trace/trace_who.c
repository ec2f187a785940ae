/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owners of slices: the job's processes, their GPUs and members, as far as rows and
 * records tell them.
 */
#include "cli/trace/trace_who.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/member.h"
#include "cli/base/must.h"
#include "util/list.h"

#define SOURCES	4096
#define MEMBERS	65536
#define DRAWN	8192
#define PIDS	(1u << 22)	/* Linux gives out smaller ones */

struct who_source {
	int64_t pid;
	uint64_t instance;
	int64_t job_rank;	/* the rank its launcher says */
	char command[64];
};

/* A process of the trace: what one GPU does for one process of the job. */
struct drawn {
	uint32_t source;
	uint32_t pid;		/* Chrome's */
	char gpu[48];		/* "": not known */
	char bus[32];		/* "": not known */
	int64_t index;		/* number in nvidia-smi; TRACE_ANY: not known */
	int64_t rank, nranks;	/* rank and size in the largest communicator so far */
};

struct known_member {
	struct trace_member public;
	char id[48];		/* the communicator's, as the API gave it; "": none */
};

struct trace_who {
	struct who_source source[SOURCES];
	uint32_t nsources;
	struct drawn drawn[DRAWN];
	uint32_t ndrawn;
	struct known_member *member[MEMBERS];
	uint32_t nmembers;
	uint32_t last;		/* the one found last */
};

struct trace_who *trace_who_new(void)
{
	return must(calloc(1, sizeof(struct trace_who)));
}

void trace_who_free(struct trace_who *who)
{
	for (uint32_t i = 0; who && i < who->nmembers; i++)
		free(who->member[i]);
	free(who);
}

static int64_t who_number(const json_t *row, const char *key)
{
	const json_t *value = json_object_get(row, key);

	return json_is_integer(value) ? json_integer_value(value) : TRACE_ANY;
}

/* ---- processes of the job -------------------------------------------------------- */

uint32_t trace_who_source(struct trace_who *who, int64_t pid, uint64_t instance)
{
	struct who_source *s;

	for (uint32_t i = 0; i < who->nsources; i++) {
		s = &who->source[i];
		if (s->pid != pid || (instance && s->instance && s->instance != instance))
			continue;
		if (instance)
			s->instance = instance;
		return i;
	}
	s = array_add(who->source, &who->nsources);
	if (s)
		*s = (struct who_source){ .pid = pid, .instance = instance, .job_rank = TRACE_ANY };
	return who->nsources - 1;
}

void trace_who_describe(struct trace_who *who, uint32_t source, const json_t *process)
{
	struct who_source *s = &who->source[source];

	snprintf(s->command, sizeof(s->command), "%s", member_text(process, "command", ""));
	s->job_rank = who_number(json_object_get(process, "job"), "rank");
}

/* ---- processes of the trace ------------------------------------------------------ */

static uint32_t who_free_pid(const struct trace_who *who, int64_t pid)
{
	uint32_t wanted = pid > 0 && pid < PIDS ? (uint32_t)pid : PIDS;

	for (uint32_t i = 0; i < who->ndrawn; i++)
		if (who->drawn[i].pid == wanted)
			return PIDS + 1 + who->ndrawn;
	return wanted;
}

static struct drawn *who_add_drawn(struct trace_who *who, uint32_t source)
{
	uint32_t pid = who_free_pid(who, who->source[source].pid);
	struct drawn *d = array_add(who->drawn, &who->ndrawn);

	if (!d)
		return &who->drawn[DRAWN - 1];
	*d = (struct drawn){
		.source = source, .pid = pid, .rank = TRACE_ANY, .nranks = TRACE_ANY,
	};
	return d;
}

/* Has the process another rank of the same communicator?  Then it drives several GPUs. */
static bool is_one_of_several(const struct trace_who *who, uint32_t source, const char *id,
			      int64_t rank)
{
	for (uint32_t i = 0; *id && i < who->nmembers; i++) {
		const struct known_member *m = who->member[i];

		if (m->public.source == source && !strcmp(m->id, id) && m->public.rank != rank)
			return true;
	}
	return false;
}

/* One that was made for what concerns no communicator is as good as a new one. */
static struct drawn *who_find_drawn(struct trace_who *who, uint32_t source, const char *gpu,
				    int64_t rank, bool by_rank)
{
	struct drawn *unused = NULL;

	for (uint32_t i = 0; i < who->ndrawn; i++) {
		struct drawn *d = &who->drawn[i];

		if (d->source != source)
			continue;
		if (d->rank == TRACE_ANY && !*d->gpu)
			unused = d;
		else if (!strcmp(d->gpu, gpu) && (!by_rank || d->rank == rank))
			return d;
	}
	if (!unused)
		unused = who_add_drawn(who, source);
	snprintf(unused->gpu, sizeof(unused->gpu), "%s", gpu);
	return unused;
}

uint32_t trace_who_pid(struct trace_who *who, uint32_t source)
{
	for (uint32_t i = 0; i < who->ndrawn; i++)
		if (who->drawn[i].source == source)
			return who->drawn[i].pid;
	return who_add_drawn(who, source)->pid;
}

/* ---- members --------------------------------------------------------------------- */

static const char *comm_name_of(const json_t *row)
{
	const char *name = member_text(row, "comm_name", "");

	return *name ? name : member_text(row, "name", "");
}

static bool known_is(const struct known_member *m, uint32_t source, const char *id,
		     const char *name, int64_t rank)
{
	return m->public.source == source && m->public.rank == rank && !strcmp(m->id, id) &&
	       (*id || !strcmp(m->public.comm, name));
}

static const struct known_member *who_find_member(struct trace_who *who, uint32_t source,
						  const json_t *row)
{
	const char *id = member_text(row, "comm_id", ""), *name = comm_name_of(row);
	int64_t rank = who_number(row, "rank");

	for (uint32_t i = 0; i < who->nmembers; i++) {
		uint32_t at = (who->last + i) % who->nmembers;

		if (!known_is(who->member[at], source, id, name, rank))
			continue;
		who->last = at;
		return who->member[at];
	}
	return NULL;
}

/* "dp", or the end of its id. */
static void who_set_label(struct trace_member *m, const char *name, const char *id)
{
	size_t n = strlen(id);

	if (*name)
		snprintf(m->comm, sizeof(m->comm), "%s", name);
	else
		snprintf(m->comm, sizeof(m->comm), "%s%s", n > 8 ? ".." : "",
			 n > 8 ? id + n - 8 : id);
}

const struct trace_member *trace_who_learn(struct trace_who *who, uint32_t source,
					   const json_t *row)
{
	const struct known_member *known = who_find_member(who, source, row);
	const char *id = member_text(row, "comm_id", ""), *gpu = member_text(row, "gpu_uuid", "");
	int64_t rank = who_number(row, "rank"), nranks = who_number(row, "nranks");
	struct known_member *m;
	struct drawn *d;

	if (known)
		return &known->public;
	if (who->nmembers == MEMBERS)
		return NULL;
	d = who_find_drawn(who, source, gpu, rank,
			   !*gpu && is_one_of_several(who, source, id, rank));
	if (d->rank == TRACE_ANY || nranks > d->nranks) {
		d->rank = rank;
		d->nranks = nranks;
	}
	if (!*d->bus) {
		snprintf(d->bus, sizeof(d->bus), "%s", member_text(row, "pci_bus_id", ""));
		d->index = who_number(row, "gpu_index");
	}
	m = must(calloc(1, sizeof(*m)));
	m->public = (struct trace_member){ .source = source, .pid = d->pid, .rank = rank,
					   .nranks = nranks, .index = who->nmembers };
	snprintf(m->id, sizeof(m->id), "%s", id);
	who_set_label(&m->public, comm_name_of(row), id);
	*array_must_add(who->member, &who->nmembers) = m;
	return &m->public;
}

uint32_t trace_who_of_rank(const struct trace_who *who, const json_t *row, int64_t rank)
{
	const char *id = member_text(row, "comm_id", "");

	for (uint32_t i = 0; i < who->nmembers; i++)
		if (who->member[i]->public.rank == rank && *id && !strcmp(who->member[i]->id, id))
			return who->member[i]->public.pid;
	return 0;
}

static void who_read_comm(struct trace_who *who, json_t *comm)
{
	json_each(rank, json_object_get(comm, "local_ranks")) {
		json_t *row = json_copy(rank);

		json_object_set(row, "comm_id", json_object_get(comm, "comm_id"));
		json_object_set(row, "comm_name", json_object_get(comm, "name"));
		json_object_set(row, "nranks", json_object_get(comm, "nranks"));
		trace_who_learn(who, trace_who_source(who, who_number(rank, "pid"), 0), row);
		json_decref(row);
	}
}

void trace_who_read(struct trace_who *who, const json_t *processes, const json_t *comms)
{
	json_each(row, processes)
		trace_who_describe(who, trace_who_source(who, who_number(row, "pid"), 0), row);
	json_each(row, comms)
		who_read_comm(who, row);
}

/* ---- names ----------------------------------------------------------------------- */

/* The launcher's rank, if all that the process does is drawn here; else NCCL's. */
static int64_t drawn_rank(const struct trace_who *who, const struct drawn *d)
{
	for (uint32_t i = 0; i < who->ndrawn; i++)
		if (who->drawn[i].source == d->source && &who->drawn[i] != d)
			return d->rank;
	return who->source[d->source].job_rank != TRACE_ANY ? who->source[d->source].job_rank
							    : d->rank;
}

static void drawn_put_name(const struct trace_who *who, const struct drawn *d, char *buf,
			   size_t size)
{
	const struct who_source *s = &who->source[d->source];
	char rank[32] = "rank ?", gpu[48] = "", pid[32] = "";

	if (drawn_rank(who, d) != TRACE_ANY)
		snprintf(rank, sizeof(rank), "rank %" PRId64, drawn_rank(who, d));
	if (*d->bus && d->index != TRACE_ANY)
		snprintf(gpu, sizeof(gpu), " GPU %" PRId64, d->index);
	else if (*d->bus)
		snprintf(gpu, sizeof(gpu), " GPU %s", d->bus);
	if (s->pid != d->pid)	/* viewers show the same pid anyway */
		snprintf(pid, sizeof(pid), " of pid %" PRId64, s->pid);
	snprintf(buf, size, "%s%s%s%s%s", rank, gpu, *s->command ? " " : "", s->command, pid);
}

size_t trace_who_tell(const struct trace_who *who, struct trace_writer *w)
{
	char name[256];

	for (uint32_t i = 0; i < who->ndrawn; i++) {
		const struct drawn *d = &who->drawn[i];
		const struct trace_at at = { .pid = d->pid };

		drawn_put_name(who, d, name, sizeof(name));
		trace_name(w, "process_name", at, name);
		trace_sort(w, "process_sort_index", at,
			   drawn_rank(who, d) == TRACE_ANY ? INT32_MAX : drawn_rank(who, d));
	}
	return who->ndrawn;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of snapshots: it checks each file, and keeps only what is judged.  Files are read side
 * by side; what they tell is put together under a lock.
 */
#include "cli/offline/shots.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <search.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/base/intake.h"
#include "cli/base/member.h"
#include "cli/base/must.h"
#include "util/cleanup.h"
#include "util/unknown.h"
#include "util/utf8.h"
#include "util/zst.h"

#define FORMAT	  "ncclinsp-snapshot"
#define VERSION	  1
#define FILE_MOST (256u << 20)	/* bytes, also when expanded */
#define KEEPS	  (1 << 20)	/* bytes of memory for the next file */
#define NODE_RANKS 16		/* ranks of one communicator on a node */
#define SMALL	  4096		/* items of a list whose room is given back */
#define ENDED_NS  UINT64_C(60000000000)	/* snapshots are a minute apart */
#define READERS	  16		/* files at a time */
#define CACHED	  256		/* texts that a reader knows without asking; a power of two */

/* ---- texts ---------------------------------------------------------------------------- */

static int texts_order(const void *a, const void *b)
{
	return strcmp(a, b);
}

const char *shots_text_in(void **texts, const char *text)
{
	char **place = must(tsearch(text, texts, texts_order));

	if (*place == text)
		*place = must(strdup(text));
	return *place;
}

const char *shots_text(struct shots *s, const char *text)
{
	return shots_text_in(&s->texts, text);
}

/* Reads one file at a time. */
struct file_reader {
	struct shots *shots;
	struct reader_of_rows rows;
	const char *cached[CACHED];
};

static size_t text_place(const char *text, size_t bytes)
{
	uint32_t hash = (uint32_t)bytes;

	for (size_t i = 0; i < bytes; i++)
		hash = hash * 31 + (unsigned char)text[i];
	return (hash ^ hash >> 8) % CACHED;
}

/* Keeps a text for the rows; most are the same in all rows. */
static const char *reader_text(void *arg, const char *text, size_t bytes)
{
	struct file_reader *r = arg;
	const char **cached = &r->cached[text_place(text, bytes)];
	CLEANUP(cleanup_freep) char *safe = NULL;

	if (*cached && !strncmp(*cached, text, bytes) && !(*cached)[bytes])
		return *cached;
	safe = must(strndup(text, bytes));
	utf8_clean(safe, bytes);
	pthread_mutex_lock(&r->shots->lock);
	*cached = shots_text(r->shots, safe);
	pthread_mutex_unlock(&r->shots->lock);
	return *cached;
}

/* ---- one file ------------------------------------------------------------------- */

char *shots_read_file(int dir, const char *path, size_t most, size_t *bytes, const char **why)
{
	int fd = intake_open(dir, path, bytes, why);
	FILE *file = fd < 0 ? NULL : must(fdopen(fd, "r"));
	char *text = NULL;

	if (!file)
		return NULL;
	if (*bytes > most) {
		*why = "too large";
	} else {
		text = must(malloc(*bytes + 1));
		*bytes = fread(text, 1, *bytes, file);
		text[*bytes] = '\0';
	}
	if (ferror(file)) {
		*why = strerror(errno);
		free(text);
		text = NULL;
	}
	fclose(file);
	return text;
}

static char *shot_read(const char *path, size_t *bytes, const char **why)
{
	char *text = shots_read_file(AT_FDCWD, path, FILE_MOST, bytes, why), *expanded = NULL;

	if (!text || !zst_is(text, *bytes))
		return text;
	*why = "damaged, or too large";
	if (!zst_expand(text, *bytes, FILE_MOST, &expanded, bytes)) {
		expanded = must(realloc(expanded, *bytes + 1));
		expanded[*bytes] = '\0';
	}
	free(text);
	return expanded;
}

#define WHY 160

/* Is it a snapshot that this program knows?  False: why[] says why not. */
static bool shot_parse(struct file_reader *r, const char *text, size_t bytes,
		       struct snapshot_read *rows, char why[WHY])
{
	struct scan *s = &r->rows.scan;

	*why = '\0';
	scan_init(s, text, bytes);
	if (!read_row(&r->rows, &snapshot_reads, rows) || !scan_end(s))
		snprintf(why, WHY, "not a snapshot of ncclinspd: byte %zu: %s",
			 (size_t)(s->at - s->text), s->error);
	else if (!rows->format || strcmp(rows->format, FORMAT))
		snprintf(why, WHY, "not a snapshot of ncclinspd");
	else if (rows->format_version != VERSION)
		snprintf(why, WHY, "of another version of ncclinspd");
	scan_deinit(s);
	return !*why;
}

static uint64_t written_ns(const char *at)
{
	struct tm tm = { 0 };
	double seconds, ns;
	int n = 0;

	if (sscanf(at, "%4d-%2d-%2dT%2d:%2d:%lfZ%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
		   &tm.tm_hour, &tm.tm_min, &seconds, &n) != 6 || !n)
		return 0;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	ns = ((double)timegm(&tm) + seconds) * 1e9;
	return ns > 0 && ns < (double)INT64_MAX ? (uint64_t)ns : 0;
}

static void node_free(struct shots_node *node)
{
	if (!node)
		return;
	read_row_deinit(&snapshot_reads, &node->rows);
	json_decref(node->findings);
	free(node->text);
	free(node);
}

/* A snapshot is written when a job has ended, too: what held until then is told as what holds. */
static void node_take_findings(struct shots_node *node)
{
	uint64_t now_ns = node->rows.written_mono_ns, until_ns;

	node->findings = shots_json(node, &node->rows.findings_json);
	json_each(f, node->findings) {
		until_ns = member_number(f, "until_mono_ns", UNKNOWN_U64);
		if (member_true(f, "with_job") && until_ns <= now_ns &&
		    now_ns - until_ns < ENDED_NS)
			json_object_set_new(f, "active", json_true());
	}
}

/* The text becomes the node's; NULL: why[] tells why it is none. */
static struct shots_node *node_read(struct file_reader *r, char *text, size_t bytes,
				    char why[WHY])
{
	struct shots_node *node = must(calloc(1, sizeof(*node)));

	node->text = text;
	if (!shot_parse(r, text, bytes, &node->rows, why)) {
		node_free(node);
		return NULL;
	}
	node->host = node->rows.status.host ?: "?";
	node->written_at = node->rows.written_at ?: "";
	node->clock = (struct shots_clock){ written_ns(node->written_at),
					    node->rows.written_mono_ns };
	node_take_findings(node);
	return node;
}

json_t *shots_json(const struct shots_node *node, const struct scan_text *part)
{
	json_t *value = part->at ? intake_read(part->at, part->bytes, NULL) : NULL;

	intake_move_times(value, node->moved_ns);
	return value;
}

/* ---- what is kept of it ------------------------------------------------------------ */

static int comms_order(const void *a, const void *b)
{
	const struct shots_comm *x = a, *y = b;

	return x->id != y->id ? (x->id > y->id) - (x->id < y->id) :
				(x->nranks > y->nranks) - (x->nranks < y->nranks);
}

struct shots_comm *shots_comm(const struct shots *s, uint64_t id, int32_t nranks)
{
	const struct shots_comm key = { .id = id, .nranks = nranks };
	struct shots_comm **place = tfind(&key, &s->comms_by_id, comms_order);

	return place ? *place : NULL;
}

struct shots_comm *shots_comm_add(struct shots *s, uint64_t id, int32_t nranks)
{
	struct shots_comm *comm = shots_comm(s, id, nranks);

	if (comm)
		return comm;
	comm = must(calloc(1, sizeof(*comm)));
	comm->id = id;
	comm->nranks = nranks;
	must(tsearch(comm, &s->comms_by_id, comms_order));
	*(struct shots_comm **)must(list_append(&s->comms)) = comm;
	return comm;
}

static struct shots_series *series_add(struct shots_comm *comm, const char *func)
{
	struct shots_series **place = &comm->series;

	while (*place && strcmp((*place)->func, func) < 0)
		place = &(*place)->next;
	if (!*place || (*place)->func != func) {
		struct shots_series *series = must(calloc(1, sizeof(*series)));

		*series = (struct shots_series){ .next = *place, .func = func };
		*place = series;
	}
	return *place;
}

static uint64_t number_cut(uint64_t number, unsigned bits)
{
	uint64_t most = (UINT64_C(1) << bits) - 1;

	return number < most ? number : most;
}

static unsigned size_class(uint64_t bytes)
{
	return bytes && bytes != UNKNOWN_U64 ? 63 - (unsigned)__builtin_clzll(bytes) : 0;
}

static void span_join(struct shots_span *to, const struct shots_span *more)
{
	if (more->from_seq < to->from_seq) {
		to->from_seq = more->from_seq;
		to->from_ns = more->from_ns;
	}
	if (more->to_seq > to->to_seq) {
		to->to_seq = more->to_seq;
		to->to_ns = more->to_ns;
	}
}

/* A file tells of the ranks of a node, by turns. */
static void series_add_span(struct shots_series *series, const struct shots_span *span)
{
	uint32_t n = series->spans.n, looked = 0;

	for (; n && looked < NODE_RANKS; n--, looked++)
		if (series->spans.at[n - 1].rank == span->rank) {
			span_join(&series->spans.at[n - 1], span);
			return;
		}
	*(struct shots_span *)must(list_append(&series->spans)) = *span;
}

/* A list as long as its room; one with much room keeps it, of which nothing is touched. */
static void *list_trimmed(void *at, uint32_t n, uint32_t *room, size_t bytes)
{
	void *less = n && n <= SMALL ? realloc(at, n * bytes) : NULL;

	if (!less)
		return at;
	*room = n;
	return less;
}

#define TRIM(list) ((list)->at = list_trimmed((list)->at, (list)->n, &(list)->room, \
					      sizeof(*(list)->at)))

static void series_add_sample(struct shots_series *series, const struct sample_read *row)
{
	struct shots_sample *sample = must(list_append(&series->samples));

	*sample = (struct shots_sample){
		.seq = number_cut(row->seq, 38), .rank = number_cut((uint64_t)row->rank, 20),
		.size_class = size_class(row->bytes) & 63,
		.inside_ns = number_cut(row->inside_ns, 38),
		.before_us = number_cut(row->before_ns / 1000, 26),
	};
	if (row->done_mono_ns != UNKNOWN_U64)
		series_add_span(series, &(struct shots_span){
			row->rank, row->seq, row->done_mono_ns, row->seq, row->done_mono_ns });
}

/* Most series are those of a node or two, and nobody adds to them again. */
static void comm_trim(struct shots_comm *comm)
{
	for (struct shots_series *at = comm ? comm->series : NULL; at; at = at->next) {
		TRIM(&at->samples);
		TRIM(&at->spans);
	}
}

static void shots_add_samples(struct shots *s, const struct shots_node *node)
{
	const struct sample_read *last = NULL;
	struct shots_series *series = NULL;

	for (uint32_t i = 0; s->wants_samples && i < node->rows.samples.n; i++) {
		const struct sample_read *row = &node->rows.samples.at[i];

		if (row->comm_id == UNKNOWN_U64 || !row->func || row->rank == UNKNOWN_I32 ||
		    row->inside_ns == UNKNOWN_U64 || row->seq == UNKNOWN_U64)
			continue;
		if (!last || last->comm_id != row->comm_id || last->nranks != row->nranks ||
		    last->func != row->func)
			series = series_add(shots_comm_add(s, row->comm_id, row->nranks),
					    row->func);
		last = row;
		series_add_sample(series, row);
	}
	for (uint32_t i = 0; s->wants_samples && i < node->rows.comms.n; i++)
		comm_trim(shots_comm(s, node->rows.comms.at[i].comm_id,
				     node->rows.comms.at[i].nranks));
}

uint64_t shots_clock_at(const struct shots_clock *clock, uint64_t mono_ns)
{
	if (clock->mono_ns == UNKNOWN_U64 || mono_ns > clock->mono_ns ||
	    clock->mono_ns - mono_ns > clock->written_ns)
		return 0;
	return clock->written_ns - (clock->mono_ns - mono_ns);
}

struct whom shots_whom(const json_t *row, const char *host)
{
	return (struct whom){
		.rank = member_i32(row, "rank"), .world_rank = member_i32(row, "world_rank"),
		.pid = (int32_t)member_number(row, "pid", 0), .host = host,
		.command = member_text(row, "command", NULL),
		.pci_bus_id = member_text(row, "pci_bus_id", NULL),
		.gpu_index = member_i32(row, "gpu_index"),
	};
}

/* Compared as far as `until` goes: a day is to its end. */
static bool shots_is_later(const struct shots *s, const struct shots_node *node)
{
	return (s->until && strncmp(node->written_at, s->until, strlen(s->until)) > 0) ||
	       (s->at && strncmp(node->written_at, s->at, strlen(s->at)));
}

static int nodes_order(const void *a, const void *b)
{
	const struct shots_node *x = a, *y = b;

	return strcmp(x->host, y->host);
}

const struct shots_node *shots_node(const struct shots *s, const char *host)
{
	const struct shots_node key = { .host = host };
	struct shots_node **place = tfind(&key, &s->nodes_by_host, nodes_order);

	return place ? *place : NULL;
}

/* Frees all that is not asked for again: most of a file. */
static void node_trim(const struct shots *s, struct shots_node *node)
{
	list_deinit(&node->rows.samples);
	list_deinit(&node->rows.peers);
	list_deinit(&node->rows.rows);
	if (s->keeps_text)
		return;
	free(node->text);
	node->text = NULL;
}

/* Are they of two daemons that ran at the same time?  One that was started anew is none. */
static bool nodes_clash(const struct shots_node *a, const struct shots_node *b)
{
	bool in_order = strcmp(a->written_at, b->written_at) <= 0;
	const struct status_read *one = &a->rows.status, *other = &b->rows.status;
	const char *older = (in_order ? a : b)->written_at;
	const char *started = (in_order ? other : one)->started_at;

	return one->started_mono_ns != other->started_mono_ns && one->started_at && started &&
	       strcmp(older, started) >= 0;
}

/* Only one of them counts: what the other tells would be missing without a word. */
static void node_tell_clash(struct shots_node *node, struct shots_node *old)
{
	if (!old->clashes && nodes_clash(old, node)) {
		old->clashes = true;
		fprintf(stderr, "ncclinsp: %s: two daemons that ran at the same time call their "
			"node so, and only the newest snapshot of a node counts: leave out those "
			"of one, or name the nodes apart (node-name of ncclinspd.conf(5))\n",
			old->host);
	}
	node->clashes = old->clashes;
}

/* The node becomes the newest of its host, or goes. */
static void shots_keep_node(struct shots *s, struct shots_node *node)
{
	struct shots_node *old = (struct shots_node *)(uintptr_t)shots_node(s, node->host);

	if (old)
		node_tell_clash(node, old);
	if (strcmp(node->written_at, old ? old->written_at : "") <= 0) {
		node_free(node);
		return;
	}
	if (s->newest)
		s->newest(s->newest_arg, node, !old);
	node_trim(s, node);
	if (old) {
		struct shots_node was = *old;

		*old = *node;
		*node = was;
		node_free(node);
		return;
	}
	must(tsearch(node, &s->nodes_by_host, nodes_order));
	*(struct shots_node **)must(list_append(&s->nodes)) = node;
}

static void shots_keep(struct shots *s, const char *path, struct shots_node *node)
{
	if (shots_is_later(s, node)) {
		s->later++;
		node_free(node);
		return;
	}
	s->files++;
	if (s->each)
		s->each(s->each_arg, path, node);
	shots_add_samples(s, node);
	shots_keep_node(s, node);
}

static void shots_refuse(struct shots *s, const char *path, const char *why)
{
	CLEANUP(cleanup_freep) char *shown = must(strdup(path));

	utf8_clean(shown, strlen(shown));	/* anybody's in a directory */
	fprintf(stderr, "ncclinsp: %s: %s\n", shown, why);
	s->refused++;
	s->denied += access(path, R_OK) && errno == EACCES;
}

static void reader_add_file(struct file_reader *r, const char *path)
{
	struct shots_node *node = NULL;
	const char *unread;
	char why[WHY];
	size_t bytes;
	char *text = shot_read(path, &bytes, &unread);

	if (text)
		node = node_read(r, text, bytes, why);
	pthread_mutex_lock(&r->shots->lock);
	if (node)
		shots_keep(r->shots, path, node);
	else
		shots_refuse(r->shots, path, text ? why : unread);
	pthread_mutex_unlock(&r->shots->lock);
}

static void reader_init(struct file_reader *r, struct shots *s)
{
	*r = (struct file_reader){ .shots = s, .rows = { .text = reader_text, .arg = r } };
}

/* ---- from outside -------------------------------------------------------------------- */

void shots_init(struct shots *s)
{
	pthread_mutex_init(&s->lock, NULL);
	json_object_seed(0);
}

void shots_add_answer(struct shots *s, const char *name, const char *text, const char *why)
{
	const struct shots_node *same;
	struct shots_node *node = NULL;
	struct file_reader r;
	char refusal[WHY];

	reader_init(&r, s);
	if (text) {
		node = node_read(&r, must(strdup(text)), strlen(text), refusal);
		why = refusal;
	}
	same = node ? shots_node(s, node->host) : NULL;
	if (same && nodes_clash(same, node)) {
		node_free(node);
		node = NULL;
		why = "another node that was asked has the same name: see node-name of "
		      "ncclinspd.conf(5)";
	}
	if (node) {
		shots_keep(s, name, node);
		return;
	}
	s->silent = s->silent ?: json_object();
	json_object_set_new(s->silent, name, json_string(why));
}

/* Files, read by several threads. */
struct shots_files {
	struct shots *shots;
	LIST(char *) paths;
	atomic_uint next;
};

static bool name_ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && *name != '.' && !strcmp(name + n - m, end);
}

static void files_add(struct shots_files *f, const char *path)
{
	CLEANUP(cleanup_closedirp) DIR *dir = opendir(path);
	struct dirent *entry;

	if (!dir) {
		*(char **)must(list_append(&f->paths)) = must(strdup(path));
		return;
	}
	while ((entry = readdir(dir))) {
		char *name;

		if (!name_ends_with(entry->d_name, ".json" ZST_SUFFIX) &&
		    !name_ends_with(entry->d_name, ".json"))
			continue;
		if (asprintf(&name, "%s/%s", path, entry->d_name) < 0)
			name = NULL;
		*(char **)must(list_append(&f->paths)) = must(name);
	}
}

static void *files_read(void *arg)
{
	struct shots_files *f = arg;
	CLEANUP(cleanup_freep) struct file_reader *r = must(malloc(sizeof(*r)));
	uint32_t i;

	reader_init(r, f->shots);
	while ((i = atomic_fetch_add(&f->next, 1)) < f->paths.n)
		reader_add_file(r, f->paths.at[i]);
	return NULL;
}

/* The CPUs that this process may use. */
static uint32_t cpus_count(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : (uint32_t)CPU_COUNT(&set);
}

void shots_add(struct shots *s, const char *const *paths, size_t n)
{
	uint32_t most = cpus_count() < READERS ? cpus_count() : READERS, started = 0;
	struct shots_files f = { .shots = s };
	pthread_t threads[READERS];

	/*
	 * Asking the kernel for each file's memory anew would cost as much as reading it.  What
	 * is kept lies side by side in one arena; in one for each thread it needed a third more.
	 */
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, KEEPS);
	mallopt(M_TRIM_THRESHOLD, KEEPS);
	for (size_t i = 0; i < n; i++)
		files_add(&f, paths[i]);
	while (started + 1 < most && started + 1 < f.paths.n &&
	       !pthread_create(&threads[started], NULL, files_read, &f))
		started++;
	files_read(&f);
	for (uint32_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < f.paths.n; i++)
		free(f.paths.at[i]);
	list_deinit(&f.paths);
	malloc_trim(0);	/* memory that files needed for a while */
}

enum cli_exit shots_tell_none(const struct shots *s, const char *option)
{
	if (s->denied && !s->later)
		fprintf(stderr, "ncclinsp: %sno snapshot can be read: only their owner and group "
			"may (ls -l); become one of these, or root\n", option);
	else
		fprintf(stderr, "ncclinsp: %sno snapshot found%s\n", option,
			!s->later ? "" : s->at ? " of that time" : ", or none that early");
	return s->denied && !s->later ? CLI_NO_RIGHT : CLI_NOTHING;
}

/* ---- together ------------------------------------------------------------------------ */

static int samples_by_place(const void *left, const void *right)
{
	const struct shots_sample *a = left, *b = right;

	return a->seq != b->seq ? (a->seq > b->seq) - (a->seq < b->seq) :
				  (a->rank > b->rank) - (a->rank < b->rank);
}

static int spans_by_rank(const void *left, const void *right)
{
	const struct shots_span *a = left, *b = right;

	return (a->rank > b->rank) - (a->rank < b->rank);
}

static void series_join_spans(struct shots_series *series)
{
	struct shots_span *at = series->spans.at;
	uint32_t n = 0;

	list_sort(&series->spans, spans_by_rank);
	for (uint32_t i = 0; i < series->spans.n; i++) {
		if (n && at[n - 1].rank == at[i].rank)
			span_join(&at[n - 1], &at[i]);
		else
			at[n++] = at[i];
	}
	series->spans.n = n;
}

static void series_settle(struct shots_series *series)
{
	struct shots_sample *at = series->samples.at;
	uint32_t n = 0;

	list_sort(&series->samples, samples_by_place);
	for (uint32_t i = 0; i < series->samples.n; i++)
		if (!n || samples_by_place(&at[n - 1], &at[i]))
			at[n++] = at[i];
	series->samples.n = n;
	series_join_spans(series);
}

const struct shots_span *shots_span(const struct shots_series *series, int64_t rank)
{
	const struct shots_span key = { .rank = (int32_t)rank };

	return series->spans.n ? bsearch(&key, series->spans.at, series->spans.n, sizeof(key),
					 spans_by_rank) : NULL;
}

static int ranks_by_number(const void *left, const void *right)
{
	const struct shots_rank *a = left, *b = right;

	return (a->row->rank > b->row->rank) - (a->row->rank < b->row->rank);
}

const struct shots_rank *shots_rank(const struct shots_comm *comm, int64_t rank)
{
	const struct local_rank_read row = { .rank = (int32_t)rank };
	const struct shots_rank key = { .row = &row };

	if (!comm || !comm->ranks.n || rank < 0 || rank > INT32_MAX)
		return NULL;
	return bsearch(&key, comm->ranks.at, comm->ranks.n, sizeof(key), ranks_by_number);
}

static void comm_add_rank(struct shots_comm *comm, const struct shots_rank *rank)
{
	if (rank->row->rank == UNKNOWN_I32)
		return;
	if (!comm->ranks.room && comm->nranks > 0 && comm->nranks < 16)
		must(list_init(&comm->ranks, (uint32_t)comm->nranks) ? NULL : comm);
	*(struct shots_rank *)must(list_append(&comm->ranks)) = *rank;
}

static void shots_join(struct shots *s, const struct shots_node *node)
{
	list_each(row, &node->rows.comms) {
		struct shots_comm *comm;

		if (row->comm_id == UNKNOWN_U64)
			continue;
		comm = shots_comm_add(s, row->comm_id, row->nranks);
		comm->name = comm->name ?: row->name;
		for (uint32_t k = 0; k < row->local_ranks.n; k++)
			comm_add_rank(comm, &(struct shots_rank){ &row->local_ranks.at[k], node,
								  row->name });
	}
}

static int nodes_by_name(const void *a, const void *b)
{
	return nodes_order(*(struct shots_node *const *)a, *(struct shots_node *const *)b);
}

static int comms_by_id(const void *a, const void *b)
{
	return comms_order(*(struct shots_comm *const *)a, *(struct shots_comm *const *)b);
}

static void comm_settle(struct shots_comm *comm)
{
	list_sort(&comm->ranks, ranks_by_number);
	for (struct shots_series *series = comm->series; series; series = series->next)
		series_settle(series);
}

void shots_settle(struct shots *s)
{
	list_sort(&s->nodes, nodes_by_name);
	for (uint32_t i = 0; i < s->comms.n; i++)
		s->comms.at[i]->ranks.n = 0;
	for (uint32_t i = 0; i < s->nodes.n; i++)
		shots_join(s, s->nodes.at[i]);
	list_sort(&s->comms, comms_by_id);
	for (uint32_t i = 0; i < s->comms.n; i++)
		comm_settle(s->comms.at[i]);
}

static void keep_item(void *item)
{
}

void shots_deinit(struct shots *s)
{
	tdestroy(s->nodes_by_host, keep_item);
	tdestroy(s->comms_by_id, keep_item);
	tdestroy(s->texts, free);
	for (uint32_t i = 0; i < s->nodes.n; i++)
		node_free(s->nodes.at[i]);
	list_deinit(&s->nodes);
	for (uint32_t i = 0; i < s->comms.n; i++) {
		struct shots_comm *comm = s->comms.at[i];

		for (struct shots_series *series = comm->series, *next; series; series = next) {
			next = series->next;
			list_deinit(&series->samples);
			list_deinit(&series->spans);
			free(series);
		}
		list_deinit(&comm->ranks);
		free(comm);
	}
	list_deinit(&s->comms);
	json_decref(s->silent);
	pthread_mutex_destroy(&s->lock);
}

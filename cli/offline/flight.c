/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dumps of PyTorch's Flight Recorder.  A dump has the newest calls of one rank, by process group:
 * collectives are counted per group, sends and receives as well, and those of one coalesced group
 * have one number.  It does not have NCCL's id of the communicator.  A group is a communicator's if
 * it has the same global ranks in the same order; of several such groups, the one that most ranks
 * called just before they posted, by their snapshot, their last operation there.  Files are those
 * of jobs of any user: they are bounded, and their texts are made safe.
 */
#include "cli/offline/flight.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/member.h"
#include "cli/base/must.h"
#include "cli/base/pickle.h"
#include "util/cleanup.h"
#include "util/phrase.h"
#include "util/utf8.h"

#define FILE_MOST	(64u << 20)	/* bytes */
#define JSON_MOST	(16u << 20)	/* bytes of one that is JSON */
#define FILES_MOST	(1u << 17)
#define CALLS_MOST	(1u << 17)	/* newest calls of a dump that are looked at */
#define CALLS_KEPT	512		/* the newest that are kept, with two of each group */
#define GROUPS_MOST	1024
#define FRAMES_MOST	128
#define CHOICES_MOST	64		/* groups with the ranks of one communicator */
#define FAR_NS		UINT64_C(1000000000)	/* time from a call to its operation, at most */
#define NEAR_NS		UINT64_C(10000000)	/* the same for most ranks of one job */
#define STALE_NS	UINT64_C(10000000000)	/* a dump so much older is not of this run */
#define NAMED		16		/* lines of ranks alone, of ranks together; their parts */
#define PATH_SHOWN	96		/* bytes of a path in a line */
#define TEXT_SHOWN	128
#define LINE		1024

enum { COLLECTIVE, P2P, CALL_KINDS };	/* each has numbers of its own in a group */

/* The way in which a process group's ranks are those of a communicator. */
enum flight_fit {
	FIT_NONE,
	FIT_PAIR,	/* two of them: PyTorch makes a communicator of its own for their sends */
	FIT_ALL,
};

struct flight_group {
	const char *name;
	const char *label;		/* its description; without one its name */
	const char *ranks;		/* "[0, 1, 2]", global ranks in its order; "": unknown */
	uint64_t called;		/* its last collective's number + 1; 0: none is there */
};

struct flight_call {
	uint32_t group;
	int kind;
	bool over, kept;
	const char *name;		/* "all_reduce" */
	const char *where;		/* "train.py:88 (step)"; NULL: no frame of Python */
	uint64_t seq, created_ns;	/* time since 1970 */
	const json_t *entry;		/* while the dump is read */
};

struct flight_dump {
	int32_t rank;
	bool gapless;			/* it has all calls from its first to its last ... */
	bool whole;			/* also, its first is the process's first */
	LIST(struct flight_group) groups;
	LIST(struct flight_call) calls;	/* the oldest first */
};

struct flight {
	const char *path;
	LIST(struct flight_dump) dumps;	/* ordered by rank once all are there */
	bool told;			/* flight_tell() was called */
	void *texts;			/* a tree of tsearch(3) */
	char why[160];
};

/* ---- a dump --------------------------------------------------------------------------- */

/* A text of a dump, cut; "": it is none.  Texts are one where they are equal. */
static const char *flight_text(struct flight *f, const json_t *value)
{
	char text[TEXT_SHOWN];

	snprintf(text, sizeof(text), "%s", json_string_value(value) ?: "");
	return shots_text_in(&f->texts, text);
}

static void dump_deinit(struct flight_dump *d)
{
	list_deinit(&d->groups);
	list_deinit(&d->calls);
}

/* UINT32_MAX: there are too many. */
static uint32_t dump_add_group(struct flight *f, struct flight_dump *d, const json_t *name,
			       const json_t *desc, const char *ranks)
{
	struct flight_group g = { .name = flight_text(f, name), .label = flight_text(f, desc),
				  .ranks = shots_text_in(&f->texts, ranks) };

	if (d->groups.n == GROUPS_MOST)
		return UINT32_MAX;
	if (!*g.label || !strcmp(g.label, "undefined"))
		g.label = g.name;
	*(struct flight_group *)must(list_append(&d->groups)) = g;
	return d->groups.n - 1;
}

static uint32_t dump_find_group(struct flight *f, struct flight_dump *d, const json_t *pair)
{
	const char *name = flight_text(f, json_array_get(pair, 0));

	for (uint32_t i = 0; i < d->groups.n; i++)
		if (d->groups.at[i].name == name)
			return i;
	return dump_add_group(f, d, json_array_get(pair, 0), json_array_get(pair, 1), "");
}

/* Code of an installed package, or that torch.compile() has written. */
static bool frame_is_library(const char *path)
{
	return strstr(path, "-packages/") || strstr(path, "/torchinductor_");
}

/* Code of PyTorch itself, of C++, or of no file. */
static bool frame_is_internal(const char *path)
{
	size_t n = strlen(path);

	return n < 3 || strcmp(path + n - 3, ".py") || *path == '<' ||
	       strstr(path, "-packages/torch/") || strstr(path, "/torch/distributed/") ||
	       !strncmp(path, "torch/", 6);
}

static const char *frame_path(const json_t *frame)
{
	return member_text(frame, "filename", "");
}

/* "train.py:88 (step)" */
static void frame_say(struct phrase *p, const json_t *frame)
{
	const char *path = frame_path(frame), *package = strstr(path, "-packages/");
	size_t n;

	path = package ? package + strlen("-packages/") : path;
	n = strlen(path);
	phrase_add(p, "%s%s:%" PRIu64 " (%.64s)", n > PATH_SHOWN ? "..." : "",
		   n > PATH_SHOWN ? path + n - PATH_SHOWN : path, member_number(frame, "line", 0),
		   member_text(frame, "name", "?"));
}

/*
 * The innermost line that is not PyTorch's; where a library has it, also the one that is not a
 * library's.  NULL: the call was not made from Python.
 */
static const char *frames_where(struct flight *f, const json_t *frames)
{
	const json_t *inner = NULL, *own = NULL, *frame;
	char text[3 * PATH_SHOWN + TEXT_SHOWN];
	size_t n = json_array_size(frames);
	struct phrase p;

	n = n < FRAMES_MOST ? n : FRAMES_MOST;
	for (size_t i = 0; i < n && !own; i++) {
		frame = json_array_get(frames, i);
		if (frame_is_internal(frame_path(frame)))
			continue;
		inner = inner ?: frame;
		own = frame_is_library(frame_path(frame)) ? NULL : frame;
	}
	if (!inner)
		return NULL;
	phrase_start(&p, text, sizeof(text));
	frame_say(&p, inner);
	if (own && own != inner) {
		phrase_add(&p, ", from ");
		frame_say(&p, own);
	}
	return shots_text_in(&f->texts, text);
}

static uint64_t entry_seq(const json_t *entry, int kind)
{
	return member_number(entry, kind == P2P ? "p2p_seq_id" : "collective_seq_id", 0);
}

/* Collectives are counted from 1.  False: there are too many groups. */
static bool dump_take_call(struct flight *f, struct flight_dump *d, const json_t *entry)
{
	int kind = member_true(entry, "is_p2p") ||
		   !entry_seq(entry, COLLECTIVE) ? P2P : COLLECTIVE;
	uint32_t group = dump_find_group(f, d, json_object_get(entry, "process_group"));
	const char *name = flight_text(f, json_object_get(entry, "profiling_name"));
	const char *colon = strchr(name, ':');		/* "nccl:all_reduce" */
	uint64_t seq = entry_seq(entry, kind);

	if (group == UINT32_MAX)
		return false;
	if (kind == COLLECTIVE && seq >= d->groups.at[group].called)
		d->groups.at[group].called = seq + 1;
	*(struct flight_call *)must(list_append(&d->calls)) = (struct flight_call){
		.group = group, .kind = kind, .name = colon ? colon + 1 : name, .seq = seq,
		.created_ns = member_number(entry, "time_created_ns", 0), .entry = entry };
	return true;
}

/* Calls of one group and kind, from the newest back. */
struct flight_back {
	uint64_t ended;		/* collectives with smaller numbers have; the batch before that */
	const struct flight_call *open;	/* the first that is not over; NULL: none so far */
	bool any;
};

/*
 * A collective is over if a later one of its group is.  Sends to several ranks end in any order;
 * those of a coalesced group are never said to have ended, but the entry behind them is, which
 * old versions count as a collective.
 */
static bool call_is_over(const struct flight_call *call, struct flight_back back[CALL_KINDS])
{
	bool completed = member_is(call->entry, "state", "completed");
	uint64_t ended = call->kind == COLLECTIVE ? call->seq + 1 : 0;

	if (completed && ended > back[COLLECTIVE].ended)
		back[COLLECTIVE].ended = ended;
	if (completed && !strcmp(call->name, "coalesced"))
		back[P2P].ended = entry_seq(call->entry, P2P) + 1;
	else if (call->kind == COLLECTIVE)
		back[P2P].ended = 0;
	return call->kind == COLLECTIVE ? call->seq < back[COLLECTIVE].ended :
					  completed || call->seq + 1 == back[P2P].ended;
}

/* Keeps the newest calls, and of each group the last and the first that is not over. */
static void dump_trim(struct flight *f, struct flight_dump *d)
{
	CLEANUP(cleanup_freep) struct flight_back (*backs)[CALL_KINDS] =
		must(calloc(d->groups.n + 1, sizeof(*backs)));
	uint32_t kept = 0;

	for (uint32_t i = d->calls.n; i-- > 0; ) {
		struct flight_call *call = &d->calls.at[i];
		struct flight_back *back = &backs[call->group][call->kind];

		call->over = call_is_over(call, backs[call->group]);
		call->kept = !back->any || d->calls.n - i <= CALLS_KEPT;
		back->open = call->over ? back->open : call;
		back->any = true;
	}
	for (uint32_t i = 0; i < d->calls.n; i++) {
		struct flight_call call = d->calls.at[i];

		if (!call.kept && backs[call.group][call.kind].open != &d->calls.at[i])
			continue;
		call.where = frames_where(f, json_object_get(call.entry, "frames"));
		call.entry = NULL;
		d->calls.at[kept++] = call;
	}
	d->calls.at = must(realloc(d->calls.at, kept * sizeof(*d->calls.at)));
	d->calls.n = d->calls.room = kept;
}

/* PyTorch counts all calls of a process from 0. */
static uint64_t entry_id(const json_t *entries, size_t i)
{
	return member_number(json_array_get(entries, i), "record_id", UNKNOWN_U64);
}

/* False: it has another form than those that are known. */
static bool dump_read(struct flight *f, struct flight_dump *d, const json_t *root,
		      const char **why)
{
	const json_t *entries = json_object_get(root, "entries");
	const char *version = member_text(root, "version", NULL);
	size_t n = json_array_size(entries), first = n > CALLS_MOST ? n - CALLS_MOST : 0;
	uint64_t first_id;
	const char *key;
	json_t *group;

	*why = "no dump of PyTorch's Flight Recorder: it has no version";
	if (!version)
		return false;
	*why = "a dump of another format of PyTorch: 2.x is known";
	if (strncmp(version, "2.", 2))
		return false;
	*why = "a dump without calls: PyTorch was told to leave them out, or none was made";
	if (!n)
		return false;
	*why = "a dump whose calls have no numbers (collective_seq_id), as of an older PyTorch";
	if (!json_is_integer(json_object_get(json_array_get(entries, 0), "collective_seq_id")))
		return false;
	*why = "a dump of more than 1024 process groups";
	json_object_foreach(json_object_get(root, "pg_config"), key, group)
		if (dump_add_group(f, d, json_object_get(group, "name"),
				   json_object_get(group, "desc"),
				   member_text(group, "ranks", "")) == UINT32_MAX)
			return false;
	for (size_t i = first; i < n; i++)
		if (!dump_take_call(f, d, json_array_get(entries, i)))
			return false;
	first_id = entry_id(entries, first);
	d->gapless = entry_id(entries, n - 1) - first_id == n - 1 - first;
	d->whole = d->gapless && !first_id;
	dump_trim(f, d);
	return true;
}

static json_t *dump_parse(struct flight *f, const char *bytes, size_t n, const char **why)
{
	json_t *root;
	size_t at;

	if (n && *bytes == '{') {
		*why = n <= JSON_MOST ? "damaged: no JSON" : "too large";
		return n <= JSON_MOST ? json_loadb(bytes, n, 0, NULL) : NULL;
	}
	root = pickle_read(bytes, n, why, &at);
	if (!root) {
		snprintf(f->why, sizeof(f->why), "refused at byte %zu: %s", at, *why);
		*why = f->why;
	}
	return root;
}

bool flight_take(struct flight *f, int32_t rank, const char *bytes, size_t n, const char **why)
{
	struct flight_dump d = { .rank = rank };
	json_auto_t *root = dump_parse(f, bytes, n, why);
	bool known = root && dump_read(f, &d, root, why);

	if (known)
		*(struct flight_dump *)must(list_append(&f->dumps)) = d;
	else
		dump_deinit(&d);
	return known;
}

/* ---- files ------------------------------------------------------------------------------ */

/* The rank at the end of a dump's name; -1: there is none. */
static int32_t name_rank(const char *name)
{
	const char *end = strrchr(name, '.'), *digits;
	long rank;

	if (!end || (strcmp(end, ".json") && strcmp(end, ".pkl") && strcmp(end, ".pickle")))
		end = name + strlen(name);
	for (digits = end; digits > name && digits[-1] >= '0' && digits[-1] <= '9'; digits--)
		;
	rank = digits < end ? strtol(digits, NULL, 10) : -1;
	return rank > INT32_MAX ? -1 : (int32_t)rank;
}

/* Other files, as in /tmp, are passed over; pickles and what is named like a dump are not. */
static bool file_is_meant(const char *name, const char *bytes)
{
	return strstr(name, "rank") || (bytes && *bytes == '\x80');
}

static void flight_read_file(struct flight *f, int dir, const char *name)
{
	CLEANUP(cleanup_freep) char *bytes = NULL;
	int32_t rank = name_rank(name);
	char shown[NAME_MAX + 1];
	const char *why;
	size_t n;

	if (rank < 0)
		return;
	bytes = shots_read_file(dir, name, FILE_MOST, &n, &why);
	if ((bytes && flight_take(f, rank, bytes, n, &why)) || !file_is_meant(name, bytes))
		return;
	snprintf(shown, sizeof(shown), "%s", name);
	utf8_clean(shown, strlen(shown));
	fprintf(stderr, "ncclinsp: %s: %s: %s\n", f->path, shown, why);
}

static uint64_t dump_newest_ns(const struct flight_dump *d)
{
	return d->calls.at[d->calls.n - 1].created_ns;
}

static int dumps_order(const void *a, const void *b)
{
	const struct flight_dump *x = a, *y = b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* The newer of two dumps of a rank counts; the other one may be of another run. */
static void flight_settle(struct flight *f)
{
	uint32_t kept = f->dumps.n > 0;

	list_sort(&f->dumps, dumps_order);
	for (uint32_t i = 1; i < f->dumps.n; i++) {
		struct flight_dump d = f->dumps.at[i], *before = &f->dumps.at[kept - 1], older = d;

		if (before->rank != d.rank) {
			f->dumps.at[kept++] = d;
			continue;
		}
		if (dump_newest_ns(before) <= dump_newest_ns(&d)) {
			older = *before;
			*before = d;
		}
		dump_deinit(&older);
		fprintf(stderr, "ncclinsp: %s: two dumps of rank %d: the older one is skipped\n",
			f->path, d.rank);
	}
	f->dumps.n = kept;
}

struct flight *flight_new(const char *path)
{
	struct flight *f = must(calloc(1, sizeof(*f)));

	f->path = path;
	return f;
}

struct flight *flight_open(const char *path)
{
	struct flight *f = flight_new(path);
	const char *prefix = "", *slash = strrchr(path, '/');
	CLEANUP(cleanup_freep) char *above = NULL;
	CLEANUP(cleanup_closedirp) DIR *dir = opendir(path);

	if (!dir && (errno == ENOENT || errno == ENOTDIR)) {
		above = must(slash ? strndup(path, (size_t)(slash - path) + 1) : strdup("."));
		prefix = slash ? slash + 1 : path;
		dir = opendir(above);
	}
	if (!dir)
		fprintf(stderr, "ncclinsp: --flight-recorder: %s: %s\n", path, strerror(errno));
	for (const struct dirent *e; dir && f->dumps.n < FILES_MOST && (e = readdir(dir)); )
		if (!strncmp(e->d_name, prefix, strlen(prefix)))
			flight_read_file(f, dirfd(dir), e->d_name);
	if (f->dumps.n == FILES_MOST)
		fprintf(stderr, "ncclinsp: --flight-recorder: %s: no more than %u dumps are read\n",
			path, FILES_MOST);
	flight_settle(f);
	if (f->dumps.n)
		return f;
	if (dir)
		fprintf(stderr, "ncclinsp: --flight-recorder: %s: no dump of PyTorch there; their "
			"names end in the rank, as nccl_trace_rank_0 (TORCH_FR_DUMP_TEMP_FILE)\n",
			path);
	flight_free(f);
	return NULL;
}

void flight_say_unused(const struct flight *f)
{
	if (f && !f->told)
		fprintf(stderr, "ncclinsp: --flight-recorder: no line of %s is shown: no verdict "
			"is on a hang or a death whose communicator is known\n", f->path);
}

void flight_free(struct flight *f)
{
	if (!f)
		return;
	for (uint32_t i = 0; i < f->dumps.n; i++)
		dump_deinit(&f->dumps.at[i]);
	list_deinit(&f->dumps);
	tdestroy(f->texts, free);
	free(f);
}

/* ---- the group of a communicator -------------------------------------------------------- */

static const struct flight_dump *flight_dump(const struct flight *f, int32_t rank)
{
	const struct flight_dump key = { .rank = rank };

	return f->dumps.n ? bsearch(&key, f->dumps.at, f->dumps.n, sizeof(key), dumps_order) : NULL;
}

/* The next rank of a group's text; -1: there is none. */
static int64_t ranks_next(const char **text)
{
	const char *at = *text + strspn(*text, "[, ");
	long rank = strtol(at, (char **)text, 10);

	return *text == at || rank < 0 || rank > INT32_MAX ? -1 : rank;
}

static enum flight_fit ranks_fit(const char *text, const struct shots_comm *comm)
{
	bool all = true, pair = comm->nranks == 2;
	uint32_t i = 0, known = 0, members = 0;
	int32_t n = 0;

	for (int64_t world; (all || pair) && (world = ranks_next(&text)) >= 0; n++) {
		for (; i < comm->ranks.n && comm->ranks.at[i].row->rank <= n; i++) {
			const struct local_rank_read *row = comm->ranks.at[i].row;

			if (row->rank == UNKNOWN_I32 || row->world_rank == UNKNOWN_I32)
				continue;
			known++;
			all = all && row->world_rank == world;
		}
		for (uint32_t k = 0; pair && k < comm->ranks.n; k++)
			members += comm->ranks.at[k].row->world_rank == world;
	}
	if (all && known && n == comm->nranks)
		return FIT_ALL;
	return pair && members && members == comm->ranks.n ? FIT_PAIR : FIT_NONE;
}

/* A group that has the communicator's ranks. */
struct flight_choice {
	const struct flight_group *group;	/* that of the first dump that has it */
	enum flight_fit fit;
	uint32_t votes;		/* ranks whose last call before their last operation there is its */
	uint32_t near;		/* ranks whose last call there is just before */
};

struct flight_choices {
	struct flight_choice at[CHOICES_MOST];
	uint32_t n;
	uint32_t dumps;		/* ranks that have one */
	uint32_t asked;		/* ranks that have a last operation too */
};

/* Texts are one where they are equal. */
static bool groups_are_one(const struct flight_group *a, const struct flight_group *b)
{
	return a->name == b->name && a->ranks == b->ranks;
}

/* NULL: the group has other ranks, or there are too many. */
static struct flight_choice *choices_take(struct flight_choices *c, const struct flight_group *g,
					  const struct shots_comm *comm)
{
	struct flight_choice *choice;
	enum flight_fit fit;

	for (uint32_t i = 0; i < c->n; i++)
		if (groups_are_one(c->at[i].group, g))
			return &c->at[i];
	fit = ranks_fit(g->ranks, comm);
	choice = fit == FIT_NONE ? NULL : array_add(c->at, &c->n);
	if (choice)
		*choice = (struct flight_choice){ .group = g, .fit = fit };
	return choice;
}

/* The time since 1970 at which the rank last posted something on the communicator; 0: unknown. */
static uint64_t rank_last_ns(const struct shots_rank *rank)
{
	return rank->row->last_op_mono_ns == UNKNOWN_U64 ? 0 :
	       shots_clock_at(&rank->node->clock, rank->row->last_op_mono_ns);
}

static bool dump_is_stale(const struct flight_dump *d, const struct shots_rank *rank)
{
	return dump_newest_ns(d) + STALE_NS < rank_last_ns(rank);
}

/* The newest call at that time, or shortly before: PyTorch notes a call, then makes it. */
static const struct flight_call *dump_call_at(const struct flight_dump *d, uint64_t at_ns)
{
	for (uint32_t i = d->calls.n; i-- > 0; )
		if (d->calls.at[i].created_ns <= at_ns)
			return at_ns - d->calls.at[i].created_ns < FAR_NS ? &d->calls.at[i] : NULL;
	return NULL;
}

static void choices_add(struct flight_choices *c, const struct flight *f,
			const struct shots_rank *rank, const struct shots_comm *comm)
{
	const struct flight_dump *d = flight_dump(f, rank->row->world_rank);
	uint64_t last_ns = rank_last_ns(rank);
	const struct flight_call *call = d && last_ns ? dump_call_at(d, last_ns) : NULL;

	c->dumps += d != NULL;
	c->asked += d && last_ns;
	for (uint32_t i = 0; d && i < d->groups.n; i++) {
		struct flight_choice *choice = choices_take(c, &d->groups.at[i], comm);

		if (!choice || !call || call->group != i)
			continue;
		choice->votes++;
		choice->near += last_ns - call->created_ns < NEAR_NS;
	}
}

/* The whole group first, then the one with more votes. */
static int choices_order(const void *a, const void *b)
{
	const struct flight_choice *x = a, *y = b;

	return x->fit != y->fit ? (x->fit < y->fit) - (x->fit > y->fit) :
				  (x->votes < y->votes) - (x->votes > y->votes);
}

/* The first line: which group, and how sure that is.  False: nothing can be told. */
static bool choices_say(struct phrase *p, const struct flight_choices *c, const struct flight *f)
{
	const struct flight_choice *best = &c->at[0];

	phrase_add(p, "PyTorch's Flight Recorder (%s), ", f->path);
	if (!c->n) {
		phrase_add(p, "no %s these ranks", c->dumps ? "process group has" : "dump of");
		return false;
	}
	if (c->asked && !best->votes) {
		phrase_add(p, "no call of these ranks at the time of their last operation here: "
			   "the dumps are of another run, from long before or after, or the "
			   "call is a CUDA graph's, which PyTorch does not note");
		return false;
	}
	phrase_add(p, "process group %s", best->group->name);
	if (best->group->label != best->group->name)
		phrase_add(p, " (%s)", best->group->label);
	if (c->n > 1 && best[1].fit == best->fit && best[1].votes * 2 >= best->votes)
		phrase_add(p, "; not certain: group %s has the same ranks, and fits as well",
			   best[1].group->name);
	else if (best->near * 2 < best->votes)
		phrase_add(p, "; not certain: most ranks posted their last operation here more "
			   "than 10 ms after the call, as ranks of another job would");
	else if (!best->votes)
		phrase_add(p, "; known by its ranks alone: there is no time to compare");
	return true;
}

/* ---- where ranks stand ------------------------------------------------------------------ */

/* A rank of the communicator, and its dump. */
struct flight_stand {
	const struct shots_rank *rank;
	const struct flight_dump *dump;	/* NULL: there is none */
	const struct flight_group *group;	/* the dump's; NULL: it has not that group */
	bool stale;			/* it is from before the rank's last operation */
	const struct flight_call *open;	/* its first call of the group that is not over; or NULL */
};

struct flight_stands {
	LIST(struct flight_stand);
	const struct flight_call *awaited;	/* the first collective that is open; or NULL */
};

static const struct flight_group *dump_group(const struct flight_dump *d,
					     const struct flight_group *group)
{
	for (uint32_t i = 0; i < d->groups.n; i++)
		if (groups_are_one(&d->groups.at[i], group))
			return &d->groups.at[i];
	return NULL;
}

static const struct flight_call *stand_open(const struct flight_stand *s, enum flight_fit fit)
{
	list_each(call, &s->dump->calls) {
		if (&s->dump->groups.at[call->group] == s->group && !call->over &&
		    (fit == FIT_ALL || call->kind == P2P))
			return call;
	}
	return NULL;
}

/* It has not called what the others wait in, nor a later one, as far as its dump tells. */
static bool stand_is_missing(const struct flight_stand *s, const struct flight_stands *all)
{
	return s->dump && all->awaited &&
	       (s->stale || !s->group || s->group->called <= all->awaited->seq);
}

static void stands_add(struct flight_stands *all, const struct flight *f,
		       const struct shots_rank *rank, const struct flight_choice *choice)
{
	struct flight_stand *s = must(list_append(all));
	const struct flight_call *open;

	*s = (struct flight_stand){ .rank = rank, .dump = flight_dump(f, rank->row->world_rank) };
	if (!s->dump)
		return;
	s->stale = dump_is_stale(s->dump, rank);
	s->group = dump_group(s->dump, choice->group);
	open = s->open = s->stale ? NULL : stand_open(s, choice->fit);
	if (open && open->kind == COLLECTIVE && (!all->awaited || open->seq < all->awaited->seq))
		all->awaited = open;
}

/* ---- in words --------------------------------------------------------------------------- */

/* One more line, made safe: dumps' texts are as they came, and some were cut.  The next begins. */
static void lines_add(json_t *lines, struct phrase *p)
{
	utf8_clean(p->at, p->used);
	json_array_append_new(lines, json_string(p->at));
	phrase_start(p, p->at, p->size);
}

/* "all_reduce (collective 11 of group dp), called at train.py:88 (step)" */
static void call_say(struct phrase *p, const struct flight_dump *d, const struct flight_call *call)
{
	phrase_add(p, "%s (%s %" PRIu64 " of group %s)", call->name,
		   call->kind == P2P ? "send or receive" : "collective", call->seq,
		   d->groups.at[call->group].label);
	if (call->where)
		phrase_add(p, ", called at %s", call->where);
	else
		phrase_add(p, "; the dump has no line of Python for it: called from C++, as in a "
			   "backward pass, or written as JSON");
}

/* The first call that the rank made before the open one, and that is not over either; or NULL. */
static const struct flight_call *stand_earlier(const struct flight_stand *s)
{
	for (const struct flight_call *call = s->dump->calls.at; call < s->open; call++)
		if (!call->over)
			return call;
	return NULL;
}

/* A dump may have lost the calls that it would tell of, or leaves some out. */
static void stand_say_last(struct phrase *p, const struct flight_stand *s,
			   const struct flight_stands *all)
{
	const struct flight_dump *d = s->dump;
	const struct flight_call *last = &d->calls.at[d->calls.n - 1];
	bool certain = d->whole || (d->gapless && s->group && s->group->called);

	if (s->open) {
		phrase_add(p, " made another call before, which is not over: ");
		call_say(p, d, stand_earlier(s));
		return;
	}
	if (stand_is_missing(s, all))
		phrase_add(p, " %s called %s (collective %" PRIu64 ")%s;",
			   certain ? "has not" : "may have", all->awaited->name, all->awaited->seq,
			   certain ? "" : ", which its dump does not tell");
	else
		phrase_add(p, ":");
	phrase_add(p, " %s%s: ", d->gapless ? "its last call" : "the last call that it has",
		   last->over ? "" : ", not over");
	call_say(p, d, last);
}

static void stand_say_alone(struct phrase *p, const struct flight_stand *s,
			    const struct flight_stands *all, const struct flight *f)
{
	const struct local_rank_read *row = s->rank->row;

	phrase_add(p, "rank %d", row->rank);
	if (row->world_rank == UNKNOWN_I32) {
		phrase_add(p, ": its global rank is not known, hence not which dump is its");
		return;
	}
	phrase_add(p, " (global rank %d)", row->world_rank);
	if (!s->dump)
		phrase_add(p, " has no dump in %s", f->path);
	else if (s->stale)
		phrase_add(p, " has a dump that ends before its last operation: it is of another "
			   "run, or was written before, or CUDA graphs ran since");
	else
		stand_say_last(p, s, all);
}

static bool calls_are_alike(const struct flight_stand *a, const struct flight_stand *b)
{
	return a->open && b->open && a->open->where == b->open->where &&
	       a->open->name == b->open->name && a->open->seq == b->open->seq &&
	       a->open->kind == b->open->kind;
}

/* "ranks 0-2,7 wait in ", of many only the first. */
static void ranks_say(struct phrase *p, const int32_t *ranks, uint32_t n)
{
	uint32_t shown = 0, parts = 0;

	for (; shown < n; shown++) {
		parts += !shown || ranks[shown] != ranks[shown - 1] + 1;
		if (parts > NAMED)
			break;
	}
	phrase_add(p, "rank%s ", n == 1 ? "" : "s");
	phrase_add_list(p, ranks, shown);
	if (shown < n)
		phrase_add(p, " and %u more", n - shown);
	phrase_add(p, " wait%s in ", n == 1 ? "s" : "");
}

/* The stand and those like it behind it, which are told with it: they have no open call then. */
static void stands_say_together(struct phrase *p, struct flight_stands *all, uint32_t first)
{
	CLEANUP(cleanup_freep) int32_t *ranks = must(calloc(all->n, sizeof(*ranks)));
	const struct flight_stand s = all->at[first];
	uint32_t n = 0;

	for (uint32_t i = first; i < all->n; i++)
		if (calls_are_alike(&s, &all->at[i])) {
			ranks[n++] = all->at[i].rank->row->rank;
			all->at[i].open = i == first ? s.open : NULL;
		}
	ranks_say(p, ranks, n);
	call_say(p, s.dump, s.open);
}

static bool rank_is_named(int32_t rank, const int32_t *named, size_t n)
{
	while (n && named[n - 1] != rank)
		n--;
	return n;
}

/*
 * Is there something to say of that rank alone?  It has not come, or it is one that the verdict
 * names, unless it waits with the others and for nothing else.
 */
static bool stand_is_alone(const struct flight_stand *s, const struct flight_stands *all,
			   bool is_named)
{
	if (is_named)
		return !s->open || stand_earlier(s);
	return !s->open && stand_is_missing(s, all);
}

/* Lines of ranks that stand alone, then of those that wait. */
static void stands_say(struct phrase *p, struct flight_stands *all, const struct flight *f,
		       const int32_t *named, size_t n, json_t *lines)
{
	uint32_t alone = 0, together = 0, without = 0;

	list_each(s, all) {
		bool is_named = rank_is_named(s->rank->row->rank, named, n);

		without += !s->dump && !is_named;
		if (!stand_is_alone(s, all, is_named) || alone++ >= NAMED)
			continue;
		stand_say_alone(p, s, all, f);
		lines_add(lines, p);
	}
	for (uint32_t i = 0; i < all->n; i++) {
		if (!all->at[i].open || together++ >= NAMED)
			continue;
		stands_say_together(p, all, i);
		lines_add(lines, p);
	}
	if (alone > NAMED || together > NAMED)
		json_array_append_new(lines, json_string("... and more ranks"));
	if (without)
		json_array_append_new(lines, json_sprintf("%u other rank%s no dump", without,
							  without == 1 ? " has" : "s have"));
}

void flight_tell(struct flight *f, const struct shots_comm *comm, const int32_t *named, size_t n,
		 json_t *lines)
{
	struct flight_choices choices = { .n = 0 };
	struct flight_stands all = { .n = 0 };
	char line[LINE];
	struct phrase p;
	bool told;

	f->told = true;
	phrase_start(&p, line, sizeof(line));
	for (uint32_t i = 0; i < comm->ranks.n; i++)
		choices_add(&choices, f, &comm->ranks.at[i], comm);
	qsort(choices.at, choices.n, sizeof(choices.at[0]), choices_order);
	told = choices_say(&p, &choices, f);
	lines_add(lines, &p);
	if (!told)
		return;
	for (uint32_t i = 0; i < comm->ranks.n; i++)
		stands_add(&all, f, &comm->ranks.at[i], &choices.at[0]);
	stands_say(&p, &all, f, named, n, lines);
	list_deinit(&all);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thrift, findings and people all have a say in what a process records: their words are
 * put in order here, as entries of the control file.
 */
#include "ncclinspd/levels/levels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/base/jobs.h"
#include "reader/base/accounts.h"
#include "util/cleanup.h"

#define PROCESSES	256

/* The steering of a process that goes on by itself: thrift and detail. */
struct automatic {
	uint64_t process_id;	/* 0: not in use */
	uid_t account;
	struct thrift thrift;
	uint64_t detail_since_ns, detail_until_ns;	/* 0: never */
};

struct levels {
	struct levels_config config;
	struct wishes wishes;
	struct owners owners;
	struct levels_stats stats;
	struct automatic *automatic;
	uint32_t *share;	/* scratch: of each process of a list */
	size_t shares;
};

/* ---- the processes ---------------------------------------------------------- */

static struct automatic *automatic_find(const struct levels *l, const struct process *p)
{
	for (uint32_t i = 0; i < l->config.processes; i++)
		if (l->automatic[i].process_id == p->id)
			return &l->automatic[i];
	return NULL;
}

/* NULL: no room, or none for its user. */
static struct automatic *automatic_find_or_add(struct levels *l, const struct process *p)
{
	struct automatic *a = automatic_find(l, p), *unused = NULL;
	uint32_t own = 0, left = 0;

	if (a)
		return a;
	for (uint32_t i = 0; i < l->config.processes; i++) {
		a = &l->automatic[i];
		unused = a->process_id ? unused : a;
		left += !a->process_id;
		own += a->process_id && a->account == p->account;
	}
	if (!accounts_leave_room(own, left)) {
		l->stats.forgotten++;
		return NULL;
	}
	*unused = (struct automatic){ .process_id = p->id, .account = p->account };
	thrift_init(&unused->thrift);
	return unused;
}

static bool process_is_live(uint64_t process_id, struct process *const *list, size_t n)
{
	const struct process *p = jobs_process(list, n, process_id);

	return p && p->state == PROCESS_LIVE;
}

static bool automatic_is_detailed(const struct automatic *a, uint64_t now_ns)
{
	return now_ns < a->detail_until_ns;
}

static bool automatic_is_lowered(const struct automatic *a)
{
	return a->thrift.cap != WISH_KEEP;
}

bool levels_detail(struct levels *l, const struct process *p, uint64_t until_ns, uint64_t now_ns)
{
	struct automatic *a;

	if (!l->config.detail)
		return false;
	a = automatic_find_or_add(l, p);
	if (!a || automatic_is_detailed(a, now_ns))
		return false;
	if (a->detail_since_ns && now_ns - a->detail_since_ns < LEVELS_DETAIL_APART_NS) {
		l->stats.withheld++;
		return false;
	}
	a->detail_since_ns = now_ns;
	a->detail_until_ns = now_ns + LEVELS_DETAIL_NS;
	if (until_ns < a->detail_until_ns)
		a->detail_until_ns = until_ns;
	l->stats.raised++;
	return true;
}

bool levels_look(struct levels *l, const struct process *p, struct thrift_look look,
		 uint64_t now_ns)
{
	struct automatic *a;

	if (!l->config.thrift)
		return false;
	a = automatic_find_or_add(l, p);
	if (!a)
		return false;
	look.held = automatic_is_detailed(a, now_ns) || wishes_have_level(&l->wishes, p, now_ns);
	if (!thrift_look(&a->thrift, &look, now_ns))
		return false;
	l->stats.lowered += !a->thrift.raised_ns;
	return true;
}

void levels_tidy(struct levels *l, struct process *const *list, size_t n, uint64_t now_ns)
{
	wishes_tidy(&l->wishes, list, n, now_ns);
	owners_tidy(&l->owners, list, n, now_ns);
	for (uint32_t i = 0; i < l->config.processes; i++)
		if (l->automatic[i].process_id &&
		    !process_is_live(l->automatic[i].process_id, list, n))
			l->automatic[i].process_id = 0;
}

uint64_t levels_next_end(const struct levels *l, uint64_t now_ns)
{
	uint64_t next = wishes_next_end(&l->wishes, now_ns);

	for (uint32_t i = 0; i < l->config.processes; i++) {
		const struct automatic *a = &l->automatic[i];

		if (a->process_id && automatic_is_detailed(a, now_ns) && a->detail_until_ns < next)
			next = a->detail_until_ns;
	}
	return next;
}

const struct thrift *levels_thrift(const struct levels *l, const struct process *p)
{
	const struct automatic *a = automatic_find(l, p);

	return a ? &a->thrift : NULL;
}

/* ---- entries ---------------------------------------------------------------- */

#define LEAST_ENTRY { .level = NCI_CONTROL_KEEP, .sample = NCI_CONTROL_KEEP }

/* The entries for what is steered of a process by itself: two at most. */
static uint32_t automatic_entries(const struct automatic *a, const struct process *p,
				  uint64_t now_ns, struct nci_control_entry entry[2])
{
	uint32_t n = 0;

	if (automatic_is_lowered(a)) {
		entry[n] = (struct nci_control_entry)LEAST_ENTRY;
		entry[n].instance = p->instance;
		entry[n].level = a->thrift.cap;
		entry[n].cause = NCI_CAUSE_BUDGET;
		n++;
	}
	if (automatic_is_detailed(a, now_ns)) {
		entry[n] = (struct nci_control_entry)LEAST_ENTRY;
		entry[n].instance = p->instance;
		entry[n].until_mono_ns = a->detail_until_ns;
		entry[n].sample = NCI_SAMPLE_ALL;
		entry[n].cause = NCI_CAUSE_FINDING;
		if (automatic_is_lowered(a))
			entry[n].level = a->thrift.from;
		n++;
	}
	return n;
}

static struct nci_control_entry wish_entry(const struct wish *w, uint64_t instance)
{
	return (struct nci_control_entry){
		.instance = instance,
		.until_mono_ns = w->until_ns,
		.level = w->level == WISH_KEEP ? NCI_CONTROL_KEEP : w->level,
		.sample = w->sample == WISH_KEEP ? NCI_CONTROL_KEEP : w->sample,
		.cause = NCI_CAUSE_PERSON,
	};
}

static int wishes_by_strength(const void *left, const void *right)
{
	const struct wish *a = *(const struct wish *const *)left;
	const struct wish *b = *(const struct wish *const *)right;

	if ((a->kind == WISH_NODE) != (b->kind == WISH_NODE))
		return a->kind == WISH_NODE ? -1 : 1;
	return a->serial < b->serial ? -1 : 1;
}

/* The wishes that hold, the weakest first. */
static uint32_t wishes_in_order(const struct levels *l, uint64_t now_ns,
				const struct wish *order[WISHES])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < WISHES; i++) {
		const struct wish *w = &l->wishes.at[i];

		if (w->serial && !(w->until_ns && now_ns >= w->until_ns))
			order[n++] = w;
	}
	qsort(order, n, sizeof(order[0]), wishes_by_strength);
	return n;
}

/*
 * A copy of another's instance in a segment must not be steered: an instance is its owner's,
 * and before it has one the first's.
 */
static bool wish_is_own(const struct levels *l, const struct process *p,
			struct process *const *list, size_t n)
{
	enum owners_word word = owners_ask(&l->owners, p);

	if (p->state != PROCESS_LIVE || !p->instance || word == OWNERS_ANOTHER)
		return false;
	for (size_t i = 0; word == OWNERS_UNKNOWN && i < n && list[i] != p; i++)
		if (list[i]->instance == p->instance)
			return false;
	return true;
}

static bool wish_names(const struct levels *l, const struct wish *w, const struct process *p,
		       struct process *const *list, size_t n)
{
	return wish_covers(w, p) && wish_is_own(l, p, list, n);
}

/*
 * A wish's room in the file.  Any process may say that it is of some job: where a wish covers
 * too many, it is left out for those users who have most of them.
 */
struct grant {
	const struct wish *wish;
	uint32_t entries;	/* 0: it has no room */
	uint32_t most;		/* processes of a user, for whom it holds */
};

/* Set l->share: how many processes of list[i]'s account the wish names; 0: not this one. */
static void wish_count_shares(struct levels *l, const struct wish *w, struct process *const *list,
			      size_t n)
{
	for (size_t i = 0; i < n; i++)
		l->share[i] = wish_names(l, w, list[i], list, n);
	for (size_t i = 0; i < n; i++) {
		uint32_t same = 0;

		for (size_t k = 0; l->share[i] && k < n; k++)
			same += l->share[k] && list[k]->account == list[i]->account;
		l->share[i] = same;
	}
}

static uint32_t wish_count_covered(const struct levels *l, const struct wish *w,
				   struct process *const *list, size_t n)
{
	uint32_t count = 0;

	for (size_t i = 0; i < n && w->kind != WISH_NODE; i++)
		count += wish_names(l, w, list[i], list, n);
	return w->kind == WISH_NODE ? 1 : count;
}

/* The largest share below `most`, and what all up to it come to. */
static uint32_t share_next_smaller(const struct levels *l, size_t n, uint32_t *most)
{
	uint32_t limit = *most, entries = 0;

	*most = 0;
	for (size_t i = 0; i < n; i++)
		if (l->share[i] < limit && l->share[i] > *most)
			*most = l->share[i];
	for (size_t i = 0; i < n; i++)
		entries += l->share[i] && l->share[i] <= *most;
	return entries;
}

static void grant_fit(struct levels *l, struct grant *g, struct process *const *list, size_t n,
		      uint32_t room)
{
	g->most = UINT32_MAX;
	g->entries = wish_count_covered(l, g->wish, list, n);
	if (g->entries <= room)
		return;
	wish_count_shares(l, g->wish, list, n);
	while (g->entries > room)
		g->entries = share_next_smaller(l, n, &g->most);
}

/* The room that wishes of the same user have already. */
static uint32_t grant_used_by(const struct levels *l, const struct grant *g, uint32_t n,
			      const struct wish *w)
{
	uid_t account = accounts_of(l->wishes.accounts, w->uid);
	uint32_t used = 0;

	for (uint32_t i = 0; i < n; i++)
		if (!g[i].wish->everybody &&
		    accounts_of(l->wishes.accounts, g[i].wish->uid) == account)
			used += g[i].entries;
	return used;
}

/*
 * Give room to the strongest first: to wishes of those who may change everything; to users',
 * as long as none has more than half; and to what is left of users'.  Returns what remains.
 */
static uint32_t grant_room(struct levels *l, struct grant *g, uint32_t wishes,
			   struct process *const *list, size_t n, uint32_t room)
{
	static const struct {
		bool everybody;
		uint32_t most;
	} turns[] = {
		{ true, NCI_CONTROL_ENTRIES },
		{ false, NCI_CONTROL_ENTRIES / 2 },
		{ false, NCI_CONTROL_ENTRIES },
	};

	for (size_t turn = 0; turn < sizeof(turns) / sizeof(turns[0]); turn++)
		for (uint32_t i = wishes; i-- > 0;) {
			uint32_t used, limit;

			if (g[i].entries || g[i].wish->everybody != turns[turn].everybody)
				continue;
			used = turns[turn].everybody ? 0 : grant_used_by(l, g, wishes, g[i].wish);
			limit = used < turns[turn].most ? turns[turn].most - used : 0;
			grant_fit(l, &g[i], list, n, limit < room ? limit : room);
			room -= g[i].entries;
		}
	return room;
}

static uint32_t automatic_put_of(struct levels *l, const struct process *p, uint64_t now_ns,
				 struct nci_control_entry *entry, uint32_t room)
{
	const struct automatic *a = automatic_find(l, p);
	struct nci_control_entry own[2];
	uint32_t entries = a ? automatic_entries(a, p, now_ns, own) : 0;

	if (entries > room || (entries && !owners_take(&l->owners, p, now_ns))) {
		l->stats.left_out += entries;
		return 0;
	}
	memcpy(entry, own, entries * sizeof(*entry));
	return entries;
}

/* Live processes of the same account before this one. */
static uint32_t process_place(struct process *const *list, size_t i)
{
	uint32_t place = 0;

	for (size_t k = 0; k < i; k++)
		place += list[k]->state == PROCESS_LIVE && list[k]->account == list[i]->account;
	return place;
}

/* The first processes of each account before the others of any. */
static uint32_t automatic_put(struct levels *l, struct process *const *list, size_t n,
			      uint64_t now_ns, struct nci_control_entry *entry, uint32_t room)
{
	uint32_t used = 0;

	for (size_t i = 0; i < n; i++)
		l->share[i] = !wish_is_own(l, list[i], list, n) ? 0 :
			      process_place(list, i) < NCI_CONTROL_ENTRIES / 4 ? 1 : 2;
	for (uint32_t turn = 1; turn <= 2; turn++)
		for (size_t i = 0; i < n; i++)
			if (l->share[i] == turn)
				used += automatic_put_of(l, list[i], now_ns, entry + used,
							 room - used);
	return used;
}

static uint32_t wish_put(struct levels *l, const struct grant *g, struct process *const *list,
			 size_t n, uint64_t now_ns, struct nci_control_entry *entry)
{
	uint32_t used = 0;

	if (g->wish->kind == WISH_NODE && g->entries) {
		entry[0] = wish_entry(g->wish, 0);
		return 1;
	}
	if (!g->entries)
		return 0;
	wish_count_shares(l, g->wish, list, n);
	for (size_t i = 0; i < n; i++)
		if (l->share[i] && l->share[i] <= g->most &&
		    owners_take(&l->owners, list[i], now_ns))
			entry[used++] = wish_entry(g->wish, list[i]->instance);
	return used;
}

/* Scratch for as many processes as there are. */
static bool shares_make(struct levels *l, size_t n)
{
	uint32_t *more = n > l->shares ? realloc(l->share, n * sizeof(*more)) : l->share;

	if (n && !more)
		return false;
	l->share = more;
	l->shares = n > l->shares ? n : l->shares;
	return true;
}

uint32_t levels_entries(struct levels *l, struct process *const *list, size_t n,
			uint64_t now_ns, struct nci_control_entry *entry)
{
	uint32_t at = 0, room = NCI_CONTROL_ENTRIES, wishes;
	struct grant grants[WISHES] = { 0 };
	const struct wish *order[WISHES];

	l->stats.left_out = 0;
	if (!shares_make(l, n))
		return at;
	wishes = wishes_in_order(l, now_ns, order);
	for (uint32_t i = 0; i < wishes; i++)
		grants[i].wish = order[i];
	room = grant_room(l, grants, wishes, list, n, room);
	at += automatic_put(l, list, n, now_ns, entry + at, room);
	for (uint32_t i = 0; i < wishes; i++) {
		uint32_t covered = wish_count_covered(l, order[i], list, n);
		uint32_t put = wish_put(l, &grants[i], list, n, now_ns, entry + at);

		l->stats.left_out += covered - put;
		at += put;
	}
	l->stats.entries = at;
	return at;
}

/* ---- what it comes to ---------------------------------------------------------- */

static void wanted_take(struct level_wanted *out, const struct nci_control_entry *e,
			uint64_t since_ns)
{
	bool level = e->level != NCI_CONTROL_KEEP, sample = e->sample != NCI_CONTROL_KEEP;

	if (level)
		out->level = e->level;
	if (sample)
		out->sample = e->sample;
	if (!level && !sample)
		return;
	out->why = e->cause;
	out->since_ns = since_ns;
	if (e->until_mono_ns && (!out->until_ns || e->until_mono_ns < out->until_ns))
		out->until_ns = e->until_mono_ns;
}

void levels_wanted(const struct levels *l, const struct process *p, uint64_t now_ns,
		   struct level_wanted *out)
{
	const struct automatic *a = automatic_find(l, p);
	const struct wish *order[WISHES];
	uint32_t n = wishes_in_order(l, now_ns, order);
	struct nci_control_entry own[2];
	uint32_t entries = a ? automatic_entries(a, p, now_ns, own) : 0;

	*out = (struct level_wanted){ .level = WISH_KEEP, .sample = WISH_KEEP };
	for (uint32_t i = 0; i < entries; i++)
		wanted_take(out, &own[i], own[i].cause == NCI_CAUSE_FINDING ? a->detail_since_ns
								    : a->thrift.since_ns);
	for (uint32_t i = 0; i < n; i++) {
		struct nci_control_entry e = wish_entry(order[i], p->instance);

		if (wish_covers(order[i], p))
			wanted_take(out, &e, order[i]->since_ns);
	}
}

/* ---- life ----------------------------------------------------------------------- */

CLEANUP_DEFINE(levels_free, struct levels)

int levels_new(struct levels **lp, const struct levels_config *config)
{
	CLEANUP(levels_freep) struct levels *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->config = *config;
	l->wishes.accounts = config->accounts;
	if (!l->config.processes)
		l->config.processes = PROCESSES;
	l->automatic = calloc(l->config.processes, sizeof(*l->automatic));
	if (!l->automatic)
		return -ENOMEM;
	*lp = DISOWN(l);
	return 0;
}

void levels_free(struct levels *l)
{
	if (!l)
		return;
	free(l->automatic);
	free(l->share);
	free(l);
}

void levels_set(struct levels *l, const struct levels_config *config)
{
	uint32_t processes = l->config.processes;

	l->config = *config;
	l->config.processes = processes;
	for (uint32_t i = 0; !config->thrift && i < l->config.processes; i++)
		thrift_init(&l->automatic[i].thrift);
}

struct wishes *levels_wishes(struct levels *l)
{
	return &l->wishes;
}

struct owners *levels_owners(struct levels *l)
{
	return &l->owners;
}

const struct levels_stats *levels_stats(const struct levels *l)
{
	return &l->stats;
}

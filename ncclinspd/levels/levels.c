/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/levels/levels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"

#define PROCESSES	256

/* What happens to a process by itself. */
struct automatic {
	uint64_t process_id;	/* 0: not in use */
	struct thrift thrift;
	uint64_t detail_since_ns, detail_until_ns;	/* 0: never */
	uint32_t kernel_cost_ns;	/* 0: not known */
};

struct levels {
	struct levels_config config;
	struct wishes wishes;
	struct levels_stats stats;
	struct automatic *automatic;
};

/* ---- the processes ---------------------------------------------------------- */

static struct automatic *find(const struct levels *l, const struct process *p)
{
	for (uint32_t i = 0; i < l->config.processes; i++)
		if (l->automatic[i].process_id == p->id)
			return &l->automatic[i];
	return NULL;
}

/* NULL: no room. */
static struct automatic *find_or_add(struct levels *l, const struct process *p)
{
	struct automatic *a = find(l, p);

	if (a)
		return a;
	for (uint32_t i = 0; i < l->config.processes; i++) {
		a = &l->automatic[i];
		if (a->process_id)
			continue;
		*a = (struct automatic){ .process_id = p->id };
		thrift_init(&a->thrift);
		return a;
	}
	l->stats.forgotten++;
	return NULL;
}

static bool is_live(uint64_t process_id, struct process *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (list[i]->id == process_id)
			return list[i]->state == PROCESS_LIVE;
	return false;
}

static bool is_detailed(const struct automatic *a, uint64_t now_ns)
{
	return now_ns < a->detail_until_ns;
}

static bool is_lowered(const struct automatic *a)
{
	return a->thrift.cap != WISH_KEEP;
}

bool levels_detail(struct levels *l, const struct process *p, uint64_t now_ns)
{
	struct automatic *a;

	if (!l->config.detail)
		return false;
	a = find_or_add(l, p);
	if (!a || is_detailed(a, now_ns))
		return false;
	if (a->detail_since_ns && now_ns - a->detail_since_ns < LEVELS_DETAIL_APART_NS) {
		l->stats.withheld++;
		return false;
	}
	a->detail_since_ns = now_ns;
	a->detail_until_ns = now_ns + LEVELS_DETAIL_NS;
	l->stats.raised++;
	return true;
}

bool levels_look(struct levels *l, const struct process *p, struct thrift_look look,
		 uint64_t now_ns)
{
	struct automatic *a;

	if (!l->config.thrift)
		return false;
	a = find_or_add(l, p);
	if (!a)
		return false;
	look.held = is_detailed(a, now_ns) || wishes_level(&l->wishes, p, now_ns);
	if (!thrift_look(&a->thrift, &look, now_ns))
		return false;
	l->stats.lowered += !a->thrift.raised_ns;
	return true;
}

void levels_set_cost(struct levels *l, const struct process *p, uint32_t kernel_cost_ns)
{
	struct automatic *a = find_or_add(l, p);

	if (a)
		a->kernel_cost_ns = kernel_cost_ns;
}

bool levels_tidy(struct levels *l, struct process *const *list, size_t n, uint64_t now_ns)
{
	bool changed = wishes_tidy(&l->wishes, list, n, now_ns);

	for (uint32_t i = 0; i < l->config.processes; i++) {
		struct automatic *a = &l->automatic[i];

		if (!a->process_id || is_live(a->process_id, list, n))
			continue;
		a->process_id = 0;
		changed = true;
	}
	return changed;
}

uint64_t levels_next_end(const struct levels *l, uint64_t now_ns)
{
	uint64_t next = wishes_next_end(&l->wishes, now_ns);

	for (uint32_t i = 0; i < l->config.processes; i++) {
		const struct automatic *a = &l->automatic[i];

		if (a->process_id && is_detailed(a, now_ns) && a->detail_until_ns < next)
			next = a->detail_until_ns;
	}
	return next;
}

const struct thrift *levels_thrift(const struct levels *l, const struct process *p)
{
	const struct automatic *a = find(l, p);

	return a ? &a->thrift : NULL;
}

/* ---- entries ---------------------------------------------------------------- */

#define LEAST_ENTRY { .level = NCI_CONTROL_KEEP, .sample = NCI_CONTROL_KEEP }

/* What the node's configuration says: up to one entry. */
static uint32_t node_entry(const struct levels *l, struct nci_control_entry *entry)
{
	if (!l->config.budget_ppm && !l->config.kernel_cost_ns)
		return 0;
	*entry = (struct nci_control_entry)LEAST_ENTRY;
	entry->budget_ppm = l->config.budget_ppm;
	entry->kernel_cost_ns = l->config.kernel_cost_ns;
	return 1;
}

/* What of a process is steered by itself: up to two entries. */
static uint32_t automatic_entries(const struct automatic *a, const struct process *p,
				  uint64_t now_ns, struct nci_control_entry entry[2])
{
	uint32_t n = 0;

	if (is_lowered(a) || a->kernel_cost_ns) {
		entry[n] = (struct nci_control_entry)LEAST_ENTRY;
		entry[n].instance = p->instance;
		entry[n].kernel_cost_ns = a->kernel_cost_ns;
		if (is_lowered(a)) {
			entry[n].level = a->thrift.cap;
			entry[n].wish = NCI_WISH_THRIFT;
		}
		n++;
	}
	if (is_detailed(a, now_ns)) {
		entry[n] = (struct nci_control_entry)LEAST_ENTRY;
		entry[n].instance = p->instance;
		entry[n].until_mono_ns = a->detail_until_ns;
		entry[n].sample = NCI_SAMPLE_ALL;
		entry[n].wish = NCI_WISH_DETAIL;
		if (is_lowered(a))
			entry[n].level = a->thrift.from;
		n++;
	}
	return n;
}

static struct nci_control_entry entry_of(const struct wish *w, uint64_t instance)
{
	return (struct nci_control_entry){
		.instance = instance,
		.until_mono_ns = w->until_ns,
		.level = w->level == WISH_KEEP ? NCI_CONTROL_KEEP : w->level,
		.sample = w->sample == WISH_KEEP ? NCI_CONTROL_KEEP : w->sample,
		.wish = NCI_WISH_PERSON,
	};
}

static int by_strength(const void *left, const void *right)
{
	const struct wish *a = *(const struct wish *const *)left;
	const struct wish *b = *(const struct wish *const *)right;

	if ((a->kind == WISH_NODE) != (b->kind == WISH_NODE))
		return a->kind == WISH_NODE ? -1 : 1;
	return a->serial < b->serial ? -1 : 1;
}

/* Those that hold, the weakest first. */
static uint32_t wishes_in_order(const struct levels *l, uint64_t now_ns,
				const struct wish *order[WISHES])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < WISHES; i++) {
		const struct wish *w = &l->wishes.at[i];

		if (w->serial && !(w->until_ns && now_ns >= w->until_ns))
			order[n++] = w;
	}
	qsort(order, n, sizeof(order[0]), by_strength);
	return n;
}

/*
 * Who copies another's instance into a segment of his own must not have it steered:
 * the first of that name is meant, and nobody else's.
 */
static bool is_itself(const struct process *p, struct process *const *list, size_t n)
{
	for (size_t i = 0; i < n && list[i] != p; i++)
		if (list[i]->instance == p->instance)
			return false;
	return p->state == PROCESS_LIVE && p->instance;
}

static uint32_t count_covered(const struct wish *w, struct process *const *list, size_t n)
{
	uint32_t count = 0;

	if (w->kind == WISH_NODE)
		return 1;
	for (size_t i = 0; i < n; i++)
		count += wish_covers(w, list[i]) && is_itself(list[i], list, n);
	return count;
}

/* The weakest wish from which on all find room; of *room, the rest is left. */
static uint32_t first_that_fits(struct levels *l, const struct wish *const *order, uint32_t n,
				struct process *const *list, size_t count, uint32_t *room)
{
	uint32_t first = n;

	while (first) {
		uint32_t entries = count_covered(order[first - 1], list, count);

		if (entries > *room)
			break;
		*room -= entries;
		first--;
	}
	for (uint32_t i = 0; i < first; i++)
		l->stats.left_out += count_covered(order[i], list, count);
	return first;
}

static uint32_t put_automatic(struct levels *l, struct process *const *list, size_t n,
			      uint64_t now_ns, struct nci_control_entry *entry, uint32_t room)
{
	uint32_t used = 0;

	for (size_t i = 0; i < n; i++) {
		const struct automatic *a = find(l, list[i]);
		struct nci_control_entry own[2];
		uint32_t entries;

		if (!a || !is_itself(list[i], list, n))
			continue;
		entries = automatic_entries(a, list[i], now_ns, own);
		if (entries > room - used) {
			l->stats.left_out += entries;
			continue;
		}
		memcpy(entry + used, own, entries * sizeof(*entry));
		used += entries;
	}
	return used;
}

static uint32_t put_wish(const struct wish *w, struct process *const *list, size_t n,
			 struct nci_control_entry *entry)
{
	uint32_t used = 0;

	if (w->kind == WISH_NODE) {
		entry[0] = entry_of(w, 0);
		return 1;
	}
	for (size_t i = 0; i < n; i++)
		if (wish_covers(w, list[i]) && is_itself(list[i], list, n))
			entry[used++] = entry_of(w, list[i]->instance);
	return used;
}

uint32_t levels_entries(struct levels *l, struct process *const *list, size_t n,
			uint64_t now_ns, struct nci_control_entry *entry)
{
	const struct wish *order[WISHES];
	uint32_t wishes = wishes_in_order(l, now_ns, order), first;
	uint32_t at = node_entry(l, entry), room = NCI_CONTROL_ENTRIES - at;

	l->stats.left_out = 0;
	first = first_that_fits(l, order, wishes, list, n, &room);
	at += put_automatic(l, list, n, now_ns, entry + at, room);
	for (uint32_t i = first; i < wishes; i++)
		at += put_wish(order[i], list, n, entry + at);
	l->stats.entries = at;
	return at;
}

/* ---- what it comes to ---------------------------------------------------------- */

static void take(struct level_wanted *out, const struct nci_control_entry *e, uint64_t since_ns)
{
	bool level = e->level != NCI_CONTROL_KEEP, sample = e->sample != NCI_CONTROL_KEEP;

	if (level)
		out->level = e->level;
	if (sample)
		out->sample = e->sample;
	if (!level && !sample)
		return;
	out->why = e->wish;
	out->since_ns = since_ns;
	if (e->until_mono_ns && (!out->until_ns || e->until_mono_ns < out->until_ns))
		out->until_ns = e->until_mono_ns;
}

void levels_wanted(const struct levels *l, const struct process *p, uint64_t now_ns,
		   struct level_wanted *out)
{
	const struct automatic *a = find(l, p);
	const struct wish *order[WISHES];
	uint32_t n = wishes_in_order(l, now_ns, order);
	struct nci_control_entry own[2];
	uint32_t entries = a ? automatic_entries(a, p, now_ns, own) : 0;

	*out = (struct level_wanted){ .level = WISH_KEEP, .sample = WISH_KEEP };
	for (uint32_t i = 0; i < entries; i++)
		take(out, &own[i], own[i].wish == NCI_WISH_DETAIL ? a->detail_since_ns
								    : a->thrift.since_ns);
	for (uint32_t i = 0; i < n; i++) {
		struct nci_control_entry e = entry_of(order[i], p->instance);

		if (wish_covers(order[i], p))
			take(out, &e, order[i]->since_ns);
	}
}

/* ---- life ----------------------------------------------------------------------- */

static void levels_freep(struct levels **lp)
{
	levels_free(*lp);
}

int levels_new(struct levels **lp, const struct levels_config *config)
{
	CLEANUP(levels_freep) struct levels *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->config = *config;
	if (!l->config.processes)
		l->config.processes = PROCESSES;
	l->automatic = calloc(l->config.processes, sizeof(*l->automatic));
	if (!l->automatic)
		return -ENOMEM;
	*lp = l;
	l = NULL;
	return 0;
}

void levels_free(struct levels *l)
{
	if (!l)
		return;
	free(l->automatic);
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

const struct levels_stats *levels_stats(const struct levels *l)
{
	return &l->stats;
}

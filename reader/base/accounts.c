/* SPDX-License-Identifier: Apache-2.0 */
/* /etc/subuid as a sorted table, read when it changes, since every file that is found asks it. */
#include "reader/base/accounts.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util/cleanup.h"
#include "util/list.h"
#include "util/text.h"

#define NOBODY	((uid_t)-1)	/* the range has no single owner */

struct range {
	uid_t start;
	uint32_t count;
	uid_t owner;		/* or NOBODY */
	char name[40];
};

struct accounts {
	const char *subuid, *passwd;
	struct stat seen;	/* the file when it was read; st_ino 0: it was not there */
	LIST(struct range);	/* sorted by start */
};

/* ---- the file ------------------------------------------------------------------- */

/* "name:start:count", the name being a user's or the user's number. */
static bool range_parse(struct range *r, char *line)
{
	char *start = strchr(line, ':'), *count = start ? strchr(start + 1, ':') : NULL;
	int64_t from, ids, uid;

	if (!count)
		return false;
	*start++ = *count++ = '\0';
	count[strcspn(count, "\n")] = '\0';
	if (strlen(line) >= sizeof(r->name) || text_parse_integer(start, 0, UINT32_MAX, &from) ||
	    text_parse_integer(count, 1, UINT32_MAX, &ids))
		return false;
	*r = (struct range){ .start = (uid_t)from, .count = (uint32_t)ids, .owner = NOBODY };
	strcpy(r->name, line);
	if (!text_parse_integer(line, ACCOUNTS_USER, UINT32_MAX - 1, &uid))
		r->owner = (uid_t)uid;
	return true;
}

static bool ranges_add(struct accounts *a, const struct range *r)
{
	struct range *place = list_append(a);

	if (!place)
		return false;
	*place = *r;
	return a->n < ACCOUNTS_RANGES;
}

static int range_by_name(const void *left, const void *right)
{
	return strcmp(((const struct range *)left)->name, ((const struct range *)right)->name);
}

static int range_by_start(const void *left, const void *right)
{
	const struct range *a = left, *b = right;

	return a->start < b->start ? -1 : a->start > b->start;
}

/* A range of the system's stays nobody's: many users run in what it starts. */
static void ranges_own(struct accounts *a, const struct passwd *user)
{
	struct range key, *first;

	if (user->pw_uid < ACCOUNTS_USER || strlen(user->pw_name) >= sizeof(key.name))
		return;
	strcpy(key.name, user->pw_name);
	first = bsearch(&key, a->at, a->n, sizeof(key), range_by_name);
	while (first && first > a->at && !strcmp(first[-1].name, key.name))
		first--;
	for (; first && first < a->at + a->n && !strcmp(first->name, key.name); first++)
		first->owner = user->pw_uid;
}

static void ranges_find_owners(struct accounts *a)
{
	CLEANUP(cleanup_fclosep) FILE *f = fopen(a->passwd, "re");
	struct passwd *user;

	while (f && (user = fgetpwent(f)))
		ranges_own(a, user);
}

static void ranges_read(struct accounts *a)
{
	CLEANUP(cleanup_fclosep) FILE *f = fopen(a->subuid, "re");
	CLEANUP(cleanup_freep) char *line = NULL;
	struct range r;
	size_t size = 0;

	list_deinit(a);
	while (f && getline(&line, &size, f) > 0)
		if (range_parse(&r, line) && !ranges_add(a, &r))
			break;
	if (!a->n)
		return;
	qsort(a->at, a->n, sizeof(r), range_by_name);
	ranges_find_owners(a);
	qsort(a->at, a->n, sizeof(r), range_by_start);
}

/* ---- from outside --------------------------------------------------------------- */

static bool file_is_same(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

void accounts_look(struct accounts *a)
{
	struct stat st;

	if (stat(a->subuid, &st) < 0)
		memset(&st, 0, sizeof(st));
	if (file_is_same(&st, &a->seen))
		return;
	a->seen = st;
	ranges_read(a);
}

uid_t accounts_of(const struct accounts *a, uid_t uid)
{
	uint32_t from = 0, to = a ? a->n : 0;
	const struct range *r;

	while (from < to) {		/* the last that does not start behind it is at from - 1 */
		uint32_t middle = from + (to - from) / 2;

		if (a->at[middle].start <= uid)
			from = middle + 1;
		else
			to = middle;
	}
	if (!from)
		return uid;
	r = &a->at[from - 1];
	if (uid - r->start >= r->count)
		return uid;
	return r->owner != NOBODY ? r->owner : uid - (uid - r->start) % ACCOUNTS_BLOCK;
}

int accounts_new(struct accounts **out, const char *subuid, const char *passwd)
{
	struct accounts *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->subuid = subuid;
	a->passwd = passwd;
	accounts_look(a);
	*out = a;
	return 0;
}

void accounts_free(struct accounts *a)
{
	if (!a)
		return;
	list_deinit(a);
	free(a);
}

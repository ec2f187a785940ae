/* SPDX-License-Identifier: Apache-2.0 */
/* The expansion of lists of nodes, bracket by bracket. */
#include "cli/offline/hosts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/must.h"
#include "cli/base/ssh.h"

#define NAME_MOST  256
#define DIGITS	   "0123456789"

__attribute__((format(printf, 2, 3)))
static int hosts_refuse(char why[HOSTS_WHY], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, HOSTS_WHY, format, args);
	va_end(args);
	return -EINVAL;
}

static int hosts_add(struct hosts *h, const char *name, char why[HOSTS_WHY])
{
	if (!ssh_is_host(name))
		return hosts_refuse(why, "'%.64s' cannot be the name of a host", name);
	for (uint32_t i = 0; i < h->names.n; i++)
		if (!strcmp(h->names.at[i], name))
			return 0;
	if (h->names.n == HOSTS_MOST)
		return hosts_refuse(why, "more than %d hosts", HOSTS_MOST);
	*(char **)must(list_append(&h->names)) = must(strdup(name));
	return 0;
}

static int hosts_expand(struct hosts *h, const char *prefix, const char *rest,
			char why[HOSTS_WHY]);

/* One number of a bracket, with as many digits as it was given, and what follows the bracket. */
static int hosts_add_number(struct hosts *h, const char *prefix, unsigned long number, int width,
			    const char *rest, char why[HOSTS_WHY])
{
	char name[NAME_MOST];

	if ((size_t)snprintf(name, sizeof(name), "%s%0*lu", prefix, width, number) >= sizeof(name))
		return hosts_refuse(why, "'%.64s...' is too long a name", name);
	return hosts_expand(h, name, rest, why);
}

/* Reads "064-070" or "7": *text is then behind it. */
static bool range_read(const char **text, unsigned long *first, unsigned long *last, int *width)
{
	size_t digits = strspn(*text, DIGITS);
	char *end;

	if (!digits || digits > 9)
		return false;
	*width = (int)digits;
	*first = *last = strtoul(*text, &end, 10);
	if (*end == '-') {
		digits = strspn(end + 1, DIGITS);
		if (!digits || digits > 9)
			return false;
		*last = strtoul(end + 1, &end, 10);
	}
	*text = end;
	return *first <= *last && *last - *first < HOSTS_MOST && (*end == ',' || *end == ']');
}

/* `text` stands behind the opening bracket. */
static int hosts_expand_bracket(struct hosts *h, const char *prefix, const char *text,
				char why[HOSTS_WHY])
{
	const char *behind = text + strcspn(text, "]"), *at = text - 1;
	unsigned long first, last;
	int width, r = 0;

	if (!*behind)
		return hosts_refuse(why, "'[%.64s' has no closing bracket", text);
	while (*at != ']' && !r) {
		at++;
		if (!range_read(&at, &first, &last, &width))
			return hosts_refuse(why, "'[%.*s]' is not a list of numbers such as "
					    "1-64,70",
					    (int)(behind - text > 64 ? 64 : behind - text), text);
		for (unsigned long n = first; n <= last && !r; n++)
			r = hosts_add_number(h, prefix, n, width, behind + 1, why);
	}
	return r;
}

/* All names that begin with `prefix` and go on as `rest` says. */
static int hosts_expand(struct hosts *h, const char *prefix, const char *rest, char why[HOSTS_WHY])
{
	size_t plain = strcspn(rest, "[");
	char name[NAME_MOST];

	if ((size_t)snprintf(name, sizeof(name), "%s%.*s", prefix, (int)plain, rest) >=
	    sizeof(name))
		return hosts_refuse(why, "'%.64s...' is too long a name", name);
	return rest[plain] ? hosts_expand_bracket(h, name, rest + plain + 1, why)
			   : hosts_add(h, name, why);
}

/* The length of the first item: commas within brackets are its own. */
static size_t item_length(const char *text)
{
	size_t n = 0;
	bool inside = false;

	for (; text[n] && (inside || text[n] != ','); n++)
		inside = text[n] == '[' || (inside && text[n] != ']');
	return n;
}

static int hosts_read_slurm(struct hosts *h, const char *job, char why[HOSTS_WHY])
{
	char command[128], nodes[65536] = "";
	FILE *squeue;
	int r;

	if (!*job || strspn(job, DIGITS "_+") != strlen(job) || strlen(job) > 40)
		return hosts_refuse(why, "'%.40s' is not a job number", job);
	snprintf(command, sizeof(command), "squeue --noheader --jobs=%s --format=%%N", job);
	squeue = popen(command, "re");
	r = squeue && fgets(nodes, sizeof(nodes), squeue) ? 0 : -EINVAL;
	if (squeue && pclose(squeue))
		r = -EINVAL;
	nodes[strcspn(nodes, "\n ")] = '\0';
	if (r || !*nodes || strchr(nodes, ':'))
		return hosts_refuse(why, "Slurm's squeue names no nodes of job %s: does it run?",
				    job);
	return hosts_read(h, nodes, why);
}

int hosts_read(struct hosts *h, const char *text, char why[HOSTS_WHY])
{
	static const char slurm[] = "slurm:";
	int r = 0;

	while (!r && *text) {
		size_t n = item_length(text);
		char *item = must(strndup(text, n));

		if (!strncmp(item, slurm, sizeof(slurm) - 1))
			r = hosts_read_slurm(h, item + sizeof(slurm) - 1, why);
		else if (n)
			r = hosts_expand(h, "", item, why);
		free(item);
		text += n + (text[n] == ',');
	}
	return r || h->names.n ? r : hosts_refuse(why, "no host is given");
}

void hosts_deinit(struct hosts *h)
{
	for (uint32_t i = 0; i < h->names.n; i++)
		free(h->names.at[i]);
	list_deinit(&h->names);
}

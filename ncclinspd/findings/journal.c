/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal's own protocol is one datagram per entry, NAME=value lines; a value
 * must not contain a line's end, and names that came from a job may.
 */
#include "ncclinspd/findings/journal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/list.h"
#include "util/log.h"
#include "util/phrase.h"
#include "util/words.h"

#define ENTRY_BYTES	4096

/* Syslog's priorities, by enum finding_severity. */
static const struct level {
	int priority;
	enum log_level level;
} levels[FINDING_SEVERITY_END] = {
	[FINDING_INFO] = { 6, LOG_INFO },
	[FINDING_WARNING] = { 4, LOG_WARN },
	[FINDING_CRITICAL] = { 2, LOG_ERROR },
};

void journal_open(struct journal *j, const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	*j = (struct journal){ .fd = -1 };
	if (!path || strlen(path) >= sizeof(addr.sun_path))
		return;
	strcpy(addr.sun_path, path);
	j->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (j->fd >= 0 && connect(j->fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		journal_close(j);
}

void journal_close(struct journal *j)
{
	if (j->fd >= 0)
		close(j->fd);
	j->fd = -1;
}

static const char *finding_state(const struct finding *f)
{
	return f->life.until_ns ? "over" : f->grade == FINDING_FOUND ? "active" : "suspected";
}

static bool finding_is_alarm(const struct finding *f)
{
	return f->grade == FINDING_FOUND && !f->life.until_ns;
}

static const struct level *finding_level(const struct finding *f)
{
	return &levels[finding_is_alarm(f) ? f->severity : FINDING_INFO];
}

static void entry_add(struct phrase *entry, const char *name, const char *value)
{
	size_t begin;

	if (!value || !*value)
		return;
	phrase_add(entry, "%s=", name);
	begin = entry->used;
	phrase_add(entry, "%s", value);
	for (size_t i = begin; i < entry->used; i++)
		if ((unsigned char)entry->at[i] < ' ')
			entry->at[i] = ' ';
	phrase_add(entry, "\n");
}

static void entry_add_number(struct phrase *entry, const char *name, uint64_t value)
{
	phrase_add(entry, "%s=%" PRIu64 "\n", name, value);
}

static void make_message(const struct finding *f, struct phrase *message)
{
	const char *kind = finding_kind_name(f->kind);

	if (!finding_is_alarm(f))
		phrase_add(message, "%s%s%s is %s: ", kind, f->verdict ? " " : "",
			   f->verdict ? f->verdict : "", finding_state(f));
	phrase_add(message, "%s", f->text);
}

/* An id that is not known is no field at all. */
static void make_entry(const struct finding *f, const char *message, struct phrase *entry)
{
	const char *kind = finding_kind_name(f->kind);
	const struct word *word = words_find(kind);
	char ranks[256], world_ranks[256], comm_id[24] = "";
	int32_t world[FINDING_RANKS];
	uint32_t nworld = 0;
	struct phrase list;

	phrase_start(&list, ranks, sizeof(ranks));
	phrase_add_list(&list, f->ranks, f->nranks);
	for (uint32_t i = 0; i < f->nranks; i++)
		if (f->life.whom[i].world_rank != UNKNOWN_I32)
			*array_must_add(world, &nworld) = f->life.whom[i].world_rank;
	phrase_start(&list, world_ranks, sizeof(world_ranks));
	phrase_add_list(&list, world, nworld);
	if (f->has_comm_id)
		snprintf(comm_id, sizeof(comm_id), "0x%016" PRIx64, f->comm_id);
	entry_add_number(entry, "PRIORITY", (uint64_t)finding_level(f)->priority);
	entry_add(entry, "SYSLOG_IDENTIFIER", "ncclinspd");
	entry_add(entry, "MESSAGE_ID", word ? word->message_id : NULL);
	entry_add_number(entry, "NCCLINSP_FINDING", f->life.id);
	entry_add_number(entry, "NCCLINSP_ACTIVE", !f->life.until_ns);
	entry_add(entry, "NCCLINSP_GRADE", finding_grade_name(f->grade));
	entry_add(entry, "NCCLINSP_KIND", kind);
	entry_add(entry, "NCCLINSP_VERDICT", f->verdict);
	entry_add(entry, "NCCLINSP_SEVERITY", finding_severity_name(f->severity));
	entry_add(entry, "NCCLINSP_COMM_ID", comm_id);
	entry_add(entry, "NCCLINSP_COMM", f->comm_name);
	entry_add(entry, "NCCLINSP_RANKS", ranks);
	entry_add(entry, "NCCLINSP_WORLD_RANKS", world_ranks);
	entry_add(entry, "MESSAGE", message);
}

static void log_finding(const struct finding *f)
{
	char text[FINDING_TEXT + 128];
	struct phrase line;

	phrase_start(&line, text, sizeof(text));
	entry_add(&line, "text", f->text);
	line.at[line.used ? line.used - 1 : 0] = '\0';	/* the line's end is the log's */
	log_say(finding_level(f)->level,
		"finding %s id=%" PRIu64 " kind=%s verdict=%s severity=%s %s",
		finding_state(f), f->life.id, finding_kind_name(f->kind),
		f->verdict ? f->verdict : "-", finding_severity_name(f->severity), text);
}

void journal_finding(struct journal *j, const struct finding *f)
{
	char message[FINDING_TEXT + 128], text[ENTRY_BYTES];
	struct phrase entry, words;

	if (f->grade == FINDING_SUSPECTED) {
		if (f->life.id <= j->suspected || f->severity == FINDING_INFO)
			return;
		j->suspected = f->life.id;
	}
	phrase_start(&words, message, sizeof(message));
	make_message(f, &words);
	phrase_start(&entry, text, sizeof(text));
	make_entry(f, message, &entry);
	if (j->fd < 0 || send(j->fd, entry.at, entry.used, MSG_NOSIGNAL) < 0)
		log_finding(f);
}

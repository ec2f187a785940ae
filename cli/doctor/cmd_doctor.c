/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp doctor: does the data flow, and if not, what is the first thing that is wrong? */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/base/member.h"
#include "cli/common/listing.h"
#include "cli/common/prose.h"
#include "cli/doctor/doctor.h"
#include "util/utf8.h"

#define INDENT 20

static const struct column columns[] = {
#include "schema/doctor_columns.h"
};

static const char *const states[] = { "ok", "warning", "failed" };
static const enum line_attr attrs[] = { LINE_GOOD, LINE_WARN, LINE_BAD };

/* The looks in the order of the data's way, but for what needs the daemon's answers. */
static void (*const looks[])(struct doctor *doctor) = {
	doctor_library, doctor_segments, doctor_daemon, doctor_version,
	doctor_clock, doctor_control, doctor_exporters, doctor_machine,
	doctor_containers, doctor_jobs, doctor_place, doctor_flow,
};

void doctor_say(struct doctor *doctor, const char *check, enum doctor_state state,
		const char *next, const char *format, ...)
{
	char text[DOCTOR_PATH + 256], advice[DOCTOR_PATH + 256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	snprintf(advice, sizeof(advice), "%s", next ?: "");
	utf8_clean(text, strlen(text));		/* paths may hold any byte */
	utf8_clean(advice, strlen(advice));
	json_array_append_new(doctor->rows,
			      json_pack("{s:s s:s s:s s:s?}", "check", check, "state",
					states[state], "text", text, "next",
					next ? advice : NULL));
}

static int checks_fetch(struct cli *cli, void *arg, json_t **root)
{
	struct doctor doctor = { .cli = cli, .rows = json_array() };

	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++)
		looks[i](&doctor);
	json_decref(doctor.status);
	*root = json_pack("{s:o}", "checks", doctor.rows);
	return 0;
}

static enum doctor_state check_state(const json_t *row)
{
	for (int i = 0; i < DOCTOR_FAILED; i++)
		if (member_is(row, "state", states[i]))
			return (enum doctor_state)i;
	return DOCTOR_FAILED;
}

static const json_t *checks_first_in(const json_t *rows, enum doctor_state state)
{
	json_each(row, rows)
		if (check_state(row) == state)
			return row;
	return NULL;
}

static void check_put(struct frame *frame, const json_t *row)
{
	char text[DOCTOR_PATH + 512];

	snprintf(text, sizeof(text), "%-9s%-11s%s", states[check_state(row)],
		 member_text(row, "check", ""), member_text(row, "text", ""));
	prose_put(frame, attrs[check_state(row)], 0, INDENT, text);
	if (*member_text(row, "next", ""))
		prose_put(frame, LINE_PLAIN, INDENT, INDENT, member_text(row, "next", ""));
}

/* The end, which is all that most people read: the worst, and what to do. */
static void checks_put_sum(struct frame *frame, const json_t *rows)
{
	const json_t *worst = checks_first_in(rows, DOCTOR_FAILED);
	enum doctor_state state = worst ? DOCTOR_FAILED : DOCTOR_WARNING;
	char text[DOCTOR_PATH + 512];

	frame_add(frame);
	worst = worst ?: checks_first_in(rows, DOCTOR_WARNING);
	if (worst)
		snprintf(text, sizeof(text), "%s: %s: %s",
			 state == DOCTOR_FAILED ? "The first thing that is wrong"
						: "The data flows; look at",
			 member_text(worst, "check", ""), member_text(worst, "text", ""));
	else
		snprintf(text, sizeof(text), "All is well: the data flows.");
	prose_put(frame, worst ? attrs[state] : LINE_GOOD, 0, 4, text);
	if (!worst || !*member_text(worst, "next", ""))
		return;
	snprintf(text, sizeof(text), "What to do: %s", member_text(worst, "next", ""));
	prose_put(frame, LINE_PLAIN, 0, 4, text);
}

static int checks_page(struct cli *cli, const json_t *answer, const json_t *rows)
{
	struct frame frame;

	prose_begin(&frame, cli, PROSE_WIDEST);
	json_each(row, rows)
		check_put(&frame, row);
	checks_put_sum(&frame, rows);
	prose_end(&frame, cli);
	return 0;
}

/* A daemon that is not there has an exit code of its own, as everywhere. */
static int checks_code(const struct listing *listing, const json_t *answer, const json_t *rows)
{
	const json_t *worst = checks_first_in(rows, DOCTOR_FAILED);

	if (!worst)
		return CLI_DONE;
	return member_is(worst, "check", "daemon") ? CLI_NO_DAEMON : CLI_FAILED;
}

int cmd_doctor(struct cli *cli)
{
	static const struct listing listing = {
		.array = "checks",
		LISTING_COLUMNS(columns),
		.fetch = checks_fetch,
		.page = checks_page,
		.code = checks_code,
	};

	return listing_run(cli, &listing, NULL);
}

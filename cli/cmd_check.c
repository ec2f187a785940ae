/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ncclinsp check: one line and an exit code, as Nagios, Icinga and others take them.  What is
 * only suspected is told, and is no alarm.
 */
#include <stdio.h>

#include "cli/base/member.h"
#include "cli/common/cli.h"
#include "cli/view/findings.h"

/* The monitoring plugins' own exit codes. */
enum { OK, WARNING, CRITICAL, UNKNOWN };

static const char *const words[] = { "OK", "WARNING", "CRITICAL", "UNKNOWN" };

/* A bar would begin the figures. */
static void plain_print(const char *text)
{
	for (; *text; text++)
		putchar(*text == '|' || *text == '\n' ? ' ' : *text);
}

/* Notes are told only while something may come of them: a job that has become quiet. */
static bool row_is_told(const json_t *row, enum finding_standing standing)
{
	return finding_standing(row) == standing &&
	       (standing != FINDING_IS_NOTE || member_is(row, "grade", "suspected"));
}

/* Prints the worst of that standing, and how many more there are; returns how many in all. */
static int worst_print(const json_t *sorted, enum finding_standing standing, const char *before)
{
	char sentence[FINDINGS_SENTENCE], due[FINDINGS_DUE];
	int n = 0;

	json_each(row, sorted) {
		if (!row_is_told(row, standing) || n++)
			continue;
		finding_headline(row, sentence);
		finding_due(row, cli_now_ns(), due);
		printf("%s", before);
		plain_print(sentence);
		printf("%s", due);
	}
	if (n > 1)
		printf(" (and %d more)", n - 1);
	return n;
}

static int state_print(const struct cli *cli, const json_t *rows)
{
	int critical = findings_count(rows, "critical"), warnings = findings_count(rows, "warning");
	int state = critical >= cli->crit ? CRITICAL
		    : critical || warnings >= cli->warn ? WARNING : OK;
	json_auto_t *sorted = findings_reshape(rows, cli_now_ns());

	printf("NCCLINSP %s - ", words[state]);
	if (!worst_print(sorted, FINDING_IS_FOUND, ""))
		printf("no finding");
	worst_print(sorted, FINDING_IS_SUSPECTED, "; suspected: ");
	worst_print(sorted, FINDING_IS_NOTE, "; note: ");
	printf(" | critical=%d;;%lld;0 warning=%d;%lld;;0\n", critical,
	       (long long)cli->crit - 1, warnings, (long long)cli->warn - 1);
	return state;
}

int cmd_check(struct cli *cli)
{
	json_auto_t *answer = NULL;

	if (client_get(cli->client, "/v1/findings?active=true", &answer)) {
		printf("NCCLINSP UNKNOWN - ");
		plain_print(client_error(cli->client));
		putchar('\n');
		return UNKNOWN;
	}
	return state_print(cli, json_object_get(answer, "findings"));
}

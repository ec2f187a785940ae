/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp check: one line and an exit code, as Nagios, Icinga and others take them. */
#include <stdio.h>

#include "cli/common/cli.h"
#include "cli/view/findings.h"

/* The monitoring plugins' own exit codes. */
enum { OK, WARNING, CRITICAL, UNKNOWN };

static const char *const words[] = { "OK", "WARNING", "CRITICAL", "UNKNOWN" };

/* A bar would begin the figures. */
static void print_plain(const char *text)
{
	for (; *text; text++)
		putchar(*text == '|' || *text == '\n' ? ' ' : *text);
}

static const json_t *worst_of(const json_t *rows, const char *severity)
{
	json_t *row;
	size_t i;

	json_array_foreach((json_t *)rows, i, row)
		if (finding_is(row, "severity", severity))
			return row;
	return NULL;
}

static int print_state(const struct cli *cli, const json_t *rows)
{
	int critical = findings_count(rows, "critical"), warnings = findings_count(rows, "warning");
	int state = critical >= cli->crit ? CRITICAL
		    : critical || warnings >= cli->warn ? WARNING : OK;
	char sentence[FINDINGS_SENTENCE] = "no finding";

	if (critical + warnings)
		finding_sentence(worst_of(rows, critical ? "critical" : "warning"), sentence);
	printf("NCCLINSP %s - ", words[state]);
	print_plain(sentence);
	if (critical + warnings > 1)
		printf(" (and %d more)", critical + warnings - 1);
	printf(" | critical=%d;;%lld;0 warning=%d;%lld;;0\n", critical,
	       (long long)cli->crit - 1, warnings, (long long)cli->warn - 1);
	return state;
}

int cmd_check(struct cli *cli)
{
	json_t *answer;
	int code;

	if (client_get(cli->client, "/v1/findings?active=true", &answer)) {
		printf("NCCLINSP UNKNOWN - ");
		print_plain(client_error(cli->client));
		putchar('\n');
		return UNKNOWN;
	}
	code = print_state(cli, json_object_get(answer, "findings"));
	json_decref(answer);
	return code;
}

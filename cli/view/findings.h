/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_VIEW_FINDINGS_H
#define CLI_VIEW_FINDINGS_H

/* Rows of /v1/findings. */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/table/report.h"

#define FINDINGS_SENTENCE 512

/* 0: critical, 1: warning, 2: info; more: NULL, or it says none. */
size_t finding_severity(const json_t *row);

/* The standing of a finding, in the order in which findings are shown. */
enum finding_standing {
	FINDING_IS_FOUND,
	FINDING_IS_SUSPECTED,
	FINDING_IS_NOTE,	/* it asks for nothing to be done */
	FINDING_STANDINGS
};

enum finding_standing finding_standing(const json_t *row);

/* The number of active ones that are found and have that severity. */
int findings_count(const json_t *rows, const char *severity);

/* The active ones, a new array in the same order. */
json_t *findings_active(const json_t *rows);

/* ", found in 12s if it goes on"; empty where it is not suspected, or nothing tells when. */
#define FINDINGS_DUE	64
void finding_due(const json_t *row, uint64_t now_ns, char buf[FINDINGS_DUE]);

/*
 * Findings with what a table shows: "who", the ranks; "now", active, suspected or over;
 * "age_ns"; the "sentence"; and its "weight", the larger the worse, least where it is over.  A
 * new array in the same order.
 */
json_t *findings_shape(const json_t *rows, uint64_t now_ns);

/*
 * The same: by standing, the most severe first, of these losses last; and then what is over.
 */
json_t *findings_reshape(const json_t *rows, uint64_t now_ns);

extern const struct column finding_columns[];
extern const struct column finding_weight;	/* to sort by, the worst first */
extern const size_t finding_column_count;

/* The verdict alone: the first sentence of the text, without its full stop. */
void finding_sentence(const json_t *row, char buf[FINDINGS_SENTENCE]);

/* The same with the job that it is about, where that is told: "job 4711: rank 3 ...". */
void finding_headline(const json_t *row, char buf[FINDINGS_SENTENCE]);

/* Is it told when it began? */
bool finding_has_age(const json_t *row);

/* The time it has been going on, or went on; `now_ns` is that of CLOCK_MONOTONIC. */
uint64_t finding_age_ns(const json_t *row, uint64_t now_ns);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The words for findings and how one is filled, for all that make or show some. */
#include "ncclinspd/base/finding.h"

#include <string.h>

#include "rows/rows.h"
#include "util/list.h"

name_t finding_kind_name(enum finding_kind kind)
{
	static const name_t names[] = { FINDING_KINDS(NAME_TEXT) };

	return names[kind];
}

name_t finding_severity_name(enum finding_severity severity)
{
	static const name_t names[] = { FINDING_SEVERITIES(NAME_TEXT) };

	return names[severity];
}

name_t finding_grade_name(enum finding_grade grade)
{
	static const name_t names[] = { FINDING_GRADES(NAME_TEXT) };

	return names[grade];
}

void finding_add_rank(struct finding *f, int32_t rank)
{
	int32_t *place = array_add(f->ranks, &f->nranks);

	if (place)
		*place = rank;
}

void finding_set_evidence(struct finding *f, const struct field *fields, const void *row)
{
	struct json j;

	json_init(&j, sizeof(f->evidence));
	rows_put_object(NULL, &j, fields, row);
	f->evidence_bytes = 0;
	if (!json_error(&j)) {
		memcpy(f->evidence, j.text, j.bytes);
		f->evidence_bytes = (uint32_t)j.bytes;
	}
	json_deinit(&j);
}

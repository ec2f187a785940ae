/* SPDX-License-Identifier: Apache-2.0 */
/* Rows are tables of fields, so that what an answer holds can be read off. */
#include "rows/rows.h"

#include <stdio.h>
#include <string.h>

#include "nci/variables.h"
#include "reader/base/job.h"
#include "reader/base/process.h"
#include "reader/time/stamps.h"

void rows_put_u64(struct json *j, uint64_t value)
{
	if (value == UNKNOWN_U64)
		json_put_null(j);
	else
		json_put_u64(j, value);
}

void rows_put_i32(struct json *j, int32_t value)
{
	if (value == UNKNOWN_I32)
		json_put_null(j);
	else
		json_put_i64(j, value);
}

void rows_put_rate(struct json *j, double value)
{
	if (value < 0)
		json_put_null(j);
	else
		json_put_rounded(j, value);
}

static void field_put_u64_0(struct json *j, uint64_t value)
{
	rows_put_u64(j, value ?: UNKNOWN_U64);
}

static void put_value(struct json *j, enum field_kind kind, const void *at)
{
	switch (kind) {
	case FIELD_U64:
		rows_put_u64(j, *(const uint64_t *)at);
		break;
	case FIELD_U64_0:
		field_put_u64_0(j, *(const uint64_t *)at);
		break;
	case FIELD_U32:
		json_put_u64(j, *(const uint32_t *)at);
		break;
	case FIELD_U32_0:
		field_put_u64_0(j, *(const uint32_t *)at);
		break;
	case FIELD_I32:
		rows_put_i32(j, *(const int32_t *)at);
		break;
	case FIELD_BOOL:
		json_put_bool(j, *(const bool *)at);
		break;
	case FIELD_NAME:
		json_put_string(j, *(const name_t *)at);
		break;
	case FIELD_TEXT:
		json_put_string(j, *(const char *)at ? at : NULL);
		break;
	case FIELD_HEX:
		json_put_hex64(j, *(const uint64_t *)at);
		break;
	case FIELD_HEX_0:
		if (*(const uint64_t *)at)
			json_put_hex64(j, *(const uint64_t *)at);
		else
			json_put_null(j);
		break;
	case FIELD_RATE:
		rows_put_rate(j, *(const double *)at);
		break;
	case FIELD_NULL:
		json_put_null(j);
		break;
	case FIELD_TIME:
	case FIELD_PUT:
		break;
	}
}

static void field_put_time_at(const struct rows_writer *w, struct json *j, const char *name,
			      uint64_t mono_ns)
{
	char key[64];

	snprintf(key, sizeof(key), "%s_at", name);
	json_key(j, key);
	if (mono_ns)
		json_put_time(j, mono_ns + w->real_offset_ns);
	else
		json_put_null(j);
}

static void field_put_mono_ns(struct json *j, const char *name, uint64_t mono_ns)
{
	char key[64];

	snprintf(key, sizeof(key), "%s_mono_ns", name);
	json_key(j, key);
	field_put_u64_0(j, mono_ns);
}

void rows_put_time(const struct rows_writer *w, struct json *j, const char *name, uint64_t mono_ns)
{
	field_put_time_at(w, j, name, mono_ns);
	field_put_mono_ns(j, name, mono_ns);
}

unsigned rows_put_chosen(const struct rows_writer *w, struct json *j, const struct field *fields,
			 const void *row, const struct chosen *c, unsigned n)
{
	for (const struct field *f = fields; f->name; f++, n++) {
		const void *at = (const char *)row + f->offset;

		if (f->kind == FIELD_TIME) {
			uint64_t mono_ns = f->time ? f->time(w, row) : *(const uint64_t *)at;

			if (chosen_wants(c, n))
				field_put_time_at(w, j, f->name, mono_ns);
			if (chosen_wants(c, ++n))
				field_put_mono_ns(j, f->name, mono_ns);
			continue;
		}
		if (!chosen_wants(c, n))
			continue;
		json_key(j, f->name);
		if (f->kind == FIELD_PUT)
			f->put(w, j, row);
		else
			put_value(j, f->kind, at);
	}
	return n;
}

void rows_put(const struct rows_writer *w, struct json *j, const struct field *fields,
	      const void *row)
{
	rows_put_chosen(w, j, fields, row, &(struct chosen){ .some = false }, 0);
}

void rows_put_object(const struct rows_writer *w, struct json *j, const struct field *fields,
		     const void *row)
{
	json_begin(j, '{');
	rows_put(w, j, fields, row);
	json_end(j, '}');
}

unsigned rows_count(const struct field *fields)
{
	unsigned n = 0;

	for (const struct field *f = fields; f->name; f++)
		n += f->kind == FIELD_TIME ? 2 : 1;
	return n;
}

void rows_put_keyed(const struct rows_writer *w, struct json *j, const struct field_table *tables,
		    uint32_t keys, const void *row, const struct chosen *c)
{
	unsigned n = 0;

	for (size_t i = 0; tables[i].fields; i++) {
		bool is_key = i && tables[i + 1].fields;

		if (is_key && !(keys & 1u << (i - 1)))
			n += rows_count(tables[i].fields);
		else
			n = rows_put_chosen(w, j, tables[i].fields, row, c, n);
	}
}

void rows_put_uuid(struct json *j, const uint8_t *uuid)
{
	char text[PROCESS_UUID_BYTES];

	process_uuid_text(uuid, text);
	json_put_string(j, text);
}

void rows_put_refused(struct json *j, const uint64_t *refused)
{
	json_begin(j, '{');
	for (int fault = 0; fault < STAMP_FAULT_END; fault++) {
		if (!stamps_fault_text((enum stamp_fault)fault))
			continue;
		json_key(j, stamps_fault_text((enum stamp_fault)fault));
		json_put_u64(j, refused[fault]);
	}
	json_end(j, '}');
}

void rows_put_variables(struct json *j, const struct process *p)
{
	const char *pair;
	uint32_t at = 0;

	json_begin(j, '{');
	while ((pair = job_next_variable(p, &at))) {
		size_t bytes = strcspn(pair, "=");
		char name[64];

		if (strncmp(pair, NCI_NCCL_VARIABLES, sizeof(NCI_NCCL_VARIABLES) - 1) ||
		    !pair[bytes] || bytes >= sizeof(name))
			continue;
		memcpy(name, pair, bytes);
		name[bytes] = '\0';
		json_key(j, name);
		json_put_string(j, pair + bytes + 1);
	}
	json_end(j, '}');
}

void rows_put_last_seq(struct json *j, const struct comm_progress *progress)
{
	json_begin(j, '{');
	for (uint32_t i = 0; i < progress->nfuncs; i++) {
		json_member_u64(j, progress->last_seq[i].func, progress->last_seq[i].seq);
	}
	json_end(j, '}');
}

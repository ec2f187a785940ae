/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of an exemplar is written and read back here, so that the two agree on each
 * member.
 */
#include "ncclinspd/keep/exemplar_head.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "rows/rows.h"

#define SECOND_NS	UINT64_C(1000000000)

static const char beginning[] = "{\"format\":\"ncclinsp-exemplar\",\"format_version\":1,"
				"\"exemplar\":";

/* Numbers, each a member of the object; UNKNOWN_U64 is null. */
static const struct {
	const char *name;
	size_t offset;
} numbers[] = {
#define N(name) { #name, offsetof(struct exemplar_head, name) }
	N(seq), N(bytes), N(exec_ns), N(threshold_ns), N(p999_ns), N(p50_ns), N(ops), N(merged),
#undef N
};

#define NUMBERS	(sizeof(numbers) / sizeof(numbers[0]))

/* ---- writing ------------------------------------------------------------------------ */

static void head_put_text(struct json *j, const char *key, const char *text)
{
	json_member_string(j, key, *text ? text : NULL);
}

static void head_put_number(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	rows_put_u64(j, value);
}

static void head_put_rank(struct json *j, const char *key, int32_t value)
{
	json_key(j, key);
	rows_put_i32(j, value);
}

void exemplar_head_put(const struct exemplar_head *h, struct json *j)
{
	head_put_text(j, "id", h->id);
	head_put_text(j, "reason", h->reason);
	json_key(j, "at_at");
	json_put_time(j, h->at_real_ns);
	head_put_number(j, "at_mono_ns", h->at_mono_ns ? h->at_mono_ns : UNKNOWN_U64);
	head_put_number(j, "uid", h->uid);
	json_key(j, "comm_id");
	if (h->has_comm_id)
		json_put_hex64(j, h->comm_id);
	else
		json_put_null(j);
	head_put_text(j, "comm_name", h->comm_name);
	head_put_rank(j, "rank", h->rank);
	head_put_rank(j, "nranks", h->nranks);
	head_put_rank(j, "pid", h->pid);
	head_put_text(j, "func", h->func);
	for (size_t i = 0; i < NUMBERS; i++)
		head_put_number(j, numbers[i].name, *(const uint64_t *)(const void *)
				((const char *)h + numbers[i].offset));
}

void exemplar_head_begin(const struct exemplar_head *h, struct json *j)
{
	json_begin(j, '{');
	json_member_string(j, "format", "ncclinsp-exemplar");
	json_member_u64(j, "format_version", 1);
	json_begin_member(j, "exemplar", '{');
	exemplar_head_put(h, j);
	json_end(j, '}');
}

/* ---- reading ------------------------------------------------------------------------ */

static void head_read_text(const json_t *object, const char *key, char *out, size_t size)
{
	const char *text = json_string_value(json_object_get(object, key));

	snprintf(out, size, "%s", text ? text : "");
}

static uint64_t head_read_number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_integer(value) && json_integer_value(value) >= 0 ?
	       (uint64_t)json_integer_value(value) : UNKNOWN_U64;
}

static int32_t head_read_i32(const json_t *object, const char *key)
{
	uint64_t value = head_read_number(object, key);

	return value <= INT32_MAX ? (int32_t)value : UNKNOWN_I32;
}

/* Read a time as json_put_time() writes it; 0: it is none. */
static uint64_t head_read_time(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	struct tm tm = { 0 };
	unsigned ns = 0;
	const char *rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;

	if (!rest || sscanf(rest, ".%9uZ", &ns) != 1)
		return 0;
	return (uint64_t)timegm(&tm) * SECOND_NS + ns;
}

static bool head_read_comm_id(const json_t *object, uint64_t *id)
{
	const char *text = json_string_value(json_object_get(object, "comm_id"));
	unsigned long value;

	if (!text || sscanf(text, "0x%16lx", &value) != 1)
		return false;
	*id = value;
	return true;
}

static bool head_read(struct exemplar_head *h, const json_t *object)
{
	uint64_t uid = head_read_number(object, "uid");

	*h = (struct exemplar_head){
		.uid = (uid_t)uid,
		.at_real_ns = head_read_time(object, "at_at"),
		.rank = head_read_i32(object, "rank"),
		.nranks = head_read_i32(object, "nranks"),
		.pid = head_read_i32(object, "pid"),
	};
	h->has_comm_id = head_read_comm_id(object, &h->comm_id);
	head_read_text(object, "id", h->id, sizeof(h->id));
	head_read_text(object, "reason", h->reason, sizeof(h->reason));
	head_read_text(object, "comm_name", h->comm_name, sizeof(h->comm_name));
	head_read_text(object, "func", h->func, sizeof(h->func));
	for (size_t i = 0; i < NUMBERS; i++)
		*(uint64_t *)(void *)((char *)h + numbers[i].offset) =
			head_read_number(object, numbers[i].name);
	return uid <= UINT32_MAX;
}

bool exemplar_head_read(struct exemplar_head *h, const char *id, const char *text, size_t bytes)
{
	const size_t skip = sizeof(beginning) - 1;
	struct exemplar_head read;
	json_t *object;
	bool good;

	if (bytes <= skip || memcmp(text, beginning, skip))
		return false;
	object = json_loadb(text + skip, bytes - skip, JSON_DISABLE_EOF_CHECK, NULL);
	good = json_is_object(object) && head_read(&read, object) && !strcmp(read.id, id);
	json_decref(object);
	if (good)
		*h = read;
	return good;
}

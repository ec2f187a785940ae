/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are read out of JSON are what jansson finds there; what has another type is unknown. */
#include "rows/read.h"

#include <jansson.h>
#include <stdio.h>

#include "tests/fixture.h"

static json_t *texts;
static char document[1 << 20];
static size_t length;

static void setup(void)
{
	texts = json_object();
}

static void teardown(void)
{
	json_decref(texts);
}

static const char *keep_text(void *arg, const char *text, size_t bytes)
{
	char key[256];

	(void)arg;
	ck_assert_uint_lt(bytes, sizeof(key));
	memcpy(key, text, bytes);
	key[bytes] = '\0';
	if (!json_object_get(texts, key))
		json_object_set_new(texts, key, json_string(key));
	return json_string_value(json_object_get(texts, key));
}

/* ---- a document for a table ------------------------------------------------------------ */

static void put(const char *text)
{
	length += (size_t)snprintf(document + length, sizeof(document) - length, "%s", text);
	ck_assert_uint_lt(length, sizeof(document));
}

static void put_any(void)
{
	static const char *const values[] = {
		"null", "true", "false", "0", "-1", "7", "2147483647", "2147483648", "1.5", "-0.0",
		"1152921504606846977", "9223372036854775807", "\"\"", "\"live\"", "\"0x\"",
		"\"0x12\"", "\"0xffffffffffffffff\"", "\"0x10000000000000000\"", "\"0x1g\"",
		"\"\\u0030x1F\"", "\"a\\n\\ud83d\\ude00\"", "[]", "{}", "[[1], {\"rank\": 2}]",
		"{\"host\": {\"a\": \"b\"}}", "[null, 3, \"x\"]",
	};

	put(values[fx_random() % FX_COUNT(values)]);
}

static void put_object(const struct read_table *table, int depth);

static void put_value(const struct read_field *f, int depth)
{
	uint64_t items = fx_random() % 4;

	if (f->kind == READ_MAP && fx_random() % 4) {
		put("{\"AllReduce\": 7, \"Send\" : null}");
	} else if (f->kind == READ_OBJECT && depth && fx_random() % 4) {
		put_object(f->of, depth - 1);
	} else if (f->kind == READ_LIST && depth && fx_random() % 8) {
		put("[");
		for (uint64_t i = 0; i < items; i++) {
			put(i ? " ,\n" : "");
			if (fx_random() % 8)
				put_object(f->of, depth - 1);
			else
				put_any();
		}
		put("]");
	} else {
		put_any();
	}
}

/* Members in any order, some of them twice, and some that nobody asks for. */
static void put_object(const struct read_table *table, int depth)
{
	uint64_t fields = 0, members;

	while (table->fields[fields].name)
		fields++;
	members = fx_random() % (fields + 3);
	put("{");
	for (uint64_t i = 0; i < members; i++) {
		uint64_t place = fx_random() % 3 ? i : fx_random();
		const struct read_field *f = &table->fields[place % fields];

		put(i ? ", \"" : "\"");
		put(f->name);
		put(fx_random() % 6 ? "\":" : "x\" : ");
		put_value(f, depth);
	}
	put("}");
}

/* ---- what jansson finds ------------------------------------------------------------------ */

static uint64_t number_of(const json_t *value)
{
	json_int_t number = json_integer_value(value);

	if (!json_is_integer(value) || number < 0)
		return UNKNOWN_U64;
	return (uint64_t)number < READ_MOST ? (uint64_t)number : READ_MOST;
}

static uint64_t hex_of(const json_t *value)
{
	const char *text = json_string_value(value);
	size_t digits = text && !strncmp(text, "0x", 2) ? strlen(text + 2) : 0;

	return digits && digits <= 16 && strspn(text + 2, "0123456789abcdefABCDEF") == digits ?
	       strtoull(text, NULL, 16) : UNKNOWN_U64;
}

static void check_row(const struct read_table *table, const void *row, const json_t *wanted);

static void check_list(const struct read_field *f, const void *at, const json_t *value)
{
	const struct { void *at; uint32_t n, room; } *list = at;

	ck_assert_uint_eq(list->n, json_is_array(value) ? json_array_size(value) : 0);
	for (uint32_t i = 0; i < list->n; i++)
		check_row(f->of, (char *)list->at + i * f->of->bytes, json_array_get(value, i));
}

static void check_map(const struct read_numbers *map, const json_t *value)
{
	ck_assert_uint_eq(map->n, json_object_size(value));
	for (uint32_t i = 0; i < map->n; i++)
		ck_assert_uint_eq(map->at[i].number,
				  number_of(json_object_get(value, map->at[i].name)));
}

static void check_text(const struct scan_text *text, const json_t *value)
{
	json_t *own = text->at ? json_loadb(text->at, text->bytes, JSON_DECODE_ANY, NULL) : NULL;

	ck_assert(json_equal(own, value) || (!own && !value));
	json_decref(own);
}

static void check_field(const struct read_field *f, const void *at, const json_t *value)
{
	uint64_t number = number_of(value);

	if (f->kind == READ_U64)
		ck_assert_uint_eq(*(const uint64_t *)at, number);
	else if (f->kind == READ_I32)
		ck_assert_int_eq(*(const int32_t *)at,
				 number <= INT32_MAX ? (int32_t)number : UNKNOWN_I32);
	else if (f->kind == READ_BOOL)
		ck_assert_int_eq(*(const bool *)at, json_is_true(value));
	else if (f->kind == READ_TEXT)
		ck_assert_pstr_eq(*(const char *const *)at, json_string_value(value));
	else if (f->kind == READ_HEX)
		ck_assert_uint_eq(*(const uint64_t *)at, hex_of(value));
	else if (f->kind == READ_MAP)
		check_map(at, value);
	else if (f->kind == READ_OBJECT)
		check_row(f->of, at, value);
	else if (f->kind == READ_LIST)
		check_list(f, at, value);
	else
		check_text(at, value);
}

static void check_row(const struct read_table *table, const void *row, const json_t *wanted)
{
	for (const struct read_field *f = table->fields; f->name; f++)
		check_field(f, (const char *)row + f->offset, json_object_get(wanted, f->name));
}

TEST(random_rows_are_what_jansson_reads)
{
	for (int i = 0; i < 3000; i++) {
		struct reader_of_rows r = { .text = keep_text };
		struct snapshot_read row;
		json_t *wanted;

		length = 0;
		put_object(&snapshot_reads, 3);
		wanted = json_loadb(document, length, 0, NULL);
		ck_assert_msg(wanted, "%s", document);
		scan_init(&r.scan, document, length);
		ck_assert_msg(read_row(&r, &snapshot_reads, &row) && scan_end(&r.scan), "%s: %s",
			      document, r.scan.error);
		check_row(&snapshot_reads, &row, wanted);
		read_row_deinit(&snapshot_reads, &row);
		scan_deinit(&r.scan);
		json_decref(wanted);
	}
}

TEST(a_damaged_row_is_refused_and_leaves_nothing_behind)
{
	for (int i = 0; i < 3000; i++) {
		struct reader_of_rows r = { .text = keep_text };
		struct snapshot_read row;

		length = 0;
		put_object(&snapshot_reads, 3);
		length = fx_random() % length;
		document[length] = '\0';
		scan_init(&r.scan, document, length);
		ck_assert(!read_row(&r, &snapshot_reads, &row) || !scan_end(&r.scan));
		ck_assert_ptr_nonnull(r.scan.error);
		ck_assert_uint_le((size_t)(r.scan.at - document), length);
		read_row_deinit(&snapshot_reads, &row);
		scan_deinit(&r.scan);
	}
}

int main(void)
{
	fx_seed_anew();
	return fx_run(setup, teardown);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes inputs that are JSON, or lines of it, as JSON: bytes changed at random hardly ever
 * are any.  A value becomes another one, of another kind, one from elsewhere, or goes.  What
 * stands before the first brace of an input is the target's own, and left to libFuzzer.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

#define NODES	4096

/* A value and where it is. */
struct node {
	json_t *parent, *value;
	const char *key;	/* NULL: it is in an array, at `index` */
	size_t index;
};

static struct node nodes[NODES];
static size_t count;

static const char *const texts[] = {
	"", "-", "?", "x", "\x1b[2J", "a\xe2\x80\xae" "b", "=1+1", "%s%n", "0x1", "live", "died",
	"0xffffffffffffffff", "2026-11-22T03:12:00.000000001Z", "kernel_gpu", "AllReduce",
	"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
	"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
};

static const json_int_t numbers[] = {
	0, 1, -1, 2, 7, 255, 65536, INT32_MAX, UINT32_MAX, 1000000000, INT64_MAX, INT64_MIN,
};

static void collect(json_t *value)
{
	const char *key;
	json_t *member;
	size_t i;

	json_object_foreach(value, key, member) {
		if (count < NODES)
			nodes[count++] = (struct node){ value, member, key, 0 };
		collect(member);
	}
	json_array_foreach(value, i, member) {
		if (count < NODES)
			nodes[count++] = (struct node){ value, member, NULL, i };
		collect(member);
	}
}

static json_t *other_value(const struct node *n, unsigned *seed)
{
	unsigned what = (unsigned)rand_r(seed);

	switch (what / 8 % 8) {
	case 0:
		return json_integer(numbers[what / 64 % (sizeof(numbers) / sizeof(numbers[0]))]);
	case 1:
		return json_string(texts[what / 64 % (sizeof(texts) / sizeof(texts[0]))]);
	case 2:
		return what & 64 ? json_real(what & 128 ? 1e300 : -0.5) : json_null();
	case 3:
		return json_boolean(what & 64);
	case 4:
		return what & 64 ? json_array() : json_object();
	case 5:
		return json_integer((json_int_t)((uint64_t)json_integer_value(n->value) +
						 (what & 64 ? 1u : UINT64_MAX)));
	default:
		return json_deep_copy(nodes[what / 64 % count].value);
	}
}

static void edit(json_t *root, unsigned *seed)
{
	const struct node *n;

	count = 0;
	collect(root);
	if (!count)
		return;
	n = &nodes[(size_t)rand_r(seed) % count];
	if (!n->key && rand_r(seed) % 4 == 0)
		json_array_append_new(n->parent, json_deep_copy(n->value));
	else if (n->key && rand_r(seed) % 8 == 0)
		json_object_del(n->parent, n->key);
	else if (n->key)
		json_object_set_new(n->parent, n->key, other_value(n, seed));
	else if (rand_r(seed) % 4 == 0)
		json_array_remove(n->parent, n->index);
	else
		json_array_set_new(n->parent, n->index, other_value(n, seed));
}

/* What the line [*at, *end) is changed to (malloc'ed), or NULL: it is no JSON. */
static char *edit_line(const char *at, const char *end, unsigned *seed)
{
	json_t *root = json_loadb(at, (size_t)(end - at), JSON_ALLOW_NUL, NULL);
	char *text;

	if (!root)
		return NULL;
	for (int n = 1 + rand_r(seed) % 3; n > 0; n--)
		edit(root, seed);
	text = json_dumps(root, JSON_COMPACT);
	json_decref(root);
	return text;
}

/* One of the lines from `at` on. */
static void choose_line(const char **at, const char **end, unsigned *seed)
{
	const char *line = *at, *stop = *end, *next;
	int lines = 0;

	for (; line < stop; line = next + 1) {
		next = memchr(line, '\n', (size_t)(stop - line)) ?: stop;
		if (next > line && rand_r(seed) % ++lines == 0) {
			*at = line;
			*end = next;
		}
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	const char *begin = memchr(data, '{', size), *at, *stop = (char *)data + size, *end = stop;
	size_t before, behind, bytes;
	char *text = NULL;

	at = begin;
	if (begin && rand_r(&seed) % 8) {
		choose_line(&at, &end, &seed);
		text = edit_line(at, end, &seed);
	}
	if (!text)
		return LLVMFuzzerMutate(data, size, max);
	bytes = strlen(text);
	before = (size_t)(at - (char *)data);
	behind = (size_t)(stop - end);
	if (before + bytes + behind <= max) {
		memmove(data + before + bytes, end, behind);
		memcpy(data + before, text, bytes);
		size = before + bytes + behind;
	}
	free(text);
	return size;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of pickles, as far as plain data goes: a machine with a stack, and a memo of values
 * that are named again.  The file may be a stranger's, so each opcode that is not in the table is
 * refused, and depth and memory are bounded.
 *
 * Invariant: no value contains itself.  One that was named again is not added to any more.
 */
#include "cli/base/pickle.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "cli/base/must.h"
#include "util/list.h"

#define DEPTH_MOST	32
#define MEMORY_MOST	((size_t)512 << 20)
#define TEXT_MOST	(1u << 20)	/* bytes of a text */
#define VALUE_BYTES	256		/* memory of a dictionary or a list: what jansson takes */
#define ITEM_BYTES	128		/* memory of a member */
#define PUSH_BYTES	48		/* memory of a place on the stack or in the memo */
#define ABOVE_MARK	UINT64_MAX

struct pickle_value {
	json_t *json;
	uint32_t depth;
	uint32_t memo;		/* its place there, from 1; 0: none */
};

struct pickle_memo {
	json_t *json;
	uint32_t depth;
	bool named;
};

struct pickle {
	const uint8_t *at, *end;
	LIST(struct pickle_value) stack;
	LIST(uint32_t) marks;	/* places on the stack */
	LIST(struct pickle_memo) memo;
	size_t memory;
	bool stopped;
	const char *why;
};

static bool pickle_fail(struct pickle *p, const char *why)
{
	p->why = p->why ?: why;
	return false;
}

static bool pickle_spend(struct pickle *p, size_t bytes)
{
	if (bytes > MEMORY_MOST - p->memory)
		return pickle_fail(p, "it needs too much memory");
	p->memory += bytes;
	return true;
}

/* ---- the stack --------------------------------------------------------------------- */

/* The value becomes the stack's. */
static bool pickle_push(struct pickle *p, json_t *json, uint32_t depth, size_t bytes)
{
	if (!pickle_spend(p, PUSH_BYTES + bytes)) {
		json_decref(json);
		return false;
	}
	*(struct pickle_value *)must(list_append(&p->stack)) =
		(struct pickle_value){ must(json), depth, 0 };
	return true;
}

/*
 * The first of the `n` newest values, none of which lies below a mark; ABOVE_MARK: of those above
 * the newest mark, which goes.
 */
static bool pickle_top(struct pickle *p, uint64_t n, uint32_t *first)
{
	uint32_t mark = p->marks.n ? p->marks.at[p->marks.n - 1] : 0;

	if (n == ABOVE_MARK ? !p->marks.n : p->stack.n - mark < n)
		return pickle_fail(p, "a mark or a value is missing");
	*first = n == ABOVE_MARK ? mark : p->stack.n - (uint32_t)n;
	p->marks.n -= n == ABOVE_MARK;
	return true;
}

static void pickle_drop(struct pickle *p, uint32_t first)
{
	while (p->stack.n > first)
		json_decref(p->stack.at[--p->stack.n].json);
}

/* ---- opcodes, with their numbers -------------------------------------------------------- */

/* The list or dictionary below the values from `first` on, to which they are to be added. */
static struct pickle_value *pickle_container(struct pickle *p, uint32_t first, json_type type)
{
	struct pickle_value *v = first ? &p->stack.at[first - 1] : NULL;

	if (!v || json_typeof(v->json) != type ||
	    (p->marks.n && p->marks.at[p->marks.n - 1] >= first)) {
		pickle_fail(p, "items without their list or dictionary");
		return NULL;
	}
	if (v->memo && p->memo.at[v->memo - 1].named) {
		pickle_fail(p, "a value that contains itself");
		return NULL;
	}
	return v;
}

static bool value_deepen(struct pickle *p, struct pickle_value *v, uint32_t depth)
{
	if (depth + 1 > v->depth)
		v->depth = depth + 1;
	if (v->depth > DEPTH_MOST)
		return pickle_fail(p, "too deep");
	if (v->memo)
		p->memo.at[v->memo - 1].depth = v->depth;
	return true;
}

/* Adds values to a list, or keys and values, by turns, to a dictionary. */
static bool pickle_add(struct pickle *p, uint64_t n, json_type type)
{
	uint32_t first, step = type == JSON_OBJECT ? 2 : 1;
	struct pickle_value *to;

	if (!pickle_top(p, n, &first))
		return false;
	to = pickle_container(p, first, type);
	if (to && (p->stack.n - first) % step)
		return pickle_fail(p, "a key without its value");
	for (uint32_t i = first; to && i < p->stack.n; i += step) {
		json_t *key = p->stack.at[i].json, *value = p->stack.at[i + step - 1].json;

		if (step == 2 && !json_is_string(key))
			return pickle_fail(p, "a key that is no text");
		if (!pickle_spend(p, ITEM_BYTES + (step - 1) * json_string_length(key)) ||
		    !value_deepen(p, to, p->stack.at[i + step - 1].depth))
			return false;
		if (step == 2)
			json_object_set_nocheck(to->json, json_string_value(key), value);
		else
			json_array_append(to->json, value);
	}
	pickle_drop(p, first);
	return to;
}

static bool op_append(struct pickle *p, uint64_t n)
{
	return pickle_add(p, n, JSON_ARRAY);
}

static bool op_set(struct pickle *p, uint64_t n)
{
	return pickle_add(p, n, JSON_OBJECT);
}

static bool op_tuple(struct pickle *p, uint64_t n)
{
	uint32_t first, depth = 0;
	json_t *array;

	if (!pickle_top(p, n, &first))
		return false;
	array = json_array();
	for (uint32_t i = first; i < p->stack.n; i++) {
		depth = p->stack.at[i].depth > depth ? p->stack.at[i].depth : depth;
		if (depth >= DEPTH_MOST || !pickle_spend(p, ITEM_BYTES) ||
		    json_array_append(array, p->stack.at[i].json)) {
			json_decref(array);
			return pickle_fail(p, "too deep");
		}
	}
	pickle_drop(p, first);
	return pickle_push(p, array, depth + 1, VALUE_BYTES);
}

static bool op_proto(struct pickle *p, uint64_t n)
{
	return (n >= 2 && n <= 5) || pickle_fail(p, "a protocol other than 2 to 5");
}

static bool op_frame(struct pickle *p, uint64_t n)
{
	return n <= (size_t)(p->end - p->at) || pickle_fail(p, "truncated");
}

static bool op_stop(struct pickle *p, uint64_t n)
{
	p->stopped = true;
	return (p->stack.n == 1 && !p->marks.n) || pickle_fail(p, "it does not end in one value");
}

static bool op_mark(struct pickle *p, uint64_t n)
{
	if (!pickle_spend(p, PUSH_BYTES))
		return false;
	*(uint32_t *)must(list_append(&p->marks)) = p->stack.n;
	return true;
}

static bool op_none(struct pickle *p, uint64_t n)
{
	return pickle_push(p, json_null(), 0, 0);
}

static bool op_bool(struct pickle *p, uint64_t n)
{
	return pickle_push(p, json_boolean(n), 0, 0);
}

static bool op_int(struct pickle *p, uint64_t n)
{
	return pickle_push(p, json_integer((json_int_t)n), 0, VALUE_BYTES / 4);
}

static bool op_int4(struct pickle *p, uint64_t n)
{
	return op_int(p, (uint64_t)(int64_t)(int32_t)n);
}

/* `n` bytes of a number, the lowest first, with its sign. */
static bool op_long(struct pickle *p, uint64_t n)
{
	uint64_t number = 0;

	if (n > 8)
		return pickle_fail(p, "a number of more than 64 bits");
	if (n > (size_t)(p->end - p->at))
		return pickle_fail(p, "truncated");
	for (uint64_t i = 0; i < n; i++)
		number |= (uint64_t)p->at[i] << (8 * i);
	if (n && n < 8 && p->at[n - 1] & 0x80)
		number |= UINT64_MAX << (8 * n);
	p->at += n;
	return op_int(p, number);
}

/* The highest byte comes first.  One that JSON has not is None. */
static bool op_float(struct pickle *p, uint64_t n)
{
	double real;

	n = __builtin_bswap64(n);
	memcpy(&real, &n, sizeof(real));
	return pickle_push(p, json_real(real) ?: json_null(), 0, VALUE_BYTES / 4);
}

static bool op_text(struct pickle *p, uint64_t n)
{
	const char *text = (const char *)p->at;

	if (n > (size_t)(p->end - p->at))
		return pickle_fail(p, "truncated");
	if (n > TEXT_MOST)
		return pickle_fail(p, "a text of more than 1 MiB");
	p->at += n;
	return pickle_push(p, json_stringn_nocheck(text, n), 0, VALUE_BYTES / 2 + n);
}

static bool op_list(struct pickle *p, uint64_t n)
{
	return pickle_push(p, json_array(), 1, VALUE_BYTES);
}

static bool op_dict(struct pickle *p, uint64_t n)
{
	return pickle_push(p, json_object(), 1, 2 * VALUE_BYTES);
}

/* All that write pickles number the memo's places in their order. */
static bool op_put(struct pickle *p, uint64_t n)
{
	struct pickle_value *v;
	uint32_t first;

	if (!pickle_top(p, 1, &first))
		return false;
	v = &p->stack.at[first];
	if (n != p->memo.n || v->memo)
		return pickle_fail(p, "a memo out of order");
	if (!pickle_spend(p, PUSH_BYTES))
		return false;
	*(struct pickle_memo *)must(list_append(&p->memo)) =
		(struct pickle_memo){ json_incref(v->json), v->depth, false };
	v->memo = p->memo.n;
	return true;
}

static bool op_memoize(struct pickle *p, uint64_t n)
{
	return op_put(p, p->memo.n);
}

static bool op_get(struct pickle *p, uint64_t n)
{
	struct pickle_memo *memo = n < p->memo.n ? &p->memo.at[n] : NULL;

	if (!memo)
		return pickle_fail(p, "a name that the memo has not");
	memo->named = true;
	if (!pickle_push(p, json_incref(memo->json), memo->depth, 0))
		return false;
	p->stack.at[p->stack.n - 1].memo = (uint32_t)n + 1;
	return true;
}

/* An opcode: its number is in that many bytes behind it, or always the same. */
static const struct pickle_opcode {
	bool (*run)(struct pickle *p, uint64_t number);
	uint8_t bytes;
	uint64_t number;
} opcodes[256] = {
	[0x80] = { op_proto, 1, 0 },
	[0x95] = { op_frame, 8, 0 },
	['.'] = { op_stop, 0, 0 },
	['('] = { op_mark, 0, 0 },
	['N'] = { op_none, 0, 0 },
	[0x88] = { op_bool, 0, true },
	[0x89] = { op_bool, 0, false },
	['K'] = { op_int, 1, 0 },
	['M'] = { op_int, 2, 0 },
	['J'] = { op_int4, 4, 0 },
	[0x8a] = { op_long, 1, 0 },
	['G'] = { op_float, 8, 0 },
	[0x8c] = { op_text, 1, 0 },
	['X'] = { op_text, 4, 0 },
	[']'] = { op_list, 0, 0 },
	['}'] = { op_dict, 0, 0 },
	[')'] = { op_tuple, 0, 0 },
	[0x85] = { op_tuple, 0, 1 },
	[0x86] = { op_tuple, 0, 2 },
	[0x87] = { op_tuple, 0, 3 },
	['t'] = { op_tuple, 0, ABOVE_MARK },
	['a'] = { op_append, 0, 1 },
	['e'] = { op_append, 0, ABOVE_MARK },
	['s'] = { op_set, 0, 2 },
	['u'] = { op_set, 0, ABOVE_MARK },
	['q'] = { op_put, 1, 0 },
	['r'] = { op_put, 4, 0 },
	[0x94] = { op_memoize, 0, 0 },
	['h'] = { op_get, 1, 0 },
	['j'] = { op_get, 4, 0 },
};

static bool pickle_step(struct pickle *p)
{
	const struct pickle_opcode *op;
	uint64_t number;

	if (p->at == p->end)
		return pickle_fail(p, "truncated");
	op = &opcodes[*p->at];
	if (!op->run)
		return pickle_fail(p, "more than plain data: an opcode that could run code, or is "
				   "not known");
	if (op->bytes >= p->end - p->at)
		return pickle_fail(p, "truncated");
	number = op->number;
	for (int i = op->bytes; i > 0; i--)
		number = number << 8 | p->at[i];
	p->at += op->bytes + 1;
	return op->run(p, number);
}

json_t *pickle_read(const void *bytes, size_t n, const char **why, size_t *at)
{
	struct pickle p = { .at = bytes, .end = (const uint8_t *)bytes + n };
	const uint8_t *step = bytes;
	json_t *root = NULL;

	while (!p.stopped && pickle_step(&p))
		step = p.at;
	if (!p.why)
		root = json_incref(p.stack.at[0].json);
	*why = p.why;
	*at = (size_t)(step - (const uint8_t *)bytes);
	pickle_drop(&p, 0);
	list_deinit(&p.stack);
	list_deinit(&p.marks);
	while (p.memo.n)
		json_decref(p.memo.at[--p.memo.n].json);
	list_deinit(&p.memo);
	return root;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Pickles: plain data is read as Python reads it, and nothing else is. */
#include <string.h>

#include "cli/base/pickle.h"
#include "tests/fixture.h"

#define P2 "\x80\x02"

/* As JSON, with sorted keys; or why not. */
static const char *take(const char *bytes, size_t n)
{
	static char text[512];
	const char *why;
	size_t at;
	json_t *root = pickle_read(bytes, n, &why, &at);
	char *dump = root ? json_dumps(root, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS) :
			    NULL;

	snprintf(text, sizeof(text), "%s", dump ?: why);
	free(dump);
	json_decref(root);
	return text;
}

#define TAKE(bytes) take(bytes, sizeof(bytes) - 1)

TEST(plain_data_is_read)
{
	static const struct {
		const char *bytes;
		size_t n;
		const char *json;
	} cases[] = {
#define CASE(bytes, json) { P2 bytes ".", sizeof(P2 bytes "."), json }
		CASE("N", "null"), CASE("\x88", "true"), CASE("\x89", "false"),
		CASE("K\xff", "255"), CASE("M\x00\x01", "256"), CASE("J\xfe\xff\xff\xff", "-2"),
		CASE("\x8a\x00", "0"), CASE("\x8a\x01\xff", "-1"),
		CASE("\x8a\x08\x00\x00\x9a\x14\x82\xac\xec\x18", "1796000026105348096"),
		CASE("G\x3f\xd0\x00\x00\x00\x00\x00\x00", "0.25"),
		CASE("G\x7f\xf8\x00\x00\x00\x00\x00\x00", "null"),
		CASE("X\x02\x00\x00\x00" "ab", "\"ab\""), CASE("\x8c\x01" "a", "\"a\""),
		CASE("]", "[]"), CASE("](K\x01K\x02" "e", "[1,2]"), CASE("]K\x01" "a", "[1]"),
		CASE(")", "[]"), CASE("K\x01\x85", "[1]"), CASE("K\x01K\x02\x86", "[1,2]"),
		CASE("K\x01K\x02K\x03\x87", "[1,2,3]"), CASE("(K\x01K\x02K\x03K\x04t", "[1,2,3,4]"),
		CASE("}X\x01\x00\x00\x00" "aK\x01s", "{\"a\":1}"),
		CASE("}(X\x01\x00\x00\x00" "aK\x01X\x01\x00\x00\x00" "b]u", "{\"a\":1,\"b\":[]}"),
		CASE("](]q\x00h\x00h\x00" "e", "[[],[],[]]"),
		CASE("]\x94(K\x01\x94j\x01\x00\x00\x00" "e", "[1,1]"),
		CASE("](]r\x00\x00\x00\x00K\x07" "ah\x00" "e", "[[7],[7]]"),
#undef CASE
	};

	for (int i = 0; i < FX_COUNT(cases); i++)
		ck_assert_str_eq(take(cases[i].bytes, cases[i].n - 1), cases[i].json);
}

TEST(what_could_run_code_is_refused)
{
	static const char refused[] = "cRibBpPQo\x81\x82\x83\x84\x92\x93\x97\x98";
	char bytes[] = P2 "]?" "os\nsystem\n(K\x01tR.";

	for (const char *op = refused; *op; op++) {
		bytes[3] = *op;
		ck_assert_str_eq(take(bytes, sizeof(bytes) - 1),
				 "more than plain data: an opcode that could run code, or is not "
				 "known");
	}
}

/* All opcodes but those that have a test above. */
TEST(an_unknown_opcode_is_refused)
{
	static const char known[] = "\x80\x95.(N\x88\x89KMJ\x8aG\x8cX]})\x85\x86\x87taesuqr\x94hj";
	int unknown = 0;

	for (int op = 0; op < 256; op++) {
		const char bytes[] = { '\x80', 2, (char)op, 0, 0, 0, 0, 0, 0, 0, 0, '.' };

		if (op && strchr(known, op))
			continue;
		unknown++;
		ck_assert_ptr_nonnull(strstr(take(bytes, sizeof(bytes)), "more than plain data"));
	}
	ck_assert_int_eq(unknown, 256 - (int)strlen(known));
}

TEST(a_broken_one_is_refused)
{
	static const char whole[] = P2 "}q\x00(X\x01\x00\x00\x00" "aq\x01(K\x01K\x02tq\x02u.";

	for (size_t n = 0; n < sizeof(whole) - 1; n++)
		ck_assert_str_eq(take(whole, n), "truncated");
	ck_assert_str_eq(TAKE(whole), "{\"a\":[1,2]}");
	ck_assert_str_eq(TAKE("\x80\x01N."), "a protocol other than 2 to 5");
	ck_assert_str_eq(TAKE("\x80\x06N."), "a protocol other than 2 to 5");
	ck_assert_str_eq(TAKE(P2 "."), "it does not end in one value");
	ck_assert_str_eq(TAKE(P2 "NN."), "it does not end in one value");
	ck_assert_str_eq(TAKE(P2 "N(."), "it does not end in one value");
	ck_assert_str_eq(TAKE(P2 "t."), "a mark or a value is missing");
	ck_assert_str_eq(TAKE(P2 "(\x85."), "a mark or a value is missing");
	ck_assert_str_eq(TAKE(P2 "](N\x86."), "a mark or a value is missing");
	ck_assert_str_eq(TAKE(P2 "(Ne."), "items without their list or dictionary");
	ck_assert_str_eq(TAKE(P2 "](Nae."), "items without their list or dictionary");
	ck_assert_str_eq(TAKE(P2 "}Na."), "items without their list or dictionary");
	ck_assert_str_eq(TAKE(P2 "}(K\x01K\x01u."), "a key that is no text");
	ck_assert_str_eq(TAKE(P2 "}(Nu."), "a key without its value");
	ck_assert_str_eq(TAKE(P2 "Nq\x01."), "a memo out of order");
	ck_assert_str_eq(TAKE(P2 "Nr\xff\xff\xff\xff."), "a memo out of order");
	ck_assert_str_eq(TAKE(P2 "h\x00."), "a name that the memo has not");
	ck_assert_str_eq(TAKE(P2 "X\xff\xff\xff\xff" "a."), "truncated");
	ck_assert_str_eq(TAKE(P2 "\x8a\x09" "123456789."), "a number of more than 64 bits");
	ck_assert_str_eq(TAKE("\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xffN."), "truncated");
}

TEST(nothing_contains_itself)
{
	static const char why[] = "a value that contains itself";

	ck_assert_str_eq(TAKE(P2 "]q\x00h\x00" "a."), why);
	ck_assert_str_eq(TAKE(P2 "]q\x00]h\x00" "aa."), why);
	ck_assert_str_eq(TAKE(P2 "}q\x00X\x01\x00\x00\x00" "ah\x00s."), why);
	ck_assert_str_eq(TAKE(P2 "]q\x00(h\x00N\x86" "e."), why);
	ck_assert_str_eq(TAKE(P2 "]q\x00q\x01h\x00" "a."), "a memo out of order");
}

/* `n` times an opcode. */
static const char *take_many(const char *head, char op, const char *tail, size_t n)
{
	size_t before = strlen(head), behind = strlen(tail);
	char *bytes = malloc(before + n + behind + 1);
	const char *got;

	ck_assert_ptr_nonnull(bytes);
	memcpy(bytes, head, before);
	memset(bytes + before, op, n);
	memcpy(bytes + before + n, tail, behind + 1);
	got = take(bytes, before + n + behind);
	free(bytes);
	return got;
}

TEST(depth_and_memory_are_bounded)
{
	ck_assert_str_eq(take_many(P2 "N", '\x85', ".", 1000000), "too deep");
	ck_assert_str_eq(take_many(P2, ']', "N.", 10000000), "it needs too much memory");
	ck_assert_str_eq(take_many(P2, 'N', ".", 20000000), "it needs too much memory");
	ck_assert_str_eq(take_many(P2, '(', ".", 20000000), "it needs too much memory");
	ck_assert_int_eq(strncmp(take_many(P2 "N", '\x85', ".", 32), "[[[[", 4), 0);
	ck_assert_str_eq(take_many(P2 "N", '\x85', ".", 33), "too deep");
}

/* Each list has the one before it from the memo, and enters it after that, or before. */
TEST(depth_counts_what_is_named)
{
	for (int before = 0; before < 2; before++) {
		char bytes[400] = P2 "]q";
		size_t n = 5;

		for (char i = 0; i < 40; i++) {
			const char next[2][6] = {
				{ ']', 'h', i, 'a', 'q', (char)(i + 1) },
				{ ']', 'q', (char)(i + 1), 'h', i, 'a' },
			};

			memcpy(bytes + n, next[before], sizeof(next[before]));
			n += sizeof(next[before]);
		}
		ck_assert_str_eq(take(bytes, n), "too deep");
	}
}

int main(void)
{
	return fx_run(NULL, NULL);
}

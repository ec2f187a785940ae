/* SPDX-License-Identifier: Apache-2.0 */
/* The parameter `fields`: what is asked for comes, as it is in the whole answer, and no more. */
#include <check.h>

#include "tests/fixture_serve.h"

static const struct {
	const char *target, *array;
	const char *inside;	/* the member whose own members may be asked for; NULL: none */
} lists[] = {
	{ "/v1/processes", "processes", NULL },
	{ "/v1/comms", "comms", "local_ranks" },
	{ "/v1/collectives", "collectives", NULL },
	{ "/v1/summary?by=comm,rank,func,algo,proto,size,peer,tag,phase", "rows", NULL },
	{ "/v1/summary?by=func", "rows", NULL },
	{ "/v1/ranks", "ranks", NULL },
	{ "/v1/peers", "peers", NULL },
	{ "/v1/inflight", "inflight", NULL },
	{ "/v1/findings", "findings", NULL },
};

static void add_op(const struct process *p)
{
	const struct op op = {
		.process_id = p->id, .pid = p->pid, .has_comm_id = true, .comm_id = FX_COMM_ID,
		.comm_name = "dp", .rank = 3, .nranks = 8, .token = 7, .func = FX_FUNC,
		.bytes = 4096, .root = UNKNOWN_I32, .peer = UNKNOWN_I32, .algo = "RING",
		.proto = "LL", .complete = true, .sampled = true, .enqueued_ns = FX_START_NS,
		.exec_ns = 2000000, .source = TIMING_KERNEL_GPU, .done_ns = FX_START_NS + 1,
	};

	oplog_add(fx.oplog, &op);
	aggregate_add(fx.aggregate, &op, fx.now_ns);
}

static void add_link(const struct process *p)
{
	struct nci_ev_proxy_op op = { .form = NCI_FORM_SEND, .rank = 3, .peer = 4, .bytes = 99 };
	const struct transfers t = { .issuer = p, .executor = p, .comm_name = "dp", .op = &op };

	links_add(fx.links, &t, fx.now_ns);
}

/* One row, at least, in each list. */
static void setup(void)
{
	struct process *live, *dead;

	fx_serve_open(NULL);
	live = fx_process(10, 0, 3);
	dead = fx_process(11, 0, 4);
	add_op(live);
	add_link(live);
	fx_post(live, 41, 0x5001, 1000);
	dead->state = PROCESS_DIED;
	dead->ended_ns = fx.now_ns;
	diagnose_ended(fx.diagnose, dead, fx.now_ns);
	fx_pass(FX_SECOND);
	diagnose_look(fx.diagnose, fx.now_ns);
}

static void target_of(int i, const char *fields, char target[4096])
{
	const char *path = lists[i].target;

	snprintf(target, 4096, "%s%sfields=%s", path, strchr(path, '?') ? "&" : "?", fields);
}

/* The rows for a list of fields; NULL: all.  A new reference. */
static json_t *rows_of(int i, const char *fields)
{
	char target[4096];
	json_t *a, *rows;

	if (fields)
		target_of(i, fields, target);
	a = fx_get(fields ? target : lists[i].target, 200);
	rows = json_incref(fx_at(a, lists[i].array));
	ck_assert_msg(json_array_size(rows), "%s has no row", lists[i].target);
	json_decref(a);
	return rows;
}

/* What is left of an object with nothing but one member; a new reference. */
static json_t *pick(json_t *object, const char *key)
{
	json_t *picked = json_object();

	json_object_set(picked, key, json_object_get(object, key));
	return picked;
}

/* Those of whole rows, with one member each; or with one member of those inside. */
static json_t *expected(json_t *whole, const char *inside, const char *key)
{
	json_t *rows = json_array(), *row, *one;
	size_t i, k;

	json_array_foreach(whole, i, row) {
		json_t *ranks = json_array();

		if (!inside) {
			json_array_append_new(rows, pick(row, key));
			json_decref(ranks);
			continue;
		}
		json_array_foreach(json_object_get(row, inside), k, one)
			json_array_append_new(ranks, pick(one, key));
		json_array_append_new(rows, json_pack("{s:o}", inside, ranks));
	}
	return rows;
}

static void check_one(int i, json_t *whole, const char *inside, const char *key)
{
	json_t *wanted = expected(whole, inside, key), *rows;
	char name[256];

	snprintf(name, sizeof(name), "%s%s%s", inside ? inside : "", inside ? "." : "", key);
	rows = rows_of(i, name);
	ck_assert_msg(json_equal(rows, wanted), "%s of %s: %s", name, lists[i].target,
		      json_dumps(rows, 0));
	json_decref(rows);
	json_decref(wanted);
}

TEST_LOOP(a_field_comes_alone_and_as_it_is_in_the_whole, 0, FX_COUNT(lists))
{
	json_t *whole = rows_of(_i, NULL), *value;
	const char *key;

	json_object_foreach(json_array_get(whole, 0), key, value)
		check_one(_i, whole, NULL, key);
	if (lists[_i].inside)
		json_object_foreach(json_array_get(json_object_get(json_array_get(whole, 0),
								   lists[_i].inside), 0),
				    key, value)
			check_one(_i, whole, lists[_i].inside, key);
	json_decref(whole);
}

TEST_LOOP(all_fields_are_the_whole, 0, FX_COUNT(lists))
{
	json_t *whole = rows_of(_i, NULL), *rows, *value;
	char fields[4096] = "";
	const char *key;

	json_object_foreach(json_array_get(whole, 0), key, value)
		snprintf(fields + strlen(fields), sizeof(fields) - strlen(fields), "%s%s",
			 *fields ? "," : "", key);
	rows = rows_of(_i, fields);
	ck_assert(json_equal(rows, whole));
	json_decref(rows);
	json_decref(whole);
}

TEST_LOOP(a_field_that_is_none_is_refused_with_those_that_there_are, 0, FX_COUNT(lists))
{
	char target[4096];
	json_t *whole = rows_of(_i, NULL), *a, *value;
	const char *message, *key;

	target_of(_i, "comms_,x", target);
	a = fx_get(target, 400);
	message = fx_text(a, "error.message");
	ck_assert_msg(strstr(message, "unknown field 'comms_' in 'fields'; known: "), "%s",
		      message);
	json_object_foreach(json_array_get(whole, 0), key, value)
		ck_assert_msg(strstr(message, key), "no %s in: %s", key, message);
	json_decref(a);
	json_decref(whole);
}

static const struct {
	const char *target, *part;
} bad[] = {
	{ "/v1/processes?fields=", "bad value '' of 'fields'" },
	{ "/v1/processes?fields", "bad value '' of 'fields'" },
	{ "/v1/processes?fields=pid,", "unknown field ''" },
	{ "/v1/processes?fields=,pid", "unknown field ''" },
	{ "/v1/processes?fields=pi", "unknown field 'pi'" },
	{ "/v1/processes?fields=first_seen", "first_seen_at, first_seen_mono_ns" },
	{ "/v1/processes?fields=pid&fields=uid", "given twice" },
	{ "/v1/comms?fields=local_ranks.", "unknown field 'local_ranks.'" },
	{ "/v1/comms?fields=rank", "local_ranks.rank" },
	{ "/v1/findings?fields=finding", "known: kind, id, " },
	{ "/v1/status?fields=version", "unknown parameter 'fields'" },
	{ "/v1/stream?fields=pid", "unknown parameter 'fields'" },
};

TEST_LOOP(what_makes_no_sense_is_refused, 0, FX_COUNT(bad))
{
	json_t *a = fx_get(bad[_i].target, 400);

	ck_assert_msg(strstr(fx_text(a, "error.message"), bad[_i].part), "%s: %s", bad[_i].target,
		      fx_text(a, "error.message"));
	json_decref(a);
}

/* A key that was not asked for with `by` is in no row, whoever names it. */
TEST(a_key_that_rows_do_not_have_stays_out)
{
	json_t *a = fx_get("/v1/summary?by=func&fields=rank,ops", 200);

	ck_assert_uint_eq(fx_number(a, "rows.0.ops"), 1);
	ck_assert_uint_eq(json_object_size(fx_at(a, "rows.0")), 1);
	json_decref(a);
}

/* As many ranks as there are come, whatever is wanted of each. */
TEST(what_is_beside_the_rows_stays)
{
	json_t *a = fx_get("/v1/findings?fields=id", 200);

	ck_assert_uint_eq(fx_number(a, "refused"), 0);
	ck_assert_uint_eq(fx_number(a, "findings.0.id"), 1);
	json_decref(a);
	a = fx_get("/v1/comms?fields=name,local_ranks.pid", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "comms.0.local_ranks")), 2);
	ck_assert_uint_eq(fx_number(a, "comms.0.local_ranks.1.pid"), 11);
	ck_assert_uint_eq(json_object_size(fx_at(a, "comms.0.local_ranks.1")), 1);
	json_decref(a);
}

int main(void)
{
	return fx_run(setup, fx_serve_close);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of a job share what timing their kernels costs; other users' jobs have no part in it. */
#include "ncclinspd/levels/steer.h"

#include <stdio.h>
#include <string.h>

#include "reader/base/pool.h"
#include "tests/fixture.h"
#include "util/log.h"

#define SECOND	UINT64_C(1000000000)
#define ADA	1000
#define BO	1001

static struct steer *st;
static struct process p[3];
static struct process *list[3] = { &p[0], &p[1], &p[2] };

static void setup(void)
{
	static char control[128];
	struct steer_config config = { .control = control };

	log_set_level(LOG_ERROR);
	snprintf(control, sizeof(control), "%s/control", fx_tmpdir());
	ck_assert_int_eq(steer_new(&st, &config, SECOND), 0);
}

static void teardown(void)
{
	steer_free(st);
}

static void add(int i, uid_t uid, const char *job)
{
	p[i] = (struct process){ .id = 1 + (uint64_t)i, .instance = 0x10 + (uint64_t)i,
				 .uid = uid, .account = uid };
	p[i].env_bytes = (uint32_t)sprintf(p[i].env, "SLURM_JOB_ID=%s", job) + 1;
}

/* What a process is taken to cost that comes when another one of job 7 is known. */
static uint32_t used_by(uid_t uid, const char *job)
{
	add(0, ADA, "7");
	steer_look(st, list, 1, 2 * SECOND, 2 * SECOND);
	((struct cost *)steer_cost(st, &p[0]))->used_ns = 77000;
	add(1, uid, job);
	steer_look(st, list, 2, 3 * SECOND, 3 * SECOND);
	return steer_cost(st, &p[1])->used_ns;
}

TEST(ranks_of_a_job_share_what_it_costs)
{
	ck_assert_uint_eq(used_by(ADA, "7"), 77000);
}

TEST_LOOP(other_jobs_and_users_do_not, 0, 2)
{
	ck_assert_uint_eq(used_by(_i ? BO : ADA, _i ? "7" : "8"), KERNELCOST_DEFAULT_NS);
}

#define FACTOR	UINT64_C(0xd6e8feb86659fd93)	/* index_hash() multiplies with */
#define WORDS	24				/* of a text that it is made of */

/* The state before a word of index_hash(), mixed with that word. */
static uint64_t undo(uint64_t after)
{
	uint64_t inverse = FACTOR;

	for (int i = 0; i < 5; i++)
		inverse *= 2 - FACTOR * inverse;
	return (after ^ after >> 32) * inverse;
}

static bool is_text(uint64_t word)
{
	for (int i = 0; i < 64; i += 8)
		if ((word >> i & 0xff) <= ' ' || (word >> i & 0xff) > '~')
			return false;
	return true;
}

/* A name of a job whose hash is this, which takes a moment to find. */
static void find_name(uint64_t hash, char name[17])
{
	char word[8];
	uint64_t first, second;

	for (int i = 2; i < WORDS; i++)
		hash = undo(hash);
	hash = undo(hash);
	for (int n = 0;; n++) {
		/* The first ones change most: all others hang on them. */
		for (int i = 0; i < 8; i++)
			word[i] = "0123456789abcdef"[n >> 4 * i & 15];
		memcpy(&first, word, 8);
		second = hash ^ index_hash(0, &first, 8);
		if (is_text(second))
			break;
	}
	memcpy(name, &first, 8);
	memcpy(name + 8, &second, 8);
	name[16] = '\0';
}

/* A hash of job and user in one can be met from another user's side; both in turn cannot. */
TEST_LOOP(no_name_of_a_job_makes_it_another_user_s, 0, 2)
{
	char text[8 * WORDS] = "7", name[17];
	uint64_t hash = index_hash(0, text, sizeof(text));

	find_name(_i ? hash ^ ADA ^ BO : hash, name);
	memset(text, 0, sizeof(text));
	memcpy(text, name, 16);
	ck_assert_uint_eq(index_hash(0, text, sizeof(text)), _i ? hash ^ ADA ^ BO : hash);
	ck_assert_uint_eq(used_by(BO, name), KERNELCOST_DEFAULT_NS);
}

int main(void)
{
	return fx_run(setup, teardown);
}

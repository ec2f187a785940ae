/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/read/slots.h"

#include <unistd.h>

#include "tests/fixture.h"
#include "tests/fixture_daemon.h"

static struct fx_daemon fx;
static struct fx_job job;

TEST(live_slots_are_what_is_in_flight_now)
{
	const struct live_slot *slots;
	uint64_t token[200];

	fx_daemon_open_job(&fx, &job);
	ck_assert_int_eq(drain_slots(fx.drain, fx_process(&fx, 0), &slots), 0);
	for (uint64_t n = 0; n < 200; n++)
		token[n] = fx_job_start(job.lane, n);
	for (int n = 0; n < 199; n++)
		ck_assert(shmring_close(job.lane, shmring_find(&job.ring, token[n]), token[n],
					job.ring.header->anchor.ticks + 9));
	ck_assert_int_eq(drain_slots(fx.drain, fx_process(&fx, 0), &slots), 1);
	ck_assert_uint_eq(((const struct nci_record *)&slots[0].slot)->token, token[199]);
	ck_assert_uint_eq(((const struct nci_record *)&slots[0].slot)->parent, 199);
	ck_assert_int_eq(slots[0].tid, gettid());
	fx_daemon_close(&fx);
}

TEST(full_pool_is_seen_to_its_last_slot)
{
	const struct live_slot *slots;

	fx_daemon_open_job(&fx, &job);
	for (uint64_t n = 0; n < SHMRING_SLOTS; n++)
		fx_job_start(job.lane, n);
	ck_assert_int_eq(drain_slots(fx.drain, fx_process(&fx, 0), &slots), SHMRING_SLOTS);
	fx_daemon_close(&fx);
}

TEST(slot_that_lies_about_itself_is_not_shown)
{
	const struct live_slot *slots;
	struct nci_record *rec;

	fx_daemon_open_job(&fx, &job);
	for (uint64_t n = 0; n < 5; n++)
		fx_job_start(job.lane, n);
	rec = shmring_slot(job.lane->pool, 0);
	rec->type = 99;
	rec = shmring_slot(job.lane->pool, 1);
	rec->token = nci_token(0, 9, 1);	/* another slot's */
	rec = shmring_slot(job.lane->pool, 2);
	rec->comm = 12;
	rec = shmring_slot(job.lane->pool, 3);
	rec->start = UINT64_MAX / 2;		/* in the future */
	ck_assert_int_eq(drain_slots(fx.drain, fx_process(&fx, 0), &slots), 1);
	ck_assert_uint_eq(((const struct nci_record *)&slots[0].slot)->parent, 4);
	fx_daemon_close(&fx);
}

int main(void)
{
	return fx_run(NULL, NULL);
}

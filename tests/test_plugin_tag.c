/* SPDX-License-Identifier: Apache-2.0 */
/* Tags of the application's threads, in every version of NCCL's interface. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "ncclinsp/tag.h"
#include "tests/fixture.h"
#include "tests/plugin_driver.h"

static struct pd pd;

static void setup(int version)
{
	pd_open(&pd, "trace");
	pd.version = version;
	pd_init(&pd);
}

/* As tag.h finds them; linked in, under a sanitizer, they are not in a library. */
static bool can_find(void)
{
	if (!pd.lib)
		fx_skip("the plugin is linked in");
	return pd.lib;
}

/* The tag of a Coll that this thread posts now, in an event of the call and one of the launch. */
static uint64_t posted_tag(uint64_t of_nccl)
{
	const struct nci_ev_coll *coll;
	void *h = PD_START(&pd, NCCL_COLL, .tag = of_nccl);

	pd_stop(&pd, h);
	pd_read(&pd);
	coll = (const struct nci_ev_coll *)pd_record(&pd, NCI_EV_COLL,
							    pd_count(&pd, NCI_EV_COLL) - 1);
	return coll->tag;
}

static uint64_t called_tag(void)
{
	const struct nci_ev_coll_api *api;
	void *h = PD_START(&pd, NCCL_COLL_API);
	const struct nci_record *rec;

	pd_stop(&pd, h);
	pd_read(&pd);
	rec = pd_record(&pd, NCI_EV_COLL_API, pd_count(&pd, NCI_EV_COLL_API) - 1);
	api = (const struct nci_ev_coll_api *)rec;
	return NCI_FORM_LINES(rec->form) == 2 ? api->tag : 0;
}

TEST_LOOP(operations_have_the_tag_of_their_thread, 1, 8)
{
	setup(_i);
	if (!can_find())
		return;
	ck_assert_uint_eq(posted_tag(0), 0);
	ncclinsp_tag_set(7);
	ck_assert_uint_eq(posted_tag(0), 7);
	if (_i >= 5)
		ck_assert_uint_eq(called_tag(), 7);
	ncclinsp_tag_push(8);
	ncclinsp_tag_push(UINT64_MAX);
	ck_assert_uint_eq(posted_tag(0), UINT64_MAX);
	ncclinsp_tag_pop();
	ck_assert_uint_eq(posted_tag(0), 8);
	ncclinsp_tag_pop();
	ck_assert_uint_eq(posted_tag(0), 7);
	ncclinsp_tag_pop();	/* nothing is left of it */
	ck_assert_uint_eq(posted_tag(0), 7);
	ncclinsp_tag_set(0);
	ck_assert_uint_eq(posted_tag(0), 0);
	if (_i >= 5)
		ck_assert_uint_eq(called_tag(), 0);
}

TEST(what_nccl_tells_goes_before)
{
	setup(7);
	if (!can_find())
		return;
	ncclinsp_tag_set(7);
	ck_assert_uint_eq(posted_tag(9), 9);
}

static void *post_in_a_thread(void *tag)
{
	ncclinsp_tag_push(5);
	*(uint64_t *)tag = posted_tag(0);
	return NULL;
}

TEST(a_tag_is_of_one_thread)
{
	pthread_t thread;
	uint64_t tag = 0;

	setup(6);
	if (!can_find())
		return;
	ncclinsp_tag_set(7);
	ck_assert_int_eq(pthread_create(&thread, NULL, post_in_a_thread, &tag), 0);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(tag, 5);
	ck_assert_uint_eq(posted_tag(0), 7);
}

TEST(tags_that_are_too_deep_are_counted_all_the_same)
{
	setup(6);
	if (!can_find())
		return;
	for (uint64_t i = 1; i <= 1000; i++)
		ncclinsp_tag_push(i);
	ck_assert_uint_eq(posted_tag(0), 1000);
	for (uint64_t i = 1000; i > 3; i--)
		ncclinsp_tag_pop();
	ck_assert_uint_eq(posted_tag(0), 3);
}

/* Before NCCL has loaded it, and where it never does. */
TEST(without_the_plugin_nothing_happens)
{
	ncclinsp_tag_set(7);
	ncclinsp_tag_push(8);
	ncclinsp_tag_pop();
	ncclinsp_tag_pop();
}

int main(void)
{
	return fx_run(NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fixture.h"

#include "cli/common/members.h"

static json_t *members;
static struct cli cli;

/* Two jobs of two users; both have a communicator "dp", the second one of equal id. */
static void setup(void)
{
	json_t *processes = json_loads(
		"[{\"pid\": 11, \"uid\": 1, \"job\": {\"id\": \"77\"}},"
		" {\"pid\": 12, \"uid\": 1, \"job\": {\"id\": \"77\"}},"
		" {\"pid\": 21, \"uid\": 2, \"job\": {\"id\": \"8\"}},"
		" {\"pid\": 31, \"uid\": 3, \"job\": null}]", 0, NULL);
	json_t *comms = json_loads(
		"[{\"comm_id\": \"0xa\", \"name\": \"dp\", \"nranks\": 2, \"local_ranks\": ["
		"   {\"rank\": 0, \"pid\": 11, \"gpu_uuid\": \"GPU-aa\","
		"    \"pci_bus_id\": \"0000:1b:00.0\"},"
		"   {\"rank\": 1, \"pid\": 12, \"gpu_uuid\": \"GPU-bb\","
		"    \"pci_bus_id\": \"0000:2c:00.0\"}]},"
		" {\"comm_id\": \"0xa\", \"name\": \"dp\", \"nranks\": 4, \"local_ranks\": ["
		"   {\"rank\": 0, \"pid\": 21, \"gpu_uuid\": null, \"pci_bus_id\": null}]}]",
		0, NULL);

	members = members_join(processes, comms);
	json_decref(processes);
	json_decref(comms);
	cli = (struct cli){ .pid = CLI_ANY, .uid = CLI_ANY };
}

static void teardown(void)
{
	json_decref(members);
}

static bool wants(const char *text)
{
	json_t *row = json_loads(text, 0, NULL);
	bool result = members_want(&cli, members, row);

	json_decref(row);
	return result;
}

#define OF_JOB_77 "{\"comm_id\": \"0xa\", \"comm_name\": \"dp\", \"nranks\": 2}"
#define OF_RANK(n) \
	"{\"comm_id\": \"0xa\", \"comm_name\": \"dp\", \"nranks\": 2, \"rank\": " #n "}"
#define OF_JOB_8  "{\"comm_id\": \"0xa\", \"comm_name\": \"dp\", \"nranks\": 4}"

TEST(a_communicators_row_is_of_the_job_and_user_of_its_members)
{
	cli.job = "77";
	ck_assert(wants(OF_JOB_77));
	ck_assert(!wants(OF_JOB_8));
	cli.job = "7";
	ck_assert(!wants(OF_JOB_77));
	cli.job = NULL;
	cli.uid = 2;
	ck_assert(!wants(OF_JOB_77));
	ck_assert(wants(OF_JOB_8));
}

TEST(a_processs_row_is_looked_at_by_its_pid)
{
	cli.uid = 3;
	ck_assert(wants("{\"pid\": 31}"));
	ck_assert(!wants("{\"pid\": 11}"));
	ck_assert(!wants("{\"pid\": 99}"));
	cli.uid = CLI_ANY;
	cli.job = "77";
	ck_assert(wants("{\"pid\": 12, \"uid\": 1}"));
	ck_assert(!wants("{\"pid\": 31}"));
}

TEST(a_gpu_is_found_by_part_of_its_uuid_or_bus_id)
{
	cli.gpu = "2C:00";
	ck_assert(wants("{\"comm_id\": \"0xa\", \"nranks\": 2, \"rank\": 1}"));
	ck_assert(!wants("{\"comm_id\": \"0xa\", \"nranks\": 2, \"rank\": 0}"));
	ck_assert(!wants(OF_JOB_8));
	cli.gpu = "gpu-aa";
	ck_assert(wants("{\"pid\": 11}"));
	ck_assert(!wants("{\"pid\": 12}"));
}

TEST(a_row_that_says_nothing_of_anybody_is_nobodys)
{
	cli.uid = 1;
	ck_assert(!wants("{\"text\": \"all is well\"}"));
}

TEST(a_pid_selects_its_rank_of_a_communicator)
{
	cli.pid = 12;
	ck_assert(wants(OF_RANK(1)));
	ck_assert(!wants(OF_RANK(0)));
}

int main(void)
{
	return fx_run(setup, teardown);
}

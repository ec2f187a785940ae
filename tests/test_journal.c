/* SPDX-License-Identifier: Apache-2.0 */
/* Findings as entries of the journal, received by a socket of our own. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ncclinspd/findings/journal.h"
#include "tests/fixture.h"
#include "util/log.h"
#include "util/words.h"

static int listener;
static struct journal j;
static char entry[8192];

static void setup(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/journal", fx_tmpdir());
	listener = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	journal_open(&j, addr.sun_path);
	ck_assert_int_ge(j.fd, 0);
}

static void teardown(void)
{
	journal_close(&j);
	close(listener);
}

static struct finding make_finding(void)
{
	return (struct finding){
		.kind = FINDING_DESYNC, .severity = FINDING_CRITICAL, .verdict = "NOT_JOINED",
		.has_comm_id = true, .comm_id = 0xab, .comm_name = "dp", .ranks = { 1, 2, 3, 7 },
		.nranks = 4, .text = "ranks 1-3,7 have not come", .life.id = 9,
		.life.whom = { { .world_rank = 9 }, { .world_rank = UNKNOWN_I32 },
			       { .world_rank = 10 }, { .world_rank = 11 } },
	};
}

static void receive(void)
{
	ssize_t n = recv(listener, entry, sizeof(entry) - 1, 0);

	ck_assert_int_gt(n, 0);
	entry[n] = '\0';
}

static bool has(const char *line)
{
	char whole[256];

	snprintf(whole, sizeof(whole), "%s\n", line);
	return !strncmp(entry, whole, strlen(whole)) ||
	       (snprintf(whole, sizeof(whole), "\n%s\n", line), strstr(entry, whole));
}

TEST(an_entry_has_the_id_of_its_kind_and_fields_to_search_for)
{
	struct finding f = make_finding();
	char id[64];

	journal_finding(&j, &f);
	receive();
	snprintf(id, sizeof(id), "MESSAGE_ID=%s", words_find("desync")->message_id);
	ck_assert(has(id));
	ck_assert(has("PRIORITY=2"));
	ck_assert(has("NCCLINSP_FINDING=9"));
	ck_assert(has("NCCLINSP_ACTIVE=1"));
	ck_assert(has("NCCLINSP_VERDICT=NOT_JOINED"));
	ck_assert(has("NCCLINSP_COMM_ID=0x00000000000000ab"));
	ck_assert(has("NCCLINSP_RANKS=1-3,7"));
	ck_assert(has("NCCLINSP_WORLD_RANKS=9-11"));
	ck_assert(has("MESSAGE=ranks 1-3,7 have not come"));
}

TEST(what_is_over_is_no_alarm)
{
	struct finding f = make_finding();

	f.life.until_ns = 1;
	f.has_comm_id = false;
	journal_finding(&j, &f);
	receive();
	ck_assert(has("PRIORITY=6"));
	ck_assert(has("NCCLINSP_ACTIVE=0"));
	ck_assert(has("MESSAGE=desync NOT_JOINED is over: ranks 1-3,7 have not come"));
	ck_assert_ptr_null(strstr(entry, "COMM_ID"));
}

TEST(what_is_suspected_is_told_once_and_is_no_alarm)
{
	struct finding f = make_finding();

	f.grade = FINDING_SUSPECTED;
	journal_finding(&j, &f);
	receive();
	ck_assert(has("PRIORITY=6"));
	ck_assert(has("NCCLINSP_GRADE=suspected"));
	ck_assert(has("NCCLINSP_ACTIVE=1"));
	ck_assert(has("MESSAGE=desync NOT_JOINED is suspected: ranks 1-3,7 have not come"));
	f.verdict = "UNKNOWN";
	journal_finding(&j, &f);
	f.life.until_ns = 1;
	journal_finding(&j, &f);
	ck_assert_int_lt(recv(listener, entry, sizeof(entry), 0), 0);
	f.life.until_ns = 0;
	f.grade = FINDING_FOUND;
	journal_finding(&j, &f);
	receive();
	ck_assert(has("PRIORITY=2"));
	ck_assert(has("NCCLINSP_GRADE=found"));
}

TEST(a_job_cannot_forge_fields_by_its_names)
{
	struct finding f = make_finding();

	snprintf(f.comm_name, sizeof(f.comm_name), "dp\nPRIORITY=0\n");
	snprintf(f.text, sizeof(f.text), "rank 1 of dp\nPRIORITY=0\n\x1b[2J");
	journal_finding(&j, &f);
	receive();
	ck_assert(!has("PRIORITY=0"));
	ck_assert_ptr_null(strchr(entry, '\x1b'));
}

TEST(every_kind_has_an_id_of_its_own)
{
	for (int a = 0; a < FINDING_KIND_END; a++) {
		const struct word *one = words_find(finding_kind_name((enum finding_kind)a));

		ck_assert_ptr_nonnull(one);
		ck_assert_uint_eq(strlen(one->message_id), 32);
		for (int b = 0; b < a; b++) {
			const char *other = finding_kind_name((enum finding_kind)b);

			ck_assert_str_ne(one->message_id, words_find(other)->message_id);
		}
	}
}

TEST(a_full_or_absent_journal_holds_nobody_up)
{
	struct finding f = make_finding();

	f.severity = FINDING_INFO;	/* what finds no room is on stderr else */
	log_set_level(LOG_ERROR);
	for (int i = 0; i < 300; i++)
		journal_finding(&j, &f);
	journal_close(&j);
	journal_open(&j, "/nowhere/socket");
	ck_assert_int_eq(j.fd, -1);
	journal_finding(&j, &f);
}

int main(void)
{
	return fx_run(setup, teardown);
}

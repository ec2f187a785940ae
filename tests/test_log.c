/* SPDX-License-Identifier: Apache-2.0 */
#include "util/log.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fixture.h"

#define SECOND UINT64_C(1000000000)

static int file;
static char said[65536];

/* stderr goes to a file; what was written is in said[] after look(). */
static void setup(void)
{
	char path[128];

	unsetenv("JOURNAL_STREAM");
	snprintf(path, sizeof(path), "%s/log", fx_tmpdir());
	file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);
	ck_assert_int_ge(file, 0);
	ck_assert_int_eq(dup2(file, STDERR_FILENO), STDERR_FILENO);
}

static const char *look(void)
{
	ssize_t n = pread(file, said, sizeof(said) - 1, 0);

	said[n > 0 ? n : 0] = '\0';
	return said;
}

TEST(line_says_who_and_how_bad)
{
	log_say(LOG_WARN, "segment skipped file=%s", "x");
	ck_assert_str_eq(look(), "ncclinspd: warn: segment skipped file=x\n");
}

TEST(under_systemd_the_journal_gets_its_level)
{
	setenv("JOURNAL_STREAM", "8:1", 1);
	log_say(LOG_ERROR, "no");
	log_say(LOG_INFO, "yes");
	ck_assert_str_eq(look(), "<3>no\n<6>yes\n");
}

TEST(what_is_above_the_level_is_dropped)
{
	log_say(LOG_DEBUG, "unseen");
	log_set_level(LOG_ERROR);
	log_say(LOG_WARN, "unseen");
	log_set_level(LOG_DEBUG);
	log_say(LOG_DEBUG, "seen");
	ck_assert_str_eq(look(), "ncclinspd: debug: seen\n");
}

TEST(levels_have_names)
{
	ck_assert_int_eq(log_parse_level("err"), LOG_ERROR);
	ck_assert_int_eq(log_parse_level("debug"), LOG_DEBUG);
	ck_assert_int_eq(log_parse_level("loud"), -1);
	ck_assert_int_eq(log_parse_level(""), -1);
}

TEST(foreign_text_makes_no_line_of_its_own_and_no_colour)
{
	log_say(LOG_WARN, "why=%s", "no\n<0>fire\r\033[31m\xff");
	ck_assert_str_eq(look(), "ncclinspd: warn: why=no?<0>fire??[31m?\n");
}

TEST(long_message_is_cut_to_one_line)
{
	static char text[5000];

	for (size_t n = 900; n < 1100; n++) {
		memset(text, 'x', n);
		text[n] = '\0';
		ck_assert_int_eq(ftruncate(file, 0), 0);
		log_say(LOG_WARN, "%s", text);
		look();
		ck_assert_uint_le(strlen(said), 1024);
		ck_assert_ptr_eq(strchr(said, '\n'), said + strlen(said) - 1);
	}
}

TEST(flood_is_held_back_and_told_of_later)
{
	struct log_rate rate = { 0 };
	uint64_t now = 100 * SECOND;

	for (int i = 0; i < 100; i++)
		log_limited(&rate, now + (uint64_t)i, LOG_WARN, "flood");
	look();
	ck_assert_uint_eq(strlen(said), 5 * strlen("ncclinspd: warn: flood\n"));
	ck_assert_int_eq(ftruncate(file, 0), 0);
	log_limited(&rate, now + 10 * SECOND, LOG_WARN, "flood");
	log_limited(&rate, now + 10 * SECOND, LOG_WARN, "flood");
	ck_assert_str_eq(look(), "ncclinspd: warn: flood held_back=95\n"
				 "ncclinspd: warn: flood\n");
}

int main(void)
{
	return fx_run(setup, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/levels/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fixture.h"

#define NOW	UINT64_C(5000000000)

static struct control c;
static char path[PATH_MAX], wishes_path[PATH_MAX + 16];
static struct nci_control_entry entry[2];
static struct wishes ws;
static struct control_node node;

static void setup(void)
{
	node = (struct control_node){ 0 };
	snprintf(path, sizeof(path), "%s/run/control", fx_tmpdir());
	snprintf(wishes_path, sizeof(wishes_path), "%s.wishes", path);
	for (int i = 0; i < 2; i++)
		entry[i] = (struct nci_control_entry){ .instance = 7 + (uint64_t)i,
						       .level = NCI_LEVEL_OPS,
						       .sample = NCI_CONTROL_KEEP };
	control_open(&c, path);
}

static void teardown(void)
{
	control_close(&c);
}

/* What a plugin reads; whole, or the test fails. */
static struct nci_control file(void)
{
	struct nci_control found = { 0 };
	int fd = open(path, O_RDONLY);

	ck_assert_int_eq(pread(fd, &found, sizeof(found), 0), sizeof(found));
	close(fd);
	ck_assert(nci_control_is_whole(&found));
	return found;
}

TEST(everybody_may_read_it_and_nobody_write)
{
	struct stat st;

	ck_assert_int_eq(c.error, 0);
	control_publish(&c, entry, 0, &node, NOW);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode, S_IFREG | 0644);
	ck_assert_uint_eq((uint64_t)st.st_size, sizeof(struct nci_control));
	ck_assert_uint_eq(file().entries, 0);
	ck_assert_uint_eq(file().written_mono_ns, NOW);
}

TEST(it_is_written_in_place_and_only_when_something_changes)
{
	struct stat before, after;

	control_publish(&c, entry, 2, &node, NOW);
	ck_assert_int_eq(stat(path, &before), 0);
	control_publish(&c, entry, 2, &node, NOW + 1);
	ck_assert_uint_eq(file().sequence, 1);
	entry[1].level = NCI_LEVEL_TRACE;
	control_publish(&c, entry, 2, &node, NOW + 2);
	ck_assert_uint_eq(file().sequence, 2);
	ck_assert_uint_eq(file().entry[1].level, NCI_LEVEL_TRACE);
	control_publish(&c, entry, 1, &node, NOW + 3);
	ck_assert_uint_eq(file().sequence, 3);
	ck_assert_uint_eq(file().entry[1].instance, 0);
	ck_assert_int_eq(stat(path, &after), 0);
	ck_assert_uint_eq(before.st_ino, after.st_ino);
}

TEST(a_plan_of_bursts_holds_for_a_minute_and_is_renewed_in_time)
{
	const uint64_t second = UINT64_C(1000000000);

	control_publish(&c, entry, 2, &node, NOW);
	ck_assert_uint_eq(file().burst_until_mono_ns, 0);
	node.plan = (struct burst_plan){ .period_ms = 4000, .length_us = 150000 };
	control_publish(&c, entry, 2, &node, NOW + 1);
	ck_assert_uint_eq(file().burst_until_mono_ns, NOW + 1 + 60 * second);
	ck_assert_uint_eq(file().burst_period_ms, 4000);
	ck_assert_uint_eq(file().burst_length_us, 150000);
	control_publish(&c, entry, 2, &node, NOW + 29 * second);
	ck_assert_uint_eq(file().sequence, 2);
	control_publish(&c, entry, 2, &node, NOW + 31 * second);
	ck_assert_uint_eq(file().sequence, 3);
	ck_assert_uint_eq(file().burst_until_mono_ns, NOW + 91 * second);
}

TEST(a_mode_for_processes_to_come_is_written)
{
	node.mode = NCI_MODE_FIRST;
	node.mode_s = 120;
	control_publish(&c, entry, 0, &node, NOW);
	ck_assert_uint_eq(file().mode, NCI_MODE_FIRST);
	ck_assert_uint_eq(file().mode_s, 120);
}

TEST(the_sequence_goes_on_in_the_next_daemon)
{
	control_publish(&c, entry, 2, &node, NOW);
	control_close(&c);
	control_open(&c, path);
	control_publish(&c, entry, 2, &node, NOW);
	ck_assert_uint_eq(file().sequence, 2);
}

TEST(a_file_that_was_removed_or_replaced_is_made_anew)
{
	char other[PATH_MAX + 8];
	int fd;

	control_publish(&c, entry, 2, &node, NOW);
	unlink(path);
	control_publish(&c, entry, 2, &node, NOW);
	ck_assert_uint_eq(file().entries, 2);
	snprintf(other, sizeof(other), "%s.other", path);
	fd = open(other, O_CREAT | O_WRONLY, 0644);
	close(fd);
	ck_assert_int_eq(rename(other, path), 0);
	control_publish(&c, entry, 1, &node, NOW);
	ck_assert_uint_eq(file().entries, 1);
}

TEST(a_second_daemon_leaves_it_alone)
{
	struct control second;

	control_publish(&c, entry, 2, &node, NOW);
	control_open(&second, path);
	ck_assert_int_eq(second.error, -EALREADY);
	control_publish(&second, entry, 1, &node, NOW);
	ck_assert_uint_eq(file().entries, 2);
	control_close(&c);
	control_publish(&second, entry, 1, &node, NOW);	/* the first one is gone */
	ck_assert_int_eq(second.error, 0);
	ck_assert_uint_eq(file().entries, 1);
	control_close(&second);
}

static void make_fifo(void)
{
	ck_assert_int_eq(mkfifo(path, 0644), 0);
}

static void make_link(void)
{
	ck_assert_int_eq(symlink("/dev/null", path), 0);
}

static void make_directory(void)
{
	ck_assert_int_eq(mkdir(path, 0755), 0);
}

static const struct {
	void (*make)(void);
	int error;
} others[] = {
	{ make_fifo, -EINVAL },
	{ make_link, -ELOOP },
	{ make_directory, -EISDIR },
};

TEST_LOOP(what_is_no_file_of_ours_is_not_written, 0, FX_COUNT(others))
{
	control_close(&c);
	unlink(path);
	others[_i].make();
	control_open(&c, path);
	ck_assert_int_eq(c.error, others[_i].error);
	control_publish(&c, entry, 2, &node, NOW);
	ck_assert_int_eq(c.error, others[_i].error);
	ck_assert_ptr_nonnull(control_error_text(&c));
	remove(path);
	control_publish(&c, entry, 2, &node, NOW);
	ck_assert_int_eq(c.error, 0);
	ck_assert_uint_eq(file().entries, 2);
}

TEST(a_full_disk_is_told_and_tried_again)
{
	char dir[PATH_MAX], filler[PATH_MAX + 8];
	static char zeros[65536];
	int fd;

	control_close(&c);
	snprintf(dir, sizeof(dir), "%s/run", fx_tmpdir());
	if (!fx_mount(dir, "size=64k", 0))
		return;
	snprintf(filler, sizeof(filler), "%s/filler", dir);
	fd = open(filler, O_CREAT | O_WRONLY, 0600);
	while (write(fd, zeros, sizeof(zeros)) > 0)
		;
	close(fd);
	control_open(&c, path);
	control_publish(&c, entry, 2, &node, NOW);
	ck_assert_int_eq(c.error, -ENOSPC);
	unlink(filler);
	control_publish(&c, entry, 2, &node, NOW);
	ck_assert_int_eq(c.error, 0);
	ck_assert_uint_eq(file().entries, 2);
}

/* ---- the wishes ------------------------------------------------------------------ */

static void wish(uint64_t id)
{
	const struct wish w = { .kind = WISH_PROCESS, .level = NCI_LEVEL_OPS,
				.sample = WISH_KEEP, .id = id, .everybody = 1 };

	ck_assert_int_eq(wishes_put(&ws, &w, NOW), 0);
}

TEST(the_next_daemon_knows_what_was_wished)
{
	struct wishes found = { 0 };

	wish(0x77);
	wish(0x78);
	control_save(&c, &ws);
	control_close(&c);
	control_open(&c, path);
	control_restore(&c, &found, NOW + 9);
	ck_assert_uint_eq(found.serial, 2);
	ck_assert_uint_eq(found.at[1].id, 0x78);
	ck_assert_uint_eq(found.at[1].since_ns, NOW);
	ck_assert_uint_eq(found.at[1].seen_ns, NOW + 9);
}

TEST(wishes_are_kept_when_they_change_and_not_else)
{
	struct stat before, after;

	wish(0x77);
	control_save(&c, &ws);
	ck_assert_int_eq(stat(wishes_path, &before), 0);
	ws.at[0].seen_ns++;
	control_save(&c, &ws);
	ck_assert_int_eq(stat(wishes_path, &after), 0);
	ck_assert_uint_eq(before.st_ino, after.st_ino);
	ws.at[0].serial = 0;
	control_save(&c, &ws);
	ck_assert_int_eq(stat(wishes_path, &after), 0);
	ck_assert_int_gt(before.st_size, after.st_size);
}

static uint8_t *read_kept(size_t *n)
{
	uint8_t *bytes = malloc(65536);
	int fd = open(wishes_path, O_RDONLY);

	*n = (size_t)read(fd, bytes, 65536);
	close(fd);
	return bytes;
}

TEST(wishes_that_were_changed_by_a_bit_or_cut_are_none)
{
	struct wishes found = { 0 };
	size_t n;
	uint8_t *bytes;

	wish(0x77);
	wish(0x78);
	control_save(&c, &ws);
	bytes = read_kept(&n);
	ck_assert_int_eq(control_parse_wishes(bytes, n, c.boot_id, &found), 0);
	for (size_t i = 0; i < n; i++) {
		bytes[i] ^= 1;
		ck_assert_int_lt(control_parse_wishes(bytes, n, c.boot_id, &found), 0);
		bytes[i] ^= 1;
		ck_assert_int_lt(control_parse_wishes(bytes, i, c.boot_id, &found), 0);
	}
	free(bytes);
}

TEST(wishes_of_another_boot_are_over)
{
	uint8_t other[16] = { 1 };
	struct wishes found = { 0 };
	size_t n;
	uint8_t *bytes;

	wish(0x77);
	control_save(&c, &ws);
	bytes = read_kept(&n);
	ck_assert_int_eq(control_parse_wishes(bytes, n, other, &found), -ESTALE);
	ck_assert_uint_eq(found.serial, 0);
	free(bytes);
}

int main(void)
{
	return fx_run(setup, teardown);
}

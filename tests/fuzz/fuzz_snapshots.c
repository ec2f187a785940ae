/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that says it is a snapshot or a black box, of any node and packed or not: refused
 * with a reason, or every command that reads such files can tell of it.
 *
 * Input: a byte each for the command, the format and options; then the file.
 */
#include "tests/fuzz/run_command.h"

#include <fcntl.h>
#include <unistd.h>

#include "cli/offline/offline.h"

static const enum command_id reading[] = {
	STATUS, PS, COMMS, RANKS, OPS, PEERS, INFLIGHT, DIAGNOSE, CHECK, OVERHEAD,
};
#define READING (sizeof(reading) / sizeof(reading[0]))

static char dir[] = "/dev/shm/ncclinsp-fuzz.XXXXXX", path[64];

static void remove_dir(void)
{
	unlink(path);
	rmdir(dir);
}

static void write_file(const uint8_t *data, size_t size)
{
	int fd;

	if (!*path) {
		demand(mkdtemp(dir));
		snprintf(path, sizeof(path), "%s/a.json", dir);
		atexit(remove_dir);
	}
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	demand(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	close(fd);
}

/* As --from has it. */
static void ask_offline(enum command_id id, uint8_t format, uint8_t flags, struct client *client)
{
	const struct cli_list from = { .text = { dir }, .count = 1 };
	struct offline *offline = offline_open(from.text, 1, flags & 64 ? "2026-11" : NULL, NULL);

	if (!offline)
		return;
	client_set_source(client, offline_answer, offline);
	command_run(id, format, flags, client, from, NULL, 0);
	offline_free(offline);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct client *client;
	static char ranks[] = "ranks";
	const struct cli_list none = { 0 };
	char *paths[] = { dir, ranks, NULL };
	size_t what;

	if (size < 3)
		return 0;
	if (!client)
		client = client_new("/nonexistent", 1);
	write_file(data + 3, size - 3);
	command_catch_output();
	what = data[0] % (READING + 3);
	if (what < READING)
		ask_offline(reading[what], data[1], data[2], client);
	else if (what == READING)
		command_run(REPORT, data[1], data[2], client, none, paths, 1);
	else
		command_run(REPLAY, data[1], data[2], client, none, paths, (int)(what - READING));
	command_check_output();
	return 0;
}

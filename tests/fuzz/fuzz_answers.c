/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon that answers anything: every command that asks it comes to an end, and prints
 * what a terminal can take.
 *
 * Input: a byte each for the command, the format and options; then an object with an answer
 * for each path that is asked for.
 */
#include <string.h>

#include "cli/base/intake.h"
#include "tests/fuzz/run_command.h"

static const enum command_id asking[] = {
	STATUS, PS, COMMS, RANKS, OPS, PEERS, INFLIGHT, DMON, TOP, DIAGNOSE, CHECK, EXEMPLARS,
	CONFIG, LEVEL, MARK, OVERHEAD,
};

/* "/v1/peers?window=60s" is asked of the member "peers". */
static json_t *answer(void *arg, const char *target)
{
	const char *name = strrchr(target, '/') + 1, *key;
	json_t *member;

	json_object_foreach(arg, key, member)
		if (strlen(key) == strcspn(name, "?") && !strncmp(key, name, strlen(key)))
			return json_deep_copy(member);
	return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct client *client;
	const struct cli_list none = { 0 };
	json_t *root;

	if (size < 3)
		return 0;
	root = intake_read((const char *)data + 3, size - 3, NULL);
	if (json_is_object(root)) {
		if (!client)
			client = client_new("/nonexistent", 1);
		client_set_source(client, answer, root);
		command_catch_output();
		command_run(asking[data[0] % (sizeof(asking) / sizeof(asking[0]))], data[1],
			    data[2], client, none, NULL, 0);
		command_check_output();
	}
	json_decref(root);
	return 0;
}

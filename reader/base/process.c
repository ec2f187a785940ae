/* SPDX-License-Identifier: Apache-2.0 */
/* The words for level and state, as the API, the library and the command line have them. */
#include "reader/base/process.h"

#include <stdio.h>

const char *const process_levels[NCI_LEVELS] = {
	[NCI_LEVEL_OFF] = "off", [NCI_LEVEL_OPS] = "ops", [NCI_LEVEL_KERNEL] = "kernel",
	[NCI_LEVEL_NET] = "net", [NCI_LEVEL_TRACE] = "trace", [NCI_LEVEL_MASK] = "mask",
};

const char *process_level(const struct process *p)
{
	return p->api_version && p->level < NCI_LEVELS ? process_levels[p->level] : NULL;
}

const char *process_state_text(const struct process *p)
{
	static const char *const names[] = {
		[PROCESS_LIVE] = "live",
		[PROCESS_EXITED] = "exited",
		[PROCESS_DIED] = "died",
	};

	return names[p->state];
}

const char *process_comm_state(const struct process *p, const struct comm *comm)
{
	bool finalized = p->state == PROCESS_LIVE && comm->finalize_ticks;

	return finalized ? "finalized" : process_state_text(p);
}

uint64_t process_stamps_refused(const struct process *p)
{
	uint64_t sum = 0;

	for (int fault = 0; fault < STAMP_FAULT_END; fault++)
		sum += p->stamps_refused[fault];
	return sum;
}

uint32_t process_comms_open(const struct process *p)
{
	uint32_t open = 0;

	for (uint32_t i = 0; i < p->ncomms; i++)
		open += p->comms[i].ready && !p->comms[i].finalize_ticks;
	return open;
}

void process_uuid_text(const uint8_t u[16], char text[PROCESS_UUID_BYTES])
{
	snprintf(text, PROCESS_UUID_BYTES,
		 "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		 u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11],
		 u[12], u[13], u[14], u[15]);
}

name_t process_tag_name(const struct process *p, uint64_t tag)
{
	for (uint32_t i = 0; tag && i < p->nstrings; i++)
		if (p->tags[i] == tag)
			return p->strings[i];
	return NULL;
}

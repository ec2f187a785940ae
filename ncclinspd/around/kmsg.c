/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the kernel's log record by record: "6,1234,5678901,-;NVRM: Xid (PCI:0000:3b:00): 79,
 * pid=4711, ...".  The time in it, in us since the boot, is of a clock that runs apart from
 * CLOCK_MONOTONIC over weeks: it counts only for what was there before the start.
 */
#include "ncclinspd/around/kmsg.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORD_BYTES	8192	/* the kernel makes none that is longer */
#define RECORDS		512	/* the most at one look */
#define PREFIX		"NVRM: Xid (PCI:"

void kmsg_open(struct kmsg *k, const char *path)
{
	*k = (struct kmsg){ .fd = -1 };
	if (!*path) {
		snprintf(k->why, sizeof(k->why), "switched off (kernel-log)");
		return;
	}
	k->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (k->fd < 0)
		snprintf(k->why, sizeof(k->why), "%.48s: %s", path, strerror(errno));
}

void kmsg_close(struct kmsg *k)
{
	if (k->fd >= 0)
		close(k->fd);
	k->fd = -1;
}

/* "pid=4711" or "pid='4711'"; anything else is no number. */
static int32_t message_pid(const char *message)
{
	const char *at = strstr(message, "pid=");
	char *end;
	long pid;

	if (!at)
		return UNKNOWN_I32;
	at += strlen("pid=");
	at += *at == '\'';
	pid = strtol(at, &end, 10);
	return end != at && pid > 0 && pid < INT32_MAX ? (int32_t)pid : UNKNOWN_I32;
}

/* A line that is no message begins with a space. */
static void kmsg_take_line(struct kmsg *k, const char *line, uint64_t now_ns)
{
	const char *message = strchr(line, ';');
	struct kmsg_xid x = { .xid.number = 0 };
	uint64_t us;

	if (!message || strncmp(message + 1, PREFIX, strlen(PREFIX)) ||
	    sscanf(line, "%*u,%*u,%" SCNu64, &us) != 1)
		return;
	message += 1 + strlen(PREFIX);
	if (sscanf(message, "%" SCNx32 ":%" SCNx32 ":%" SCNx32 "%*[^)]): %" SCNd32, &x.domain,
		   &x.bus, &x.device, &x.xid.number) != 4 &&
	    sscanf(message, "%" SCNx32 ":%" SCNx32 ":%" SCNx32 "): %" SCNd32, &x.domain, &x.bus,
		   &x.device, &x.xid.number) != 4)
		return;
	x.xid.pid = message_pid(message);
	x.xid.at_ns = k->caught_up || us * 1000 > now_ns ? now_ns : us * 1000;
	k->at[k->n++ % KMSG_XIDS] = x;
}

void kmsg_look(struct kmsg *k, uint64_t now_ns)
{
	char text[RECORD_BYTES + 1], *rest;
	ssize_t n;

	for (int i = 0; k->fd >= 0 && i < RECORDS; i++) {
		n = read(k->fd, text, RECORD_BYTES);
		if (n < 0 && (errno == EPIPE || errno == EINTR))
			continue;	/* records were overwritten: those behind follow */
		if (n <= 0) {
			k->caught_up = true;
			return;
		}
		text[n] = '\0';
		for (char *line = strtok_r(text, "\n", &rest); line;
		     line = strtok_r(NULL, "\n", &rest))
			kmsg_take_line(k, line, now_ns);
	}
}

bool kmsg_find(const struct kmsg *k, const char *pci_bus_id, uint64_t since_ns, int32_t pid,
	       struct xid *out)
{
	uint32_t domain, bus, device;

	if (sscanf(pci_bus_id, "%" SCNx32 ":%" SCNx32 ":%" SCNx32, &domain, &bus, &device) != 3)
		return false;
	for (uint32_t i = k->n > KMSG_XIDS ? k->n - KMSG_XIDS : 0; i < k->n; i++) {
		const struct kmsg_xid *x = &k->at[i % KMSG_XIDS];

		if (x->domain != domain || x->bus != bus || x->device != device ||
		    x->xid.at_ns < since_ns || xid_is_consequence(x->xid.number) ||
		    (pid && x->xid.pid != UNKNOWN_I32 && x->xid.pid != pid))
			continue;
		*out = x->xid;
		return true;
	}
	return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A segment must not be taken for that of another boot, container or process with the same
 * pid, and the daemon must know the job and the rank: the facts are gathered once, at init.
 */
#include "plugin/identity.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nci/variables.h"
#include "shmring/clock.h"

static const char *const job_variables[] = {
#define X(name) #name,
	NCI_JOB_VARIABLES(X)
#undef X
};

/* Text of a small file, without the newline at its end; "" if there is none. */
static void identity_read(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, room - 1);

	if (fd >= 0)
		close(fd);
	if (n < 0)
		n = 0;
	if (n > 0 && text[n - 1] == '\n')
		n--;
	text[n] = '\0';
}

static uint64_t identity_decimal(const char *text)
{
	uint64_t value = 0;

	for (; *text >= '0' && *text <= '9'; text++)
		value = value * 10 + (uint64_t)(*text - '0');
	return value;
}

/* The program's name, field 2, may hold spaces and parentheses: count from its end. */
uint64_t identity_start_time(pid_t pid)
{
	char path[32], stat[1024];
	const char *p;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	identity_read(path, stat, sizeof(stat));
	p = strrchr(stat, ')');
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	return p ? identity_decimal(p + 1) : 0;
}

uint32_t identity_clock(void)
{
	char source[32];

	identity_read("/sys/devices/system/clocksource/clocksource0/current_clocksource",
		      source, sizeof(source));
	return clock_kind(source);
}

void identity_random(void *to, size_t bytes)
{
	uint64_t mix = clock_ns(CLOCK_REALTIME) ^ (uint64_t)getpid() << 40;
	uint8_t *byte = to;
	int fd;

	if (syscall(SYS_getrandom, to, bytes, 1 /* GRND_NONBLOCK */) == (long)bytes)
		return;
	fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		ssize_t n = read(fd, to, bytes);

		close(fd);
		if (n == (ssize_t)bytes)
			return;
	}
	for (size_t i = 0; i < bytes; i++) {
		mix = mix * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		byte[i] = (uint8_t)(mix >> 56);
	}
}

static int identity_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void identity_boot_id(uint8_t id[16])
{
	char text[64];
	int digits = 0;

	identity_read("/proc/sys/kernel/random/boot_id", text, sizeof(text));
	for (const char *p = text; *p && digits < 32; p++) {
		int value = identity_hex_digit(*p);

		if (value < 0)
			continue;
		id[digits / 2] = (uint8_t)(id[digits / 2] << 4 | value);
		digits++;
	}
}

/* A pair that does not fit is left out whole. */
static void identity_copy_pair(struct nci_header *h, const char *name, const char *between,
			       const char *value)
{
	size_t room = sizeof(h->env) - h->env_bytes;
	int n = snprintf(h->env + h->env_bytes, room, "%s%s%s", name, between, value);

	if (n < 0 || (size_t)n >= room)
		memset(h->env + h->env_bytes, 0, room);
	else
		h->env_bytes += (uint32_t)n + 1;
}

static void identity_copy_environment(struct nci_header *h)
{
	for (size_t i = 0; i < sizeof(job_variables) / sizeof(job_variables[0]); i++) {
		const char *value = getenv(job_variables[i]);

		if (value)
			identity_copy_pair(h, job_variables[i], "=", value);
	}
	for (char *const *pair = environ; pair && *pair; pair++)
		if (!strncmp(*pair, NCI_NCCL_VARIABLES, sizeof(NCI_NCCL_VARIABLES) - 1))
			identity_copy_pair(h, *pair, "", "");
}

void identity_fill(struct nci_header *h, uint32_t clock)
{
	h->pid = (uint32_t)getpid();
	h->start_time = identity_start_time(getpid());
	h->uid = getuid();
	identity_random(&h->instance, sizeof(h->instance));
	identity_boot_id(h->boot_id);
	h->clock = clock;
	clock_anchor(clock, &h->anchor);
	snprintf(h->plugin_version, sizeof(h->plugin_version), "%s", NCCLINSP_VERSION);
	identity_read("/proc/self/comm", h->command, sizeof(h->command));
	identity_copy_environment(h);
}

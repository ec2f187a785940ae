/* SPDX-License-Identifier: Apache-2.0 */
/* The turns that read sysfs, and what the loop has of them. */
#include "ncclinspd/around/nics.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ncclinspd/around/turns.h"
#include "shmring/clock.h"
#include "util/list.h"

#define INTERVAL_NS	UINT64_C(10000000000)
#define ACTIVE		'4'	/* the state in an RDMA port's "4: ACTIVE" */

/* One interface, with its last readings. */
struct nic {
	struct nic_health health;
	char directory[300];	/* beneath sys/class: infiniband/mlx5_0/ports/1, net/eth0 */
	uint64_t total[NICS_MINUTE][NIC_COUNT];
	uint32_t turns;
	bool seen;		/* found in this turn */
};

struct nics {
	char sys[256];
	struct turns *turns;
	/* the turns' */
	struct nic nic[NICS_MOST];
	uint32_t n;
	/* shared, under the lock */
	bool wanted;
	struct nic_health told[NICS_MOST];
	uint32_t ntold;
};

/* ---- files ----------------------------------------------------------------------------- */

/* The first line of a file of this interface; false: there is none, or it says nothing. */
static bool nic_text(const struct nics *s, const struct nic *nic, const char *name, char text[64])
{
	char path[700];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/class/%s/%s", s->sys, nic->directory, name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	n = read(fd, text, 63);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return n > 0;
}

static uint64_t nic_number(const struct nics *s, const struct nic *nic, const char *name)
{
	char text[64], *end;
	unsigned long long value;

	if (!nic_text(s, nic, name, text) || *text < '0' || *text > '9')
		return UNKNOWN_U64;
	value = strtoull(text, &end, 10);
	return end == text ? UNKNOWN_U64 : value;
}

/* ---- one interface --------------------------------------------------------------------- */

static void nic_read_state(const struct nics *s, struct nic *nic)
{
	struct nic_health *h = &nic->health;
	bool was_up = h->up;
	char text[64];

	if (h->rdma) {
		h->up = nic_text(s, nic, "state", text) && *text == ACTIVE;
		h->rate_mbps = nic_text(s, nic, "rate", text) ?	/* "400 Gb/sec (4X NDR)" */
			       (uint64_t)(strtod(text, NULL) * 1000) : UNKNOWN_U64;
	} else {
		h->up = nic_text(s, nic, "carrier", text) && *text == '1';
		h->rate_mbps = nic_number(s, nic, "speed");
	}
	if (!h->up)
		h->rate_mbps = UNKNOWN_U64;
	else if (h->rate_mbps != UNKNOWN_U64 && h->rate_mbps > h->most_mbps)
		h->most_mbps = h->rate_mbps;
	if (h->up) {
		h->down_ns = h->down_real_ns = 0;
	} else if (was_up) {
		h->down_ns = clock_ns(CLOCK_MONOTONIC);
		h->down_real_ns = clock_ns(CLOCK_REALTIME);
	}
}

/* A count that is less than it was was set back. */
static void nic_read_counts(const struct nics *s, struct nic *nic)
{
	uint64_t *oldest = nic->total[nic->turns < NICS_MINUTE ? 0 : nic->turns % NICS_MINUTE];
	struct nic_health *h = &nic->health;
	char name[128];

	for (uint32_t i = 0; i < NIC_COUNT; i++) {
		uint64_t total = UNKNOWN_U64, before = nic->turns ? oldest[i] : UNKNOWN_U64;

		snprintf(name, sizeof(name), "%s/%s", nic_counts[i].directory, nic_counts[i].name);
		if (nic_counts[i].rdma == h->rdma)
			total = nic_number(s, nic, name);
		h->total[i] = total;
		h->lately[i] = total == UNKNOWN_U64 || before == UNKNOWN_U64 ? UNKNOWN_U64 :
			       total < before ? 0 : total - before;
	}
	memcpy(nic->total[nic->turns % NICS_MINUTE], h->total, sizeof(h->total));
	nic->turns++;
}

static void nic_read(struct nics *s, bool rdma, const char *directory, const char *name)
{
	struct nic *nic = NULL;

	for (uint32_t i = 0; i < s->n && !nic; i++)
		if (!strcmp(s->nic[i].directory, directory))
			nic = &s->nic[i];
	if (!nic) {
		nic = array_add(s->nic, &s->n);
		if (!nic)
			return;
		*nic = (struct nic){ .health = { .rdma = rdma, .most_mbps = 0 } };
		snprintf(nic->directory, sizeof(nic->directory), "%s", directory);
		snprintf(nic->health.name, sizeof(nic->health.name), "%s", name);
	}
	nic->seen = true;
	nic->health.numa_node = nic_number(s, nic, rdma ? "../../device/numa_node" :
						  "device/numa_node");
	if (clock_ns(CLOCK_MONOTONIC) > nic->health.read_ns + NICS_STALE_NS)
		nic->turns = 0;		/* counts made meanwhile are not of the last minute */
	nic_read_state(s, nic);
	nic_read_counts(s, nic);
	nic->health.read_ns = clock_ns(CLOCK_MONOTONIC);
}

/* ---- all ------------------------------------------------------------------------------- */

typedef void name_fn(struct nics *s, const char *above, const char *name);

static void each_name(struct nics *s, const char *above, name_fn *take)
{
	char path[600];
	struct dirent *entry;
	DIR *directory;

	snprintf(path, sizeof(path), "%s/class/%s", s->sys, above);
	directory = opendir(path);
	while (directory && (entry = readdir(directory)))
		if (*entry->d_name != '.')
			take(s, above, entry->d_name);
	if (directory)
		closedir(directory);
}

static void take_port(struct nics *s, const char *above, const char *name)
{
	const char *device = strchr(above, '/') + 1;
	char directory[300], shown[48];

	if (snprintf(directory, sizeof(directory), "%s/%s", above, name) >= (int)sizeof(directory))
		return;
	snprintf(shown, sizeof(shown), "%.*s port %.8s", (int)strcspn(device, "/"), device, name);
	nic_read(s, true, directory, shown);
}

static void take_rdma(struct nics *s, const char *above, const char *name)
{
	char ports[300];

	if (snprintf(ports, sizeof(ports), "%s/%s/ports", above, name) < (int)sizeof(ports))
		each_name(s, ports, take_port);
}

/* Reads interfaces of hardware; one that is an RDMA device as well is read as that. */
static void take_net(struct nics *s, const char *above, const char *name)
{
	char path[700], directory[300];

	snprintf(path, sizeof(path), "%s/class/%s/%s/device", s->sys, above, name);
	if (access(path, F_OK))
		return;
	snprintf(path, sizeof(path), "%s/class/%s/%s/device/infiniband", s->sys, above, name);
	if (!access(path, F_OK) ||
	    snprintf(directory, sizeof(directory), "%s/%s", above, name) >= (int)sizeof(directory))
		return;
	nic_read(s, false, directory, name);
}

/* One that is gone was taken out. */
static void forget_gone(struct nics *s)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->n; i++)
		if (s->nic[i].seen)
			s->nic[kept++] = s->nic[i];
	s->n = kept;
}

static bool nics_prepare(void *state)
{
	const struct nics *s = state;

	return s->wanted;
}

static void nics_turn(void *state)
{
	struct nics *s = state;

	for (uint32_t i = 0; i < s->n; i++)
		s->nic[i].seen = false;
	each_name(s, "infiniband", take_rdma);
	each_name(s, "net", take_net);
	forget_gone(s);
}

static void nics_tell(void *state)
{
	struct nics *s = state;

	s->ntold = s->n;
	for (uint32_t i = 0; i < s->n; i++)
		s->told[i] = s->nic[i].health;
}

/* ---- the loop's side ------------------------------------------------------------------- */

int nics_new(struct nics **out, const char *sys, uint64_t interval_ns)
{
	struct nics *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	snprintf(s->sys, sizeof(s->sys), "%s", sys ?: "/sys");
	r = turns_start(&s->turns, &(struct turns_work){
		.name = "a network interface", .interval_ns = interval_ns ?: INTERVAL_NS,
		.prepare = nics_prepare, .turn = nics_turn, .tell = nics_tell, .end = free,
	}, s);
	if (r < 0) {
		free(s);
		return r;
	}
	*out = s;
	return 0;
}

void nics_free(struct nics *n)
{
	if (n)
		turns_stop(n->turns);
}

void nics_look(struct nics *n, bool wanted)
{
	turns_lock(n->turns);
	if (wanted && !n->wanted)
		turns_wake(n->turns);
	n->wanted = wanted;
	turns_unlock(n->turns);
}

uint32_t nics_all(struct nics *n, uint64_t now_ns, struct nic_health out[NICS_MOST])
{
	uint32_t count = 0;

	turns_lock(n->turns);
	for (uint32_t i = 0; i < n->ntold; i++)
		if (now_ns < n->told[i].read_ns + NICS_STALE_NS)
			out[count++] = n->told[i];
	turns_unlock(n->turns);
	return count;
}

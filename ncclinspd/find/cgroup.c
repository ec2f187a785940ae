/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No runtime promises a form of its paths, but all of them have the id in one component:
 *
 *   /docker/<id>    /system.slice/docker-<id>.scope    /machine.slice/libpod-<id>.scope
 *   /kubepods/burstable/pod<uid>/<id>
 *   /kubepods.slice/kubepods-pod<uid with _>.slice/cri-containerd-<id>.scope
 *   /machine.slice/machine-<name>.scope    /lxc.payload.<name>
 */
#include "ncclinspd/find/cgroup.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "util/procstat.h"
#include "util/utf8.h"

#define ID_DIGITS  64
#define UID_DIGITS 32

static size_t count_digits(const char *at, const char *end)
{
	size_t n = 0;

	while (at + n < end && isxdigit((unsigned char)at[n]))
		n++;
	return n;
}

/* 64 digits, and no letter right behind them. */
static void cgroup_find_id(const char *at, const char *end, char id[65])
{
	while (at < end) {
		size_t n = count_digits(at, end);

		if (n == ID_DIGITS && !(at + n < end && isalnum((unsigned char)at[n]))) {
			memcpy(id, at, n);
			id[n] = '\0';
			return;
		}
		for (at += n; at < end && !isxdigit((unsigned char)*at); at++)
			;
	}
}

/*
 * Takes 8-4-4-4-12 digits, - also written _; pods that a file on the node made have 32 of
 * them.
 */
static bool pod_take_uid(const char *at, const char *end, char uid[37])
{
	size_t n = 0, digits = 0;

	for (; at < end && n < 36; at++) {
		bool dash = *at == '-' || *at == '_';

		if (!dash && !isxdigit((unsigned char)*at))
			break;
		digits += !dash;
		uid[n++] = dash ? '-' : *at;
	}
	uid[n] = '\0';
	return digits == UID_DIGITS && (n == UID_DIGITS || (n == 36 && uid[8] == '-' &&
					uid[13] == '-' && uid[18] == '-' && uid[23] == '-'));
}

static void cgroup_find_pod(const char *at, const char *end, char uid[37])
{
	char text[37];

	for (; end - at > 3; at++)
		if (!strncmp(at, "pod", 3) && pod_take_uid(at + 3, end, text))
			strcpy(uid, text);
}

/* systemd writes what is no letter as \xHH. */
static void machine_copy_name(const char *at, const char *end, char name[65])
{
	size_t n = 0;
	unsigned byte;

	while (at < end && n < 64) {
		if (end - at >= 4 && sscanf(at, "\\x%2x", &byte) == 1 && byte >= ' ') {
			name[n++] = (char)byte;
			at += 4;
		} else {
			name[n++] = *at++;
		}
	}
	name[n] = '\0';
	utf8_clean(name, n);
}

static void cgroup_find_machine(const char *at, const char *end, char name[65])
{
	static const char *const forms[][2] = {
		{ "machine-", ".scope" }, { "systemd-nspawn@", ".service" }, { "lxc.payload.", "" },
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		size_t before = strlen(forms[i][0]), after = strlen(forms[i][1]);

		if ((size_t)(end - at) > before + after && !strncmp(at, forms[i][0], before) &&
		    !strncmp(end - after, forms[i][1], after))
			machine_copy_name(at + before, end - after, name);
	}
}

static void cgroup_parse_path(const char *at, const char *end, char container[65], char pod_uid[37])
{
	while (at < end) {
		const char *slash = memchr(at, '/', (size_t)(end - at));
		const char *stop = slash ? slash : end;

		if (!*container)
			cgroup_find_id(at, stop, container);
		if (!*container)
			cgroup_find_machine(at, stop, container);
		if (!*pod_uid)
			cgroup_find_pod(at, stop, pod_uid);
		at = stop + 1;
	}
}

void cgroup_parse(const char *text, char container[65], char pod_uid[37])
{
	*container = *pod_uid = '\0';
	while (*text && !*container) {
		const char *end = strchrnul(text, '\n'), *at = text;

		for (int colons = 0; at < end && colons < 2; at++)
			colons += *at == ':';
		cgroup_parse_path(at, end, container, pod_uid);
		text = *end ? end + 1 : end;
	}
}

void cgroup_identify(struct process *p, const char *proc, pid_t pid)
{
	char text[4096];

	if (procstat_read(AT_FDCWD, text, sizeof(text), "%s/%d/cgroup", proc, (int)pid))
		cgroup_parse(text, p->container, p->pod_uid);
}

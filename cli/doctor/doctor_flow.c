/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does the library load, and does what it records arrive?  A child plays NCCL: it makes
 * a communicator of one rank and one operation.  So no job is needed, nor a GPU, and
 * whatever the library does, it does not do it here.
 */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/base/member.h"
#include "cli/common/beside.h"
#include "cli/doctor/doctor.h"
#include "nccl/profiler.h"

#define LIBRARY	   "libnccl-profiler-insp.so"
#define TABLE	   "ncclProfiler_v6"
#define PATIENCE_S 10	/* wait for either side, on a busy machine */
#define POLL_NS	   100000000L

/* ---- the child -------------------------------------------------------------------- */

static char complaint[512];	/* the library's own, in the child */

__attribute__((format(printf, 5, 6)))
static void complaint_log(int level, unsigned long subsystems, const char *file, int line,
			  const char *format, ...)
{
	va_list args;

	if (level > NCCL_LOG_WARN)
		return;
	va_start(args, format);
	vsnprintf(complaint, sizeof(complaint), format, args);
	va_end(args);
}

static void operation_play(const struct nccl_profiler_v6 *table, void *context)
{
	struct nccl_descr_v6 group = { .type = NCCL_GROUP_API };
	struct nccl_descr_v6 api = { .type = NCCL_COLL_API };
	struct nccl_descr_v6 coll = { .type = NCCL_COLL };
	void *of_group = NULL, *of_api = NULL, *of_coll = NULL;

	table->startEvent(context, &of_group, &group);
	api.parentObj = of_group;
	api.collApi = (struct nccl_coll_api){ .func = "AllReduce", .count = 1,
					      .datatype = "ncclFloat32" };
	table->startEvent(context, &of_api, &api);
	coll.parentObj = of_api;
	coll.coll = (struct nccl_coll_v5){ .func = "AllReduce", .count = 1,
					   .datatype = "ncclFloat32", .nChannels = 1,
					   .algo = "RING", .proto = "LL", .parentGroup = of_group };
	table->startEvent(context, &of_coll, &coll);
	table->stopEvent(of_coll);
	table->stopEvent(of_api);
	table->stopEvent(of_group);
}

/* Says "ok" or why not on `out`; then lives until `in` ends.  With no name it only loads. */
static void library_play(const char *library, const char *name, int in, int out)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL), *context = NULL;
	const struct nccl_profiler_v6 *table = handle ? dlsym(handle, TABLE) : NULL;
	int mask = 0;
	char byte;

	if (!handle || !table) {
		dprintf(out, "%s", handle ? "it has no " TABLE : dlerror());
		return;
	}
	if (name) {
		setenv("NCCLINSP_LEVEL", "ops", 1);
		unsetenv("NCCL_PROFILE_EVENT_MASK");
		table->init(&context, (uint64_t)getpid(), &mask, name, 1, 1, 0, complaint_log);
		if (!context || *complaint) {
			dprintf(out, "%s", *complaint ? complaint : "it records nothing");
			return;
		}
		operation_play(table, context);
	}
	dprintf(out, "ok");
	close(out);
	while (read(in, &byte, 1) < 0 && errno == EINTR)
		continue;
	if (name)
		table->finalize(context);
}

/* ---- the parent -------------------------------------------------------------------- */

struct child {
	pid_t pid;
	int in;		/* closing it lets the child end */
	char word[512];	/* the child's answer */
};

static void child_listen(struct child *child, int from)
{
	struct pollfd fd = { .fd = from, .events = POLLIN };
	size_t used = 0;
	ssize_t n;

	while (used + 1 < sizeof(child->word) && poll(&fd, 1, PATIENCE_S * 1000) > 0) {
		n = read(from, child->word + used, sizeof(child->word) - 1 - used);
		if (n <= 0)
			break;
		used += (size_t)n;
	}
	child->word[used] = '\0';
	if (!used)
		snprintf(child->word, sizeof(child->word), "it ended or hung while it was loaded");
}

static int child_start(struct child *child, const char *library, const char *name)
{
	int in[2], out[2];

	if (pipe(in))
		return -errno;
	if (pipe(out)) {
		close(in[0]);
		close(in[1]);
		return -EMFILE;
	}
	fflush(NULL);
	child->pid = fork();
	if (!child->pid) {
		close(in[1]);
		close(out[0]);
		alarm(3 * PATIENCE_S);
		library_play(library, name, in[0], out[1]);
		exit(0);	/* not _exit(): the library says goodbye in a destructor */
	}
	close(in[0]);
	close(out[1]);
	child->in = in[1];
	if (child->pid > 0)
		child_listen(child, out[0]);
	close(out[0]);
	return child->pid < 0 ? -EAGAIN : 0;
}

static void child_end(struct child *child)
{
	close(child->in);
	if (child->pid > 0)
		waitpid(child->pid, NULL, 0);
}

/* "ok", or why the library does not do. */
static void library_try(const char *library, const char *name, struct child *child)
{
	*child = (struct child){ .in = -1 };
	if (child_start(child, library, name))
		snprintf(child->word, sizeof(child->word), "no process can be started");
}

static bool library_loads(const char *library, char *why, size_t size)
{
	struct child child;
	bool well;

	library_try(library, NULL, &child);
	child_end(&child);
	well = !strcmp(child.word, "ok");
	if (!well)
		snprintf(why, size, "%s", child.word);
	return well;
}

static bool library_find_beside(char *library, size_t size)
{
	char why[512];

	return beside_find(LIBRARY, "lib", library, size) &&
	       library_loads(library, why, sizeof(why));
}

/* The library this shell would have NCCL load, else the one the linker finds by name. */
static void library_wanted(char *library, size_t size)
{
	const char *value = getenv("NCCL_PROFILER_PLUGIN");

	if (!value || !*value || !strcmp(value, "none"))
		snprintf(library, size, LIBRARY);
	else
		snprintf(library, size, strchr(value, '/') || strstr(value, ".so")
						? "%s" : "libnccl-profiler-%s.so", value);
}

void doctor_library(struct doctor *doctor)
{
	char wanted[DOCTOR_PATH - 32], next[DOCTOR_PATH + 64], why[512] = "";

	library_wanted(wanted, sizeof(wanted));
	if (library_loads(wanted, why, sizeof(why))) {
		snprintf(doctor->library, sizeof(doctor->library), "%s", wanted);
		doctor_say(doctor, "library", DOCTOR_OK, NULL, "%s loads", wanted);
		return;
	}
	if (getenv("NCCL_PROFILER_PLUGIN") ||
	    !library_find_beside(doctor->library, sizeof(doctor->library))) {
		doctor->library[0] = '\0';
		doctor_say(doctor, "library", DOCTOR_FAILED,
			   "install it where the linker looks (make install, ldconfig), or set "
			   "NCCL_PROFILER_PLUGIN to its full path", "%s does not load: %s", wanted,
			   why);
		return;
	}
	snprintf(next, sizeof(next), "start jobs with NCCL_PROFILER_PLUGIN=%s", doctor->library);
	doctor_say(doctor, "library", DOCTOR_OK, next,
		   "%s loads, but only by its path: the linker does not find it by name",
		   doctor->library);
}

/* ---- all the way -------------------------------------------------------------------- */

static const json_t *rows_find(const json_t *rows, const char *key, const json_t *value)
{
	json_each(row, rows)
		if (json_equal(json_object_get(row, key), value))
			return row;
	return NULL;
}

#define NO_ANSWER (-1)
#define FOREIGN	  (-2)	/* the daemon sees its segment, and does not read such */

/* Records, or one of the above.  Names, since pids may be those of another namespace. */
static long long record_arrived(struct client *client, const char *name, pid_t pid)
{
	json_auto_t *comms = NULL, *processes = NULL, *wanted = json_string(name);
	json_auto_t *number = json_integer(pid);
	const json_t *comm, *member, *process;
	long long records = NO_ANSWER;

	if (!client_get(client, "/v1/comms", &comms) &&
	    !client_get(client, "/v1/processes", &processes)) {
		comm = rows_find(json_object_get(comms, "comms"), "name", wanted);
		member = json_array_get(json_object_get(comm, "local_ranks"), 0);
		process = rows_find(json_object_get(processes, "processes"), "pid",
				    json_object_get(member, "pid"));
		records = comm ? json_integer_value(json_object_get(process, "records")) : 0;
		if (!comm && rows_find(json_object_get(processes, "foreign"), "pid", number))
			records = FOREIGN;
	}
	return records;
}

static void record_wait_for(struct doctor *doctor, const char *name, pid_t pid)
{
	struct timespec pause = { .tv_nsec = POLL_NS };
	uint64_t begin = cli_now_ns(), spent = 0;
	long long records = 0;

	while (!records && spent < PATIENCE_S * UINT64_C(1000000000)) {
		records = record_arrived(doctor->cli->client, name, pid);
		spent = cli_now_ns() - begin;
		if (!records)
			nanosleep(&pause, NULL);
	}
	if (records > 0)
		doctor_say(doctor, "flow", DOCTOR_OK, NULL,
			   "an operation went from the library to the daemon and back in %" PRIu64
			   " ms", spent / 1000000);
	else if (records == FOREIGN)
		doctor_say(doctor, "flow", DOCTOR_FAILED,
			   "install the library and the daemon of one version, and restart the "
			   "daemon after an upgrade",
			   "%s writes a format that the daemon does not read", doctor->library);
	else if (records < 0)
		doctor_say(doctor, "flow", DOCTOR_FAILED, NULL, "%s",
			   client_error(doctor->cli->client));
	else
		doctor_say(doctor, "flow", DOCTOR_FAILED,
			   "does the daemon look there? see ncclinspd's --shm-dir and its log",
			   "what the library records in %s does not reach the daemon",
			   doctor_shm_dir());
}

void doctor_flow(struct doctor *doctor)
{
	char name[64];
	uint64_t number = 0;
	struct child child;

	if (!*doctor->library || !doctor->status)
		return;
	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) < 0)
		number = cli_now_ns();
	snprintf(name, sizeof(name), "ncclinsp-doctor-%016" PRIx64, number);
	library_try(doctor->library, name, &child);
	if (strcmp(child.word, "ok"))
		doctor_say(doctor, "flow", DOCTOR_FAILED, NULL, "the library records nothing: %s",
			   child.word);
	else
		record_wait_for(doctor, name, child.pid);
	child_end(&child);
}

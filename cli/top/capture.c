/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child process that takes a trace for the live view: its start, its messages through a
 * pipe, and its end.
 */
#include "cli/top/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/base/member.h"
#include "cli/top/rows.h"
#include "util/text.h"

#define SELF	 "/proc/self/exe"
#define ARGS	 16
#define PID_LIST 1024
#define SECOND	 UINT64_C(1000000000)
#define HOW_TO	 "open it in "	/* the command's last words: no news here */

void capture_name(char path[CAPTURE_PATH])
{
	const char *dir = access(".", W_OK) ? getenv("TMPDIR") ?: "/tmp" : NULL;
	time_t now = time(NULL);
	char stamp[32];
	struct tm utc;

	gmtime_r(&now, &utc);
	strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &utc);
	snprintf(path, CAPTURE_PATH, "%s%strace-%s.json.gz", dir ?: "", dir ? "/" : "", stamp);
}

/* ---- whom ------------------------------------------------------------------------ */

/* "4711,4712": the processes of these targets, each once. */
static void capture_list_pids(char list[PID_LIST], const json_t *bodies, const json_t *ranks)
{
	json_auto_t *once = json_object();
	size_t used = 0;

	list[0] = '\0';
	json_each(body, bodies) {
		json_each(row, ranks) {
			char pid[24];

			snprintf(pid, sizeof(pid), "%" JSON_INTEGER_FORMAT,
				 json_integer_value(json_object_get(row, "pid")));
			if (!rows_agree(row, body) || json_object_get(once, pid) ||
			    used + sizeof(pid) >= PID_LIST)
				continue;
			json_object_set_new(once, pid, json_true());
			used += (size_t)snprintf(list + used, PID_LIST - used, "%s%s",
						 used ? "," : "", pid);
		}
	}
}

/* The option that names whom: of several targets, all their processes. */
static void capture_add_whom(const char **args, size_t n, char list[PID_LIST], const json_t *bodies,
			     const json_t *ranks)
{
	const json_t *body = json_array_get(bodies, 0);
	const char *job = json_string_value(json_object_get(body, "job"));
	const char *comm = json_string_value(json_object_get(body, "comm_id"));
	const json_t *pid = json_object_get(body, "pid");

	if (json_array_size(bodies) > 1)
		capture_list_pids(list, bodies, ranks);
	else if (pid)
		snprintf(list, PID_LIST, "%" JSON_INTEGER_FORMAT, json_integer_value(pid));
	else
		snprintf(list, PID_LIST, "%s", job ?: comm ?: "");
	if (!list[0])
		return;		/* the node */
	args[n] = json_array_size(bodies) > 1 || pid ? "--pid" : job ? "--job" : "--comm";
	args[n + 1] = list;
}

/* ---- the process ----------------------------------------------------------------- */

/* Whatever it says on stderr goes into the pipe, which has room for all of it. */
static int process_spawn(struct capture *capture, const char *const *args, int to)
{
	posix_spawn_file_actions_t actions;
	int r = posix_spawn_file_actions_init(&actions);

	if (r)
		return -r;
	r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) ?:
	    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) ?:
	    posix_spawn_file_actions_adddup2(&actions, to, STDERR_FILENO) ?:
	    posix_spawn(&capture->pid, SELF, &actions, NULL, (char *const *)args, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (r)
		capture->pid = 0;
	return -r;
}

int capture_start(struct capture *capture, const char *socket, const json_t *bodies,
		  const json_t *ranks, uint64_t now_ns)
{
	const char *args[ARGS] = { "ncclinsp", "trace", "--socket", socket, "--output",
				   capture->path, "--for" };
	char seconds[16], list[PID_LIST] = "";
	int ends[2], r;

	if (capture->pid)
		return -EBUSY;
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	snprintf(seconds, sizeof(seconds), "%d", CAPTURE_S);
	args[7] = seconds;
	capture_add_whom(args, 8, list, bodies, ranks);
	r = process_spawn(capture, args, ends[1]);
	close(ends[1]);
	if (r) {
		close(ends[0]);
		return r;
	}
	capture->said = ends[0];
	capture->began_ns = capture->now_ns = now_ns;
	return 0;
}

/* ---- what came of it ------------------------------------------------------------- */

/* The next line of what was said, without the program's name; NULL: there is none. */
static const char *output_next_line(char **rest)
{
	static const char name[] = "ncclinsp: ";
	char *line = strsep(rest, "\n");

	if (!line || !*line)
		return NULL;
	return strncmp(line, name, strlen(name)) ? line : line + strlen(name);
}

/* The file's size tells more than its size before it was compressed, and comes first. */
static void capture_tell_written(const struct capture *capture, char *rest, char told[CAPTURE_TEXT])
{
	char bytes[TEXT_MAX] = "-";
	const char *line;
	struct stat st;

	if (!stat(capture->path, &st))
		text_bytes(bytes, sizeof(bytes), (uint64_t)st.st_size);
	snprintf(told, CAPTURE_TEXT, "written: %s, %s", capture->path, bytes);
	for (line = output_next_line(&rest); line; line = output_next_line(&rest)) {
		size_t used = strlen(told);

		if (strncmp(line, capture->path, strlen(capture->path)) &&
		    strncmp(line, HOW_TO, strlen(HOW_TO)))
			snprintf(told + used, CAPTURE_TEXT - used, "; %s", line);
	}
}

/* The command's own words: they end with its last line. */
static void capture_tell_end(const struct capture *capture, int status, char told[CAPTURE_TEXT])
{
	char said[4096];
	ssize_t n = read(capture->said, said, sizeof(said) - 1);
	bool written = WIFEXITED(status) &&
		       (!WEXITSTATUS(status) || WEXITSTATUS(status) == 130);
	char *rest = said;
	const char *line;

	said[n > 0 ? n : 0] = '\0';
	if (written) {
		capture_tell_written(capture, rest, told);
		return;
	}
	line = output_next_line(&rest);
	if (WIFSIGNALED(status))
		snprintf(told, CAPTURE_TEXT, "! the trace was ended by signal %d: no %s",
			 WTERMSIG(status), capture->path);
	else
		snprintf(told, CAPTURE_TEXT, "! no trace: %s", line ?: "nobody says why");
}

static void capture_take_end(struct capture *capture, int status, char told[CAPTURE_TEXT])
{
	capture_tell_end(capture, status, told);
	close(capture->said);
	capture->pid = 0;
	capture->ended = capture->ended ?: json_array();
	json_array_append_new(capture->ended, json_string(told));
}

bool capture_look(struct capture *capture, uint64_t now_ns, char told[CAPTURE_TEXT])
{
	int status;

	capture->now_ns = now_ns;
	if (!capture->pid || waitpid(capture->pid, &status, WNOHANG) != capture->pid)
		return false;
	capture_take_end(capture, status, told);
	return true;
}

void capture_put(const struct capture *capture, struct line *line)
{
	uint64_t s = (capture->now_ns - capture->began_ns) / SECOND;

	if (!capture->pid)
		return;
	if (s < CAPTURE_S)
		line_printf(line, LINE_WARN, "tracing %s: %d of %d s", capture->whom, (int)s,
			    CAPTURE_S);
	else
		line_printf(line, LINE_WARN, "tracing %s: writing", capture->whom);
	line_put(line, LINE_PLAIN, "  ");
}

void capture_end(struct capture *capture)
{
	char told[CAPTURE_TEXT];
	int status;

	if (capture->pid) {
		kill(capture->pid, SIGTERM);
		while (waitpid(capture->pid, &status, 0) < 0 && errno == EINTR)
			;
		capture_take_end(capture, status, told);
	}
	json_each(text, capture->ended)
		fprintf(stderr, "ncclinsp: %s\n", json_string_value(text));
	json_decref(capture->ended);
	capture->ended = NULL;
}

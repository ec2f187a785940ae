/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files by which a daemon goes on where another stopped, marks and wishes: of any bytes,
 * and of any rows in a file that is whole.  Either is refused, or all that comes of it could
 * have been said to this daemon.
 *
 * Input: a byte that says which file, and whether it is to be whole; then the file.
 */
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ncclinspd/levels/kept.h"
#include "ncclinspd/levels/marks.h"
#include "ncclinspd/levels/steer.h"
#include "reader/base/boot.h"
#include "reader/base/names.h"
#include "util/log.h"

#define NOW_NS		UINT64_C(1000000000000)
#define HEADER_BYTES	40	/* as kept.c has it */
#define FILE_MOST	(256u << 10)

static const struct kept_kind marks_kind = {
	.magic = UINT64_C(0x0a736b72616d636e), .version = 1,
	.most = MARKS_JOBS + MARKS_PROCESSES, .row_bytes = sizeof(struct mark), .what = "marks",
};
static const struct kept_kind wishes_kind = {
	.magic = UINT64_C(0x0a73656873697763), .version = 1, .most = WISHES,
	.row_bytes = sizeof(struct wish), .what = "levels",
};

static char dir[] = "/dev/shm/ncclinsp-fuzz.XXXXXX";
static char control[64], marks_path[80];
static struct process processes[3], *list[3];
static char env[] = "SLURM_JOB_ID=7\0";

static void remove_dir(void)
{
	unlink(marks_path);
	rmdir(dir);
}

/* Two of one user, in a job, and one of another. */
static void begin(void)
{
	demand(mkdtemp(dir));
	snprintf(control, sizeof(control), "%s/control", dir);
	snprintf(marks_path, sizeof(marks_path), "%s.marks", control);
	atexit(remove_dir);
	log_set_level(LOG_ERROR);
	for (uint32_t i = 0; i < 3; i++) {
		processes[i] = (struct process){ .id = i + 1, .instance = i + 1, .uid = i / 2,
						 .pid = (pid_t)i + 10 };
		processes[i].env_bytes = sizeof(env) - 1;
		memcpy(processes[i].env, env, sizeof(env) - 1);
		list[i] = &processes[i];
	}
}

/* The bytes as rows of a whole file, which the daemon writes. */
static size_t make_whole(const struct kept_kind *kind, char file[HEADER_BYTES + FILE_MOST],
			 const uint8_t *data, size_t size)
{
	uint32_t count = (uint32_t)(size / kind->row_bytes);
	struct kept_state state = { 0 };
	uint8_t boot_id[16];
	ssize_t n;
	int fd;

	boot_id_read(boot_id);
	kept_save(&state, marks_path, kind, boot_id, data, count < kind->most ? count : kind->most);
	fd = open(marks_path, O_RDONLY | O_CLOEXEC);
	demand(!state.error && fd >= 0);
	n = read(fd, file, HEADER_BYTES + FILE_MOST);
	close(fd);
	demand(n >= HEADER_BYTES);
	return (size_t)n;
}

static void write_file(const char *path, const char *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	demand(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
	close(fd);
}

static bool is_phase(name_t name)
{
	return !name || phase_is_sound(name);
}

static size_t count_marks(const struct marks *m)
{
	size_t n = 0, at = 0;

	for (const struct mark *mark; (mark = marks_next(m, &at)); n++)
		demand(mark->kind == WISH_JOB && mark->serial && phase_is_sound(mark->phase) &&
		       memchr(mark->job, '\0', sizeof(mark->job)));
	return n;
}

static void restore_marks(void)
{
	struct names *names;
	struct marks *m, *again;

	demand(names_new(&names, 64) == 0 && marks_new(&m, names, NULL, control, NOW_NS) == 0);
	for (int i = 0; i < 3; i++) {
		processes[i].phase = (struct phase){ 0 };
		marks_appeared(m, list[i]);
		demand(is_phase(processes[i].phase.name) && is_phase(processes[i].phase.before));
	}
	marks_save(m, list, 3);
	demand(marks_new(&again, names, NULL, control, NOW_NS) == 0);
	demand(count_marks(again) == count_marks(m));
	marks_look(m, list, 3, NOW_NS + 2 * WISH_IDLE_NS);
	marks_free(again);
	marks_free(m);
	names_free(names);
}

static void take_wishes(const char *bytes, size_t n)
{
	static struct wishes ws;
	uint8_t boot_id[16];

	boot_id_read(boot_id);
	if (control_parse_wishes(bytes, n, boot_id, &ws) < 0)
		return;
	for (int i = 0; i < WISHES; i++) {
		const struct wish *w = &ws.at[i];

		demand(!w->serial || w->level == WISH_KEEP || w->level <= NCI_LEVEL_TRACE);
		demand(!w->serial || w->sample == WISH_KEEP || w->sample <= NCI_SAMPLE_ALL);
	}
	for (int i = 0; i < 3; i++)
		wishes_have_level(&ws, list[i], NOW_NS);
	wishes_tidy(&ws, list, 3, NOW_NS);
	demand(wishes_next_end(&ws, NOW_NS) > NOW_NS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char file[HEADER_BYTES + FILE_MOST];
	bool marks, whole;
	size_t n;

	if (!size || size > FILE_MOST)
		return 0;
	if (!*control)
		begin();
	marks = data[0] & 1;
	whole = data[0] & 2;
	data++;
	size--;
	n = size;
	if (whole)
		n = make_whole(marks ? &marks_kind : &wishes_kind, file, data, size);
	else
		memcpy(file, data, size);
	if (marks) {
		write_file(marks_path, file, n);
		restore_marks();
	} else {
		take_wishes(file, n);
	}
	return 0;
}

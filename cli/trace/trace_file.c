/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of files to be drawn: it tells documents from streams, and draws either. */
#include "cli/base/intake.h"
#include "cli/base/member.h"
#include "cli/trace/trace_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/must.h"
#include "cli/trace/trace_kernels.h"
#include "util/cleanup.h"
#include "util/zst.h"

#define LINE_FIRST (1u << 16)
#define LINE_MOST  (64u << 20)	/* a document is one line, of 16 MiB at most */

/* ---- documents ------------------------------------------------------------------- */

static uint64_t row_end_ns(const json_t *row)
{
	uint64_t stop_ns = member_number(row, "gpu_stop_mono_ns", 0);

	if (!stop_ns)
		stop_ns = member_number(row, "stop_mono_ns", 0);
	return stop_ns ? stop_ns : member_number(row, "done_mono_ns", 0);
}

static int rows_by_end(const void *a, const void *b)
{
	uint64_t x = row_end_ns(*(const json_t *const *)a),
		y = row_end_ns(*(const json_t *const *)b);

	return (x > y) - (x < y);
}

/* Draws rows in the order of their ends, as a stream would tell them. */
static size_t rows_each(struct trace *t, const json_t *rows,
			void (*draw)(struct trace *t, const json_t *row))
{
	size_t n = json_array_size(rows);
	CLEANUP(cleanup_freep) const json_t **order = must(calloc(n + 1, sizeof(*order)));

	for (size_t i = 0; i < n; i++)
		order[i] = json_array_get(rows, i);
	qsort(order, n, sizeof(*order), rows_by_end);
	for (size_t i = 0; i < n; i++)
		draw(t, order[i]);
	return n;
}

int trace_answers(struct trace *t, const json_t *root, const char **why)
{
	uint64_t until_ns = member_number(root, "written_mono_ns", 0);
	size_t n;

	trace_who_read(t->who, json_object_get(root, "processes"), json_object_get(root, "comms"));
	if (t->kernels && trace_kernels_join(t, root, why))
		return -EBADMSG;
	n = rows_each(t, json_object_get(root, "collectives"), trace_operation);
	n += rows_each(t, json_object_get(root, "transfers"), trace_transfer);
	if (t->kernels)
		trace_kernels_draw(t);
	json_each(row, json_object_get(root, "inflight"))
		trace_inflight(t, row, until_ns);
	t->from_ns = t->w.first_ns;
	rows_each(t, json_object_get(root, "findings"), trace_finding);
	*why = "it has no single operations: black boxes, exemplars and files of ncclinsp "
	       "snapshot have them";
	return n + json_array_size(json_object_get(root, "inflight")) ? 0 : -ESRCH;
}

int trace_document(struct trace *t, const json_t *root, const char **why)
{
	const char *format = member_text(root, "format", "");

	*why = "not a black box, exemplar or stream of ncclinspd";
	if (strcmp(format, "ncclinsp-snapshot") && strcmp(format, "ncclinsp-exemplar"))
		return -EBADMSG;
	*why = "of another version of ncclinspd";
	if (member_number(root, "format_version", 0) != 1)
		return -EBADMSG;
	snprintf(t->host, sizeof(t->host), "%s",
		 member_text(json_object_get(root, "status"), "host", ""));
	return trace_answers(t, root, why);
}

/* ---- lines ----------------------------------------------------------------------- */

/*
 * The next line, terminated, without its end; 0: there is none.  Not getline(), for which
 * there is no line that is too long.
 */
static ssize_t file_next_line(FILE *in, char **line, size_t *room)
{
	size_t n = 0;
	int c;

	while ((c = getc_unlocked(in)) != EOF && c != '\n') {
		if (n + 1 == LINE_MOST)
			return -EFBIG;
		if (n + 1 >= *room) {
			*room = *room ? 2 * *room : LINE_FIRST;
			*line = must(realloc(*line, *room));
		}
		(*line)[n++] = (char)c;
	}
	if (!n && c == EOF)
		return 0;
	if (!*line)
		*line = must(malloc(*room = LINE_FIRST));
	(*line)[n] = '\0';
	return (ssize_t)n + 1;
}

static int file_read_lines(struct trace *t, FILE *in, const char **why)
{
	CLEANUP(cleanup_freep) char *line = NULL;
	bool known = false;
	size_t room = 0;
	ssize_t n;
	int r = 0;

	*why = "not a black box, exemplar or stream of ncclinspd";
	while (!r && (n = file_next_line(in, &line, &room)) > 0) {
		json_t *root = intake_read(line, (size_t)n - 1, NULL);

		if (!known && json_object_get(root, "format")) {
			r = trace_document(t, root, why);
			json_decref(root);
			return r;
		}
		if (!known && t->kernels && json_object_get(root, "kind")) {
			*why = "--kernels goes with a black box, a snapshot or an exemplar, not "
			       "with a stream";
			r = -EBADMSG;
		} else if (!json_object_get(root, "kind"))
			t->malformed++;
		else
			trace_take_line(t, root);
		known = known || json_object_get(root, "kind");
		if (!known)
			r = -EBADMSG;
		json_decref(root);
	}
	return r || !known ? -EBADMSG : 0;
}

/* Snapshots are written compressed. */
static int file_read_compressed(struct trace *t, FILE *in, const char **why)
{
	CLEANUP(cleanup_freep) char *packed = must(malloc(LINE_MOST));
	CLEANUP(cleanup_freep) char *text = NULL;
	size_t n = fread(packed, 1, LINE_MOST, in), bytes;
	json_auto_t *root = NULL;

	*why = "damaged, or too large";
	if (n == LINE_MOST || zst_expand(packed, n, LINE_MOST, &text, &bytes) < 0)
		return -EBADMSG;
	root = intake_read(text, bytes, NULL);
	return root ? trace_document(t, root, why) : -EBADMSG;
}

int trace_read(struct trace *t, FILE *in, const char **why)
{
	int c = getc(in);

	if (c != EOF)
		ungetc(c, in);
	return c == 0x28 ? file_read_compressed(t, in, why) : file_read_lines(t, in, why);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp export: operations as they end, in files as NVIDIA's NCCL Inspector writes them. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/base/intake.h"
#include "cli/base/interrupt.h"
#include "cli/base/member.h"
#include "cli/base/must.h"
#include "cli/common/label.h"
#include "cli/common/members.h"
#include "cli/export/inspector.h"
#include "cli/view/columns.h"
#include "util/list.h"

#define ASK_AGAIN_NS UINT64_C(1000000000)	/* about communicators that nobody knew */
#define ASK_MS	     2000

/* One process's. */
struct export_file {
	json_int_t pid;
	FILE *out;
};

struct export {
	struct cli *cli;
	struct client *asks;	/* while the other one has the stream */
	struct listing_query query;
	json_t *names;		/* communicators, as labels are made of them */
	json_t *comms;		/* answer of /v1/comms; NULL: none yet */
	uint64_t asked_ns;
	char host[256];
	LIST(struct export_file) files;
	json_t *numbers;	/* operations written so far, by comm_number_key() */
	uint64_t until_ns;	/* the end; 0: until interrupted */
	int64_t left;		/* operations; CLI_ANY: no end */
	uint64_t written, untimed, derived, lost;
	int error;		/* errno of what could not be written */
};

/* ---- files ----------------------------------------------------------------------------- */

static struct export_file *file_open_for(struct export *e, json_int_t pid)
{
	char path[4096];
	struct export_file *file;
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s-pid%lld.log", e->cli->inspector_dir, e->host,
		 (long long)pid);
	out = fopen(path, "wxe");
	if (!out) {
		e->error = errno;
		return NULL;
	}
	file = must(list_append(&e->files));
	*file = (struct export_file){ pid, out };
	return file;
}

static struct export_file *export_file_of(struct export *e, json_int_t pid)
{
	for (size_t i = 0; i < e->files.n; i++)
		if (e->files.at[i].pid == pid)
			return &e->files.at[i];
	return file_open_for(e, pid);
}

static void export_close_files(struct export *e)
{
	for (size_t i = 0; i < e->files.n; i++)
		if (fclose(e->files.at[i].out) && !e->error)
			e->error = errno;
}

/* Made, or empty: what is there already is not mixed with what comes. */
static int directory_prepare(const char *path)
{
	struct dirent *entry;
	DIR *dir;

	if (!mkdir(path, 0777))
		return CLI_DONE;
	dir = errno == EEXIST ? opendir(path) : NULL;
	if (!dir) {
		fprintf(stderr, "ncclinsp: cannot write into %s: %s\n", path, strerror(errno));
		return CLI_FAILED;
	}
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			break;
	closedir(dir);
	if (!entry)
		return CLI_DONE;
	fprintf(stderr, "ncclinsp: %s is not empty: give a new or empty directory\n", path);
	return CLI_FAILED;
}

/* ---- operations ------------------------------------------------------------------------ */

static const json_t *export_find_comm(const struct export *e, const json_t *op)
{
	json_each(comm, json_object_get(e->comms, "comms"))
		if (json_equal(json_object_get(comm, "comm_id"), json_object_get(op, "comm_id")) &&
		    json_equal(json_object_get(comm, "nranks"), json_object_get(op, "nranks")))
			return comm;
	return NULL;
}

/* The number of the communicator's nodes; 0: not known. */
static json_int_t export_nnodes(struct export *e, const json_t *op)
{
	const json_t *comm = export_find_comm(e, op);
	uint64_t now_ns = cli_now_ns();

	if (!comm && now_ns - e->asked_ns > ASK_AGAIN_NS) {
		e->asked_ns = now_ns;
		json_decref(e->comms);
		e->comms = NULL;
		client_get(e->asks, "/v1/comms?fields=comm_id,nranks,nnodes", &e->comms);
		comm = export_find_comm(e, op);
	}
	return json_integer_value(json_object_get(comm, "nnodes"));
}

/* NCCL counts no sends and receives: they are counted here. */
static void comm_number_key(char *key, size_t size, const json_t *op)
{
	snprintf(key, size, "%lld/%.24s/%lld/%.24s",
		 (long long)json_integer_value(json_object_get(op, "pid")),
		 member_text(op, "comm_id", "-"),
		 (long long)json_integer_value(json_object_get(op, "rank")),
		 member_text(op, "func", "-"));
}

static void export_put_record(struct export *e, const json_t *op, const json_t *record)
{
	struct export_file *file = export_file_of(e,
						  json_integer_value(json_object_get(op, "pid")));

	if (!file)
		return;
	if (json_dumpf(record, file->out, JSON_COMPACT | JSON_REAL_PRECISION(9)) ||
	    fputc('\n', file->out) == EOF)
		e->error = errno;
	else
		e->written++;
}

static void export_take_operation(struct export *e, json_t *op)
{
	struct inspector_context context = { .host = e->host };
	json_auto_t *record = NULL;
	json_auto_t *rows = json_pack("[O]", op);
	char key[128];

	label_learn(e->names, op);
	label_rows(rows, e->names);
	label_put_jobs(rows, e->query.jobs);
	if (!listing_wants(&e->query, op))
		return;
	context.nnodes = export_nnodes(e, op);
	context.real_offset_ns = cli_real_offset_ns();
	comm_number_key(key, sizeof(key), op);
	context.number = json_integer_value(json_object_get(e->numbers, key));
	switch (inspector_record(op, &context, &record)) {
	case INSPECTOR_WRITTEN:
		export_put_record(e, op, record);
		json_object_set_new(e->numbers, key, json_integer(context.number + 1));
		break;
	case INSPECTOR_UNTIMED:
		e->untimed++;
		break;
	case INSPECTOR_DERIVED:
		e->derived++;
	}
}

/* ---- the stream ------------------------------------------------------------------------ */

static bool export_is_over(const struct export *e)
{
	return interrupt_came() || e->error || (e->until_ns && cli_now_ns() >= e->until_ns) ||
	       (e->left != CLI_ANY && e->written >= (uint64_t)e->left);
}

static bool export_goes_on(void *arg)
{
	return !export_is_over(arg);
}

static int export_on_line(void *arg, const char *text, size_t len)
{
	struct export *e = arg;
	json_auto_t *event = intake_read(text, len, NULL);
	const char *kind = member_text(event, "kind", "");

	if (!strcmp(kind, "collective"))
		export_take_operation(e, event);
	else if (!strcmp(kind, "lost"))
		e->lost += (uint64_t)json_integer_value(json_object_get(event, "n"));
	return export_is_over(e);
}

/* *lost: records of all processes that one sees.  As client_get(). */
static int export_read_status(struct export *e, json_int_t *lost)
{
	json_auto_t *status = NULL;
	int r = client_get(e->cli->client, "/v1/status", &status);

	if (r)
		return r;
	*lost = json_integer_value(report_get(status, "ingest.lost"));
	snprintf(e->host, sizeof(e->host), "%s", member_text(status, "host", "unknown"));
	return 0;
}

/* Tells what was written, what is missing, and why: nobody finds that out from the files. */
static void export_tell(const struct export *e, json_int_t records)
{
	const char *dir = e->cli->inspector_dir;

	if (!e->cli->quiet)
		fprintf(stderr, "ncclinsp: %" PRIu64 " operation%s of %" PRIu32 " process%s in "
			"%s\n", e->written, e->written == 1 ? "" : "s", e->files.n,
			e->files.n == 1 ? "" : "es", dir);
	if (e->untimed && !e->cli->quiet)
		fprintf(stderr, "ncclinsp: skipped, because not timed: %" PRIu64 "; to time all: "
			"ncclinsp level net --sample all\n", e->untimed);
	if (e->derived && !e->cli->quiet)
		fprintf(stderr, "ncclinsp: skipped, because made of sends and receives that are "
			"written: %" PRIu64 "\n", e->derived);
	if (e->lost)
		fprintf(stderr, "ncclinsp: lines missing, because this program was too slow: %"
			PRIu64 "\n", e->lost);
	if (records > 0)
		fprintf(stderr, "ncclinsp: records lost before the daemon read them: %lld; "
			"ncclinsp ps shows of which processes\n", (long long)records);
	if (e->error)
		fprintf(stderr, "ncclinsp: cannot write into %s: %s\n", dir, strerror(e->error));
}

static int export_outcome(const struct export *e, int r, json_int_t records)
{
	export_tell(e, records);
	if (r < 0)
		return cli_fail(e->cli, r);
	if (e->error || e->lost || records > 0)
		return CLI_FAILED;
	if (!export_is_over(e)) {
		fprintf(stderr, "ncclinsp: the daemon ended the stream; what came is kept\n");
		return CLI_NO_DAEMON;
	}
	return e->written ? CLI_DONE : CLI_NOTHING;
}

static int export_follow(struct export *e)
{
	struct cli *cli = e->cli;
	json_int_t before, after;
	int r = export_read_status(e, &before), code;

	if (!r && members_asked(cli))
		r = members_get(cli, &e->query.members);
	if (!r)
		r = listing_jobs(cli, &e->query.jobs);
	if (r)
		return cli_fail(cli, r);
	code = directory_prepare(cli->inspector_dir);
	if (code)
		return code;
	interrupt_catch();
	r = client_stream(cli->client, "/v1/stream?kinds=collective", export_on_line,
			  export_goes_on, e);
	export_close_files(e);
	if (r < 0)
		return export_outcome(e, r, 0);
	return export_outcome(e, r, export_read_status(e, &after) ? 0 : after - before);
}

int cmd_export(struct cli *cli)
{
	const struct listing listing = { .columns = run_columns, .count = run_column_count };
	struct export e = { .cli = cli, .left = cli->samples, .numbers = json_object() };
	int code;

	if (!cli->inspector_dir)
		return cli_reject("export needs a format and a directory: --inspector-json DIR");
	if (listing_begin(&e.query, cli, &listing, &code)) {
		e.names = listing_comms(cli);
		e.asks = client_new(client_socket(cli->client), ASK_MS);
		if (cli->for_ns)
			e.until_ns = cli_now_ns() + cli->for_ns;
		code = export_follow(&e);
		json_decref(e.names);
		json_decref(e.comms);
		client_free(e.asks);
	}
	list_deinit(&e.files);
	json_decref(e.numbers);
	listing_end(&e.query);
	return code;
}

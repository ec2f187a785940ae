/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/processes: who writes, or wrote, a segment. */
#include "ncclinspd/serve/serve_impl.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "ncclinspd/levels/kernels.h"
#include "reader/base/job.h"
#include "reader/time/stamps.h"
#include "util/cleanup.h"

#define FOREIGN_ROWS	64	/* the rest is told when these are gone */

int32_t serve_job_number(const char *text)
{
	uint64_t value;

	return text && query_number(text, 10, INT32_MAX, &value) ? (int32_t)value : UNKNOWN_I32;
}

static void put_number(struct json *j, const char *key, const char *text)
{
	int32_t value = serve_job_number(text);

	json_key(j, key);
	if (value != UNKNOWN_I32)
		json_put_i64(j, value);
	else
		json_put_null(j);
}

static void put_job(const struct serve *s, struct json *j, const void *row)
{
	const struct process *p = row;

	(void)s;
	json_begin(j, '{');
	json_key(j, "scheduler");
	json_put_string(j, job_scheduler(p));
	json_key(j, "id");
	json_put_string(j, job_id(p));
	put_number(j, "rank", job_rank(p));
	put_number(j, "local_rank", job_local_rank(p));
	put_number(j, "world_size", job_world_size(p));
	json_end(j, '}');
}

static const struct field container_fields[] = {
#define F(name, member) { name, FIELD_TEXT, offsetof(struct process, member), NULL }
	F("id", container),
	F("pod_uid", pod_uid),
#undef F
	{ NULL, 0, 0, NULL },
};

void serve_put_container(const struct serve *s, struct json *j, const void *row)
{
	const struct process *p = row;

	if (!p->contained && !*p->container) {
		json_put_null(j);
		return;
	}
	json_begin(j, '{');
	rows_put(s, j, container_fields, p);
	json_key(j, "pod");
	json_put_string(j, job_pod(p));
	json_key(j, "namespace");
	json_put_string(j, job_namespace(p));
	json_end(j, '}');
}

static void user_read(struct user *u)
{
	FILE *f = fopen("/etc/passwd", "re");
	struct passwd *entry;

	u->name[0] = '\0';
	while (f && (entry = fgetpwent(f)))
		if (entry->pw_uid == u->uid) {
			snprintf(u->name, sizeof(u->name), "%s", entry->pw_name);
			break;
		}
	if (f)
		fclose(f);
}

/*
 * The name is from the local file only: a directory service may take seconds to answer,
 * and nobody drains meanwhile.  A client that wants such a name has the uid.
 */
const char *serve_user_name(const struct serve *s, uid_t uid)
{
	static const uint64_t fresh_ns = UINT64_C(60) * 1000000000;
	struct user *u = &s->users[uid % SERVE_USERS];

	if (u->uid != uid || u->until_ns <= s->now_ns) {
		u->uid = uid;
		u->until_ns = s->now_ns + fresh_ns;
		user_read(u);
	}
	return *u->name ? u->name : NULL;
}

static void put_user(const struct serve *s, struct json *j, const void *row)
{
	json_put_string(j, serve_user_name(s, ((const struct process *)row)->uid));
}

static void put_level(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	json_put_string(j, process_level(row));
}

/* A plugin that follows no control file has another format, and is in `foreign`. */
static void put_true(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	(void)row;
	json_put_bool(j, true);
}

static void put_reason(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	json_put_string(j, kernels_reason(row));
}

/* NULL: no kernel of it is timed. */
const char *process_sampling(const struct process *p)
{
	enum kernels_state state = kernels_state(p);

	if (!p->steering.known || state == KERNELS_NEVER || state == KERNELS_SETTLING)
		return NULL;
	return state == KERNELS_ALWAYS ? "all" : "budget";
}

static void put_sampling(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	json_put_string(j, process_sampling(row));
}

static void put_comms(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	json_put_u64(j, process_comms_open(row));
}

static const struct field loss_fields[] = {
#define F(name) { #name, FIELD_U64, offsetof(struct loss, name), NULL }
	F(overrun),
	F(before),
	F(pool),
	F(lane),
	F(string),
	F(comm),
	F(rejected),
	F(unknown),
	F(evicted),
#undef F
	{ NULL, 0, 0, NULL },
};

void serve_put_refused(struct json *j, const uint64_t *refused)
{
	json_begin(j, '{');
	for (int fault = 0; fault < STAMP_FAULT_END; fault++) {
		if (!stamps_fault_text((enum stamp_fault)fault))
			continue;
		json_key(j, stamps_fault_text((enum stamp_fault)fault));
		json_put_u64(j, refused[fault]);
	}
	json_end(j, '}');
}

static void put_refused(const struct serve *s, struct json *j, const void *row)
{
	const struct process *p = row;
	uint64_t sum = 0;

	(void)s;
	for (int fault = 0; fault < STAMP_FAULT_END; fault++)
		sum += p->stamps_refused[fault];
	json_put_u64(j, sum);
}

static void put_refused_by(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	serve_put_refused(j, ((const struct process *)row)->stamps_refused);
}

static const struct field ignored_fields[] = {
#define F(name) { #name, FIELD_U64, offsetof(struct ignored, name), NULL }
	F(event),
	F(state),
	F(finalized),
	F(context),
	F(handle),
#undef F
	{ NULL, 0, 0, NULL },
};

static void put_ignored(const struct serve *s, struct json *j, const void *row)
{
	json_begin(j, '{');
	rows_put(s, j, ignored_fields, &((const struct process *)row)->ignored);
	json_end(j, '}');
}

static void put_loss(const struct serve *s, struct json *j, const void *row)
{
	json_begin(j, '{');
	rows_put(s, j, loss_fields, &((const struct process *)row)->loss);
	json_end(j, '}');
}

void put_process_state(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	json_put_string(j, process_state_text(row));
}

const struct field process_fields[] = {
#define F(name, kind, member) { name, kind, offsetof(struct process, member), NULL }
#define P(name, put) { name, FIELD_PUT, 0, put }
	F("pid", FIELD_I32, pid),
	F("ns_pid", FIELD_I32, ns_pid),
	P("container", serve_put_container),
	F("uid", FIELD_U32, uid),
	P("user", put_user),
	F("command", FIELD_TEXT, command),
	P("state", put_process_state),
	F("segment", FIELD_TEXT, file),
	F("instance", FIELD_HEX, instance),
	F("api_version", FIELD_U32_0, api_version),
	F("plugin_version", FIELD_TEXT, plugin_version),
	P("level", put_level),
	P("level_reason", put_reason),
	P("sampling", put_sampling),
	P("steerable", put_true),
	P("steering", serve_put_steering),
	P("wanted", serve_put_wanted),
	F("event_mask", FIELD_U32, mask),
	P("job", put_job),
	F("phase", FIELD_NAME, phase.name),
	F("phase_since", FIELD_TIME, phase.since_ns),
	F("lanes", FIELD_U32, lanes),
	F("records", FIELD_U64, records),
	F("bytes", FIELD_U64, bytes),
	P("lost", put_loss),
	P("ignored", put_ignored),
	P("stamps_refused", put_refused),
	P("stamps_refused_by", put_refused_by),
	P("comms", put_comms),
	F("first_seen", FIELD_TIME, first_seen_ns),
	F("last_record", FIELD_TIME, last_record_ns),
	F("ended", FIELD_TIME, ended_ns),
#undef F
#undef P
	{ NULL, 0, 0, NULL },
};

const struct field_table process_tables[] = { { NULL, process_fields }, { NULL, NULL } };

static const struct field foreign_fields[] = {
#define F(name, kind, member) { name, kind, offsetof(struct foreign, member), NULL }
	F("pid", FIELD_I32, pid),
	F("uid", FIELD_U32, uid),
	F("segment", FIELD_TEXT, file),
	F("abi_major", FIELD_U32, abi_major),
	F("abi_minor", FIELD_U32, abi_minor),
#undef F
	{ NULL, 0, 0, NULL },
};

/* Processes that record in a format that is not ours: running, and not to be listed above. */
static void put_foreign(const struct request *r, struct json *j)
{
	const struct serve_source *source = &r->serve->source;
	const struct foreign *f;
	uint32_t n = 0;

	json_key(j, "abi_major");
	json_put_u64(j, NCI_ABI_MAJOR);
	json_key(j, "foreign");
	json_begin(j, '[');
	for (size_t i = 0; source->next_foreign && n < FOREIGN_ROWS &&
			   (f = source->next_foreign(source->arg, &i));) {
		if (!viewer_sees(&r->viewer, f->uid))
			continue;
		json_begin(j, '{');
		rows_put(r->serve, j, foreign_fields, f);
		json_end(j, '}');
		n++;
	}
	json_end(j, ']');
}

void serve_processes(struct request *r, struct json *j)
{
	struct process *p;

	json_key(j, "processes");
	json_begin(j, '[');
	for (size_t i = 0; (p = serve_next_process(r->serve, &r->viewer, &i));) {
		json_begin(j, '{');
		rows_put_chosen(r->serve, j, process_fields, p, &r->chosen, 0);
		json_end(j, '}');
	}
	json_end(j, ']');
	put_foreign(r, j);
}

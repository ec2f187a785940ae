/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/processes: who writes, or wrote, a segment. */
#include <pwd.h>
#include <stdio.h>

#include "ncclinspd/levels/kernels.h"
#include "ncclinspd/serve/serve_parts.h"
#include "reader/base/job.h"

#define FOREIGN_ROWS	64	/* the rest is told when these are gone */

static void process_user_read(struct user *u)
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
		process_user_read(u);
	}
	return *u->name ? u->name : NULL;
}

/* NULL: no kernel of it is timed. */
const char *process_sampling(const struct process *p)
{
	enum kernels_state state = kernels_state(p);

	if (!p->steering.known || state == KERNELS_NEVER || state == KERNELS_SETTLING)
		return NULL;
	return state == KERNELS_ALWAYS ? "all" : "budget";
}

#include "schema/process.h"

void serve_put_container(const struct rows_writer *w, struct json *j, const void *row)
{
	const struct process *p = row;

	if (p->contained || *p->container)
		rows_put_object(w, j, container_fields, p);
	else
		json_put_null(j);
}

const struct field_table process_tables[] = { { NULL, process_fields }, { NULL, NULL } };

/* Processes that record in a format that is not ours: running, and not to be listed above. */
static void foreign_put(const struct request *r, struct json *j)
{
	const struct serve_source *source = &r->serve->source;
	const struct foreign *f;
	uint32_t n = 0;

	json_member_u64(j, "abi_major", NCI_ABI_MAJOR);
	json_begin_member(j, "foreign", '[');
	for (size_t i = 0; source->next_foreign && n < FOREIGN_ROWS &&
			   (f = source->next_foreign(source->arg, &i));) {
		if (!viewer_sees(&r->viewer, f->uid))
			continue;
		rows_put_object(&r->serve->writer, j, foreign_fields, f);
		n++;
	}
	json_end(j, ']');
}

void serve_processes(struct request *r, struct json *j)
{
	struct process *p;

	json_begin_member(j, "processes", '[');
	for (size_t i = 0; (p = serve_next_process(r->serve, &r->viewer, &i));) {
		serve_meanwhile(r->serve);
		json_begin(j, '{');
		rows_put_chosen(&r->serve->writer, j, process_fields, p, &r->chosen, 0);
		json_end(j, '}');
	}
	json_end(j, ']');
	foreign_put(r, j);
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_SERVE_SERVER_H
#define NCCLINSPD_SERVE_SERVER_H

/* The server as its own files know it, and what a client may see of its source. */

#include "ncclinspd/serve/serve.h"
#include "reader/base/accounts.h"
#include "reader/base/process.h"
#include "rows/rows.h"
#include "util/json.h"
#include "util/log.h"

struct viewer {
	uid_t uid;
	bool all;	/* root, the daemon's own user, a member of the group */
	bool raises;	/* may have a communicator of all users timed in detail */
};

static inline bool viewer_sees(const struct viewer *v, uid_t uid)
{
	return v->all || v->uid == uid;
}

#define SERVE_USERS	64

/* A line of /etc/passwd, as of a moment ago; an empty name: there was none. */
struct user {
	uid_t uid;
	char name[40];
	uint64_t until_ns;	/* 0: unused */
};

struct serve {
	struct rows_writer writer;
	struct serve_config config;
	struct serve_source source;
	char host[256];
	char boot_id[40];
	int fd;			/* an epoll set: config.listen_fd and the clients */
	bool listening;		/* false: nothing to make a connection of */
	uint64_t listen_again_ns;
	struct log_rate accept_rate;
	gid_t group;		/* its members see everything; -1: there is no such group */
	uint64_t now_ns;
	struct serve_client *clients;
	uint32_t nclients;
	uint64_t round;		/* rounds of the clients' turns so far */
	uint64_t spent_ns[ACCOUNTS_TALLY];	/* time of accounts' turns, halved each second */
	uint64_t spent_since_ns;		/* the time at which it was halved last */
	struct stream *streams;
	uint32_t tracing;	/* streams that take records */
	uint64_t collected, collected_ns;	/* answers of /metrics, and when the last was */
	struct json line;	/* scratch of the streams */
	struct user *users;	/* SERVE_USERS of them, by uid */
	struct serve_sums *sums;	/* the snapshot before's; NULL: none was asked for yet */
};

/* The server of a field's function. */
static inline const struct serve *serve_of(const struct rows_writer *w)
{
	return (const struct serve *)((const char *)w - offsetof(struct serve, writer));
}

/* Let the source do what cannot wait; before anything that takes a while. */
static inline void serve_meanwhile(const struct serve *s)
{
	if (s->source.meanwhile)
		s->source.meanwhile(s->source.arg);
}

/* The same for a stage that is asked, whose `arg` is the server. */
static inline void serve_meanwhile_arg(void *arg)
{
	serve_meanwhile(arg);
}

/* All processes that `v` sees: step from *i = 0 until NULL. */
struct process *serve_next_process(const struct serve *s, const struct viewer *v, size_t *i);

/* The users of these processes, 1 at least: how many have an equal share of a bounded table. */
uint32_t serve_count_users(const struct serve *s, const struct viewer *v);

/* The user's name; NULL: the local files have none. */
const char *serve_user_name(const struct serve *s, uid_t uid);

#endif

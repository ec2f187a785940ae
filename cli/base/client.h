/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_BASE_CLIENT_H
#define CLI_BASE_CLIENT_H

/*
 * The daemon's API, asked over its Unix socket, or through ssh on another node.  One connection
 * is kept and reused; after a failure the next request connects anew.
 *
 * Failures are negative errno values: -ENOENT and -ECONNREFUSED when no daemon
 * is there, -EACCES, -ETIMEDOUT, -EPROTO for an answer that makes no sense,
 * -ESRCH for what the daemon does not have, -EBADMSG for another error that it
 * answered.  client_error() then says in words what failed, why, what to do.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct client;

/*
 * `path` NULL: $NCCLINSP_SOCKET, or the first of the system's and the user's
 * own daemon that answers.  Nothing is opened yet.  Exits when memory runs out.
 */
struct client *client_new(const char *path, long timeout_ms);
void client_free(struct client *client);

/*
 * Have the daemon of another node asked from now on, through ssh.  `socket`: where it listens
 * there; NULL: found as here.  `asks`: ssh may ask its user.  Times on that node's CLOCK_MONOTONIC
 * (*_mono_ns) are moved to this node's in objects and lines, not in client_body().  The texts are
 * the caller's.
 */
void client_set_host(struct client *client, const char *host, const char *socket, bool asks);

/* A connection of the caller's own to the daemon of this node, or a failure. */
int client_connect(struct client *client);

/* Sets how long a request may take from now on; of another node it stays as it was. */
void client_set_timeout(struct client *client, long timeout_ms);

/*
 * Have `answer` asked in place of a daemon from now on: it returns a new object, or NULL where
 * it has none for that target.
 */
void client_set_source(struct client *client, json_t *(*answer)(void *arg, const char *target),
		       void *arg);

/* The source's streams, with the same `arg`: as client_stream().  NULL: it has none. */
typedef int client_source_stream(void *arg,
				 int (*on_line)(void *arg, const char *text, size_t len),
				 bool (*goes_on)(void *arg), void *line_arg);
void client_set_source_stream(struct client *client, client_source_stream *stream);

/* Ask for `target` ("/v1/status"); the caller owns the object in *root. */
int client_get(struct client *client, const char *target, json_t **root);

/* The same with a body, by PUT; also -ESRCH: what it is about is not there. */
int client_put(struct client *client, const char *target, const json_t *body, json_t **root);

/* Have something done that takes no body, by POST. */
int client_post(struct client *client, const char *target, json_t **root);

/* The text of the last answer, until the next request. */
const char *client_body(const struct client *client);

/* Say on stderr what is asked, and what came of it, from now on. */
void client_set_verbose(struct client *client);

/*
 * Receive newline-delimited JSON until the daemon ends it or on_line() returns
 * something other than 0, and as long as goes_on(arg) says so, which is asked about once a second
 * at least; NULL: it does.  Returns 0 after an end, what on_line() said, or a failure.
 */
int client_stream(struct client *client, const char *target,
		  int (*on_line)(void *arg, const char *text, size_t len),
		  bool (*goes_on)(void *arg), void *arg);

/* The socket in use, or the one that would be; never NULL. */
const char *client_socket(const struct client *client);

/* Why the last request failed; "" when none has. */
const char *client_error(const struct client *client);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_SERVE_SERVE_CLIENT_H
#define NCCLINSPD_SERVE_SERVE_CLIENT_H

/*
 * Connections: serve_accept.c lets them in, serve_client.c follows each of them with its
 * deadlines, serve.c answers what they ask.
 */

#include "ncclinspd/serve/http.h"
#include "ncclinspd/serve/serve_answer.h"
#include "ncclinspd/serve/server.h"

#define SERVE_SPARE		64	/* connections without a place, on their way out */
#define SERVE_BODY_BYTES	65536
#define SERVE_HELD_BYTES	(128u << 20)	/* answers that users' clients have not taken yet */
#define SERVE_BLOCK_BYTES	16384	/* a piece of an answer that is written piece by piece */

/* Phases, in the order in which clients give up their places. */
enum client_phase {
	CLIENT_IDLE,		/* between two requests */
	CLIENT_READING,		/* connected, or a part of a request has come */
	CLIENT_MAKING,		/* its answer is being made, a part at each turn */
	CLIENT_ANSWERING,
	CLIENT_WAITING,		/* its answer is known when a file has been written */
	CLIENT_STREAMING,
	CLIENT_LEAVING,		/* has its last answer; what it still sends is thrown away */
};

/* One connection; lives from its accept to its close. */
struct serve_client {
	struct serve *serve;
	struct serve_client *next, **prev;
	int fd;
	struct viewer viewer;
	uid_t account;		/* the viewer's */
	enum client_phase phase;
	bool has_place;		/* false: it is told so when it asks, and goes */
	bool readable, writable;	/* the state as far as is known */
	bool hung_up;		/* sends nothing more, or is gone */
	bool broken;		/* nothing can be sent any more */
	bool asleep;		/* its answer has nothing for it now */
	uint64_t answered;	/* requests so far */
	uint64_t round;		/* the round of its last turn */
	uint64_t since_ns;	/* start of this phase */
	uint64_t deadline_ns;	/* UINT64_MAX: none */

	char *in;		/* NULL: nothing has come; the head, then what follows it */
	size_t in_bytes;
	bool in_seen;		/* all of that has been looked at */
	size_t head_bytes;	/* 0: not whole */
	struct http_request request;
	struct http_body body_state;
	char *body;		/* its first SERVE_BODY_BYTES at most; NULL: none, or no memory */
	size_t body_bytes;

	struct making *making;	/* NULL: no answer is being made */
	struct answer answer;
	bool head_only;
	char *out;		/* headers, later pieces of the answer; NULL: nothing is sent */
	size_t out_bytes, out_sent;
	size_t text_sent;
	bool out_last;
	uint64_t ticket;	/* the file's, while waiting */
};

/* serve_client.c: take over a connection.  -ENOMEM, or epoll's errno: it is closed. */
int client_add(struct serve *s, int fd);
void client_close(struct serve_client *c);

/* The group whose members see everything, NULL: of the usual name; -1: there is no such. */
gid_t client_group(const char *name);

/* Go on with all that can: what came is read, answers are sent. */
void clients_run(struct serve *s);

/* The earliest moment at which that has something to do; 0: at once. */
uint64_t clients_due(const struct serve *s);

/* It has something to be told again. */
void client_wake(struct serve_client *c);

/* It loses its place, with a 429 if nothing else is on its way to it. */
void client_dismiss(struct serve_client *c);

/* It is closed, after a 429 unless it has had its answer. */
void client_push_out(struct serve_client *c);

/*
 * serve_accept.c: s->fd, which is read when somebody comes or says something, and whoever
 * waits is let in.  accept_close() closes the listening one too.
 */
int accept_open(struct serve *s);
void accept_close(struct serve *s);
void accept_clients(struct serve *s);
uint64_t accept_deadline(const struct serve *s);

/* The request of `c` is complete: fill in c->answer.  Returns the phase in which that is. */
enum client_phase serve_request(struct serve_client *c);

/* Make the next part of an answer.  True: that was all, and c->answer is complete. */
bool serve_make(struct serve_client *c);
void serve_stop_making(struct serve_client *c);

/* Complete the answer of a client that waits.  False: it goes on waiting. */
bool serve_later(struct serve_client *c);

#endif

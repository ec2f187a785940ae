/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_OFFLINE_SEGMENT_H
#define CLI_OFFLINE_SEGMENT_H

/*
 * One process's segment in place of the daemon: what it would answer if it had read that alone
 * (libncclinsp(3)).
 */

#include "cli/common/cli.h"

struct event;
struct process;

/* NULL: it cannot be read, which is told on stderr; *code is the exit code for that. */
struct segment_source *segment_source_open(const char *path, enum cli_exit *code);
void segment_source_free(struct segment_source *s);

/* A client's source, `arg` being the struct segment_source.  NULL: a segment does not tell. */
json_t *segment_source_answer(void *arg, const char *target);

/*
 * Lines of /v1/stream, of finished operations and of the process's end: of one that runs until
 * it ends.  As client_stream(); 1: this was all.
 */
client_source_stream segment_source_stream;

/* Records, checked, as they are read; before anything is asked. */
typedef void segment_source_event(const struct process *p, const struct event *event, void *arg);
void segment_source_on_event(struct segment_source *s, segment_source_event *fn, void *arg);

/* Records that are missing; and until when the process lived, or lives. */
uint64_t segment_source_lost(struct segment_source *s, uint64_t *until_ns);

#endif

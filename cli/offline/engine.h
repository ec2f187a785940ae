/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_OFFLINE_ENGINE_H
#define CLI_OFFLINE_ENGINE_H

/*
 * A metrics engine in place of daemons: what it has of ncclinsp-metrics(7), asked for in PromQL,
 * becomes the same rows of each node as a snapshot has.  Prometheus, VictoriaMetrics, Mimir and
 * Thanos answer alike.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/offline/joint.h"

/* All but the address come from the environment: NCCLINSP_ENGINE_TOKEN and so on. */
struct engine {
	const char *url;	/* "http://prometheus:9090", with a path where it has one */
	const char *job;	/* the only one that is asked about; NULL: all */
	const char *token;	/* bearer token; NULL: none */
	const char *ca;		/* file of the authorities that are trusted; NULL: the system's */
	const char *tenant;	/* X-Scope-OrgID; NULL: none */
	const char *step;	/* seconds from one sample to the next; NULL: 15 */
	bool answers;		/* it told something the last time */
	char error[512];	/* why it told nothing, and what to do */
};

/* Is it an engine's address, and no file's? */
bool engine_is_url(const char *from);

/* The address is the caller's, and stays. */
void engine_init(struct engine *e, const char *url, const char *job);

/*
 * A new object with what each node's snapshot would have, by host: members written_at,
 * written_mono_ns (this machine's clock), status, processes, comms, inflight, findings, ranks and
 * samples.  A node that stopped answering has a text in place of it, which says so.  NULL: the
 * engine does not answer, or has no node; e->error tells.
 */
json_t *engine_ask(struct engine *e);

/* The same, added to the joint; `arg` is the struct engine.  A failure is told on stderr. */
void engine_add(void *arg, struct joint *joint);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* GET /metrics: what Prometheus collects. */
#include <errno.h>
#include <string.h>

#include "ncclinspd/metrics/exposition.h"
#include "ncclinspd/metrics/metrics.h"
#include "ncclinspd/serve/serve_routes.h"
#include "util/cleanup.h"

/* Prometheus lists what it can read; any weight will do, since ours differ in little. */
static bool request_wants_open(const struct request *r)
{
	return r->accept && strstr(r->accept, "application/openmetrics-text");
}

uint64_t serve_collected(const struct serve *s, uint64_t *last_ns)
{
	*last_ns = s->collected_ns;
	return s->collected;
}

int serve_metrics(struct request *r, struct answer *a)
{
	CLEANUP(exposition_deinit) struct exposition e;
	size_t bytes;
	char *text;

	exposition_init(&e, request_wants_open(r), SERVE_ANSWER_BYTES);
	metrics_write(r->serve->source.metrics, &e, r->viewer.all, r->viewer.uid,
		      r->serve->now_ns);
	if (e.out.error)
		return -ENOMEM;
	text = json_steal(&e.out, &bytes);
	answer_text(a, e.open ? EXPOSITION_OPEN_TYPE : EXPOSITION_TEXT_TYPE, text, bytes);
	r->serve->collected++;
	r->serve->collected_ns = r->serve->now_ns;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* GET /metrics: what Prometheus collects. */
#include "ncclinspd/serve/serve_impl.h"

#include <stdlib.h>
#include <string.h>

#include "ncclinspd/metrics/exposition.h"
#include "ncclinspd/metrics/metrics.h"
#include "util/cleanup.h"

/* Prometheus lists what it can read; any weight will do, since ours differ in little. */
static bool wants_open(struct MHD_Connection *connection)
{
	const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
							 MHD_HTTP_HEADER_ACCEPT);

	return accept && strstr(accept, "application/openmetrics-text");
}

uint64_t serve_collected(const struct serve *s, uint64_t *last_ns)
{
	*last_ns = s->collected_ns;
	return s->collected;
}

struct MHD_Response *serve_metrics(struct request *r, struct MHD_Connection *connection)
{
	CLEANUP(exposition_deinit) struct exposition e;
	struct MHD_Response *response;
	size_t bytes;
	char *text;

	exposition_init(&e, wants_open(connection), SERVE_ANSWER_BYTES);
	metrics_write(r->serve->source.metrics, &e, r->viewer.all, r->viewer.uid,
		      r->serve->now_ns);
	if (e.error)
		return NULL;
	r->type = e.open ? EXPOSITION_OPEN_TYPE : EXPOSITION_TEXT_TYPE;
	text = exposition_steal(&e, &bytes);
	response = MHD_create_response_from_buffer(bytes, text, MHD_RESPMEM_MUST_FREE);
	if (!response)
		free(text);
	r->serve->collected++;
	r->serve->collected_ns = r->serve->now_ns;
	return response;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Answers on their way out: headers, JSON, and why something was refused. */
#include "ncclinspd/serve/serve_impl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/cleanup.h"

enum MHD_Result answer_send(struct MHD_Connection *connection, unsigned status,
			    struct MHD_Response *response, const char *type)
{
	enum MHD_Result r;

	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	if (status == MHD_HTTP_URI_TOO_LONG || status == MHD_HTTP_CONTENT_TOO_LARGE ||
	    status == MHD_HTTP_TOO_MANY_REQUESTS)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	r = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return r;
}

struct MHD_Response *answer_json(struct json *j)
{
	struct MHD_Response *response;
	size_t bytes;
	char *text;

	json_newline(j);
	if (json_error(j))
		return NULL;
	text = json_steal(j, &bytes);
	response = MHD_create_response_from_buffer(bytes, text, MHD_RESPMEM_MUST_FREE);
	if (!response)
		free(text);
	return response;
}

struct MHD_Response *answer_error(const char *code, const char *message)
{
	CLEANUP(json_deinit) struct json j;

	json_init(&j, SERVE_ANSWER_BYTES);
	json_begin(&j, '{');
	json_key(&j, "error");
	json_begin(&j, '{');
	json_key(&j, "code");
	json_put_string(&j, code);
	json_key(&j, "message");
	json_put_string(&j, message);
	json_end(&j, '}');
	json_end(&j, '}');
	return answer_json(&j);
}

enum MHD_Result answer_refuse(struct MHD_Connection *connection, unsigned status,
			      const char *code, const char *format, ...)
{
	char message[SERVE_WHY_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	return answer_send(connection, status, answer_error(code, message), SERVE_JSON);
}

enum MHD_Result answer_no_memory(struct MHD_Connection *connection)
{
	return answer_refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no_memory",
		      "the daemon has no memory for the answer");
}

/* Why something was not done. */
static const struct {
	int error;
	unsigned status;
	const char *code;
	const char *message;
} failures[] = {
	{ -EPERM, MHD_HTTP_FORBIDDEN, "forbidden",
	  "only root, the daemon's user and members of its group may do that" },
	{ -ENOSYS, MHD_HTTP_NOT_FOUND, "not_found", "there is no place for it" },
	{ -ENOENT, MHD_HTTP_NOT_FOUND, "not_found", "there is none of that name" },
	{ -EBUSY, MHD_HTTP_SERVICE_UNAVAILABLE, "busy",
	  "several are being written already: try again in a second" },
	{ -EAGAIN, MHD_HTTP_SERVICE_UNAVAILABLE, "busy",
	  "its disk is busy, or does not answer: try again in a second" },
	{ -EINVAL, MHD_HTTP_BAD_REQUEST, "bad_request", "the body makes no sense" },
	{ -ESRCH, MHD_HTTP_NOT_FOUND, "not_found", "there is no such process" },
	{ -ENOSPC, MHD_HTTP_TOO_MANY_REQUESTS, "too_many", "there are too many already" },
	{ -EIO, MHD_HTTP_SERVICE_UNAVAILABLE, "unwritable", "the control file cannot be written" },
	{ -E2BIG, MHD_HTTP_INTERNAL_SERVER_ERROR, "too_large", "there is too much to be written" },
};

enum MHD_Result answer_failure(struct MHD_Connection *connection, int error, const char *why)
{
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++)
		if (failures[i].error == error)
			return answer_refuse(connection, failures[i].status, failures[i].code, "%s",
				      *why ? why : failures[i].message);
	return answer_no_memory(connection);
}

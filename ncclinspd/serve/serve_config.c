/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/config: what is in force, and who says so.  None of it is a secret. */
#include "ncclinspd/config/config_rows.h"
#include "ncclinspd/serve/serve_routes.h"

static void config_put_setting(struct json *j, const struct config *c, const struct config_row *row,
			       const struct config_origin *origin)
{
	char value[CONFIG_VALUE_BYTES];

	config_show(c, row, value);
	json_begin(j, '{');
	json_key(j, "name");
	json_put_string(j, row->name);
	json_key(j, "value");
	json_put_string(j, value);
	json_key(j, "source");
	json_put_string(j, config_source_name(origin->source));
	json_key(j, "line");
	if (origin->line)
		json_put_u64(j, origin->line);
	else
		json_put_null(j);
	json_key(j, "variable");
	json_put_string(j, origin->source == CONFIG_FROM_ENVIRONMENT ? row->variable : NULL);
	json_key(j, "reloads");
	json_put_bool(j, row->live);
	json_key(j, "pending");
	json_put_bool(j, origin->pending);
	json_key(j, "help");
	json_put_string(j, row->help);
	json_end(j, '}');
}

static void config_put_settings(struct json *j, const struct config *c)
{
	const struct config_row *rows;
	size_t n;

	rows = config_rows(&n);
	for (size_t i = 0; i < n; i++)
		if (rows[i].fallback)
			config_put_setting(j, c, &rows[i], &c->origin[i]);
}

void serve_config(struct request *r, struct json *j)
{
	const struct config_reading *reading = r->serve->source.reading;
	const struct config *c = r->serve->source.config;

	json_key(j, "file");
	json_put_string(j, c && c->file[0] ? c->file : NULL);
	json_key(j, "file_read");
	json_put_bool(j, c && c->file_read);
	rows_put_time(&r->serve->writer, j, "read", reading ? reading->read_ns : 0);
	rows_put_time(&r->serve->writer, j, "refused", reading ? reading->refused_ns : 0);
	json_key(j, "refused_why");
	json_put_string(j, reading && reading->refused_ns ? reading->why : NULL);
	json_key(j, "settings");
	json_begin(j, '[');
	if (c)
		config_put_settings(j, c);
	json_end(j, ']');
}

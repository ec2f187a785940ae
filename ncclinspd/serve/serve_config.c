/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/config: what is in force, and who says so.  None of it is a secret. */
#include "ncclinspd/config/config_rows.h"
#include "ncclinspd/serve/serve_routes.h"

struct config_shown {
	const struct config *config;		/* NULL: not known */
	const struct config_reading *reading;	/* NULL likewise */
};

struct setting {
	const struct config_row *row;
	const struct config_origin *origin;
	char value[CONFIG_VALUE_BYTES];
};

static field_put_fn config_put_settings;

#include "schema/config.h"

static void config_put_settings(const struct rows_writer *w, struct json *j, const void *of)
{
	const struct config_shown *shown = of;

	json_begin(j, '[');
	for (const struct config_row *row = config_rows; shown->config && row->name; row++) {
		struct setting s = { row, &shown->config->origin[row - config_rows], "" };

		if (!row->fallback)
			continue;
		config_show(shown->config, row, s.value);
		rows_put_object(w, j, setting_fields, &s);
	}
	json_end(j, ']');
}

void serve_config(struct request *r, struct json *j)
{
	const struct config_shown shown = { r->serve->source.config, r->serve->source.reading };

	rows_put(&r->serve->writer, j, config_fields, &shown);
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_CONFIG_ROWS_H
#define NCCLINSPD_CONFIG_ROWS_H

/*
 * The one table of options: behind the command line, the configuration file, the file
 * that is installed, and what may change while the daemon runs.
 */

#include <stddef.h>

#include "ncclinspd/config.h"

#define CONFIG_NODE_FILE	"/etc/ncclinsp/ncclinspd.conf"
#define CONFIG_NODE_SOCKET	"/run/ncclinsp/ncclinspd.sock"
#define CONFIG_NODE_STATE	"/var/lib/ncclinsp"

#define CONFIG_ROWS	64	/* not more than these */

struct config_row {
	const char *name;
	char letter;		/* 0: none */
	const char *argument;	/* NULL: takes none */
	int (*set)(struct config *config, const char *value);	/* 0 or -EINVAL */
	const char *wants;	/* "NAME is <wants>, not VALUE" */
	const char *help;
	const char *fallback;	/* the default of a node's daemon; NULL: in no file */
	bool live;		/* may change while the daemon runs */
	size_t at, bytes;	/* of struct config: what a line of the file sets */
};

const struct config_row *config_rows(size_t *n);

/* -EINVAL: empty or too long.  Whole, so that paths can be compared byte by byte. */
int config_set_path(char path[PATH_MAX], const char *value);

#endif

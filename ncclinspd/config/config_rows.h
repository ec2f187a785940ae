/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_CONFIG_CONFIG_ROWS_H
#define NCCLINSPD_CONFIG_CONFIG_ROWS_H

/*
 * The one table of options: behind the command line, the configuration file, the file
 * that is installed, and what may change while the daemon runs.
 */

#include <stddef.h>

#include "ncclinspd/config/config.h"

#define CONFIG_NODE_FILE	"/etc/ncclinsp/ncclinspd.conf"
#define CONFIG_NODE_SOCKET	"/run/ncclinsp/ncclinspd.sock"
#define CONFIG_NODE_STATE	"/var/lib/ncclinsp"

/* The type of what a line of the file sets in struct config, and how it is written. */
enum config_kind {
	CONFIG_FLAG,		/* on the command line only: nothing */
	CONFIG_TEXT,		/* char[]; "": none */
	CONFIG_DIR,		/* char[], "": none; a directory */
	CONFIG_FILE,		/* char[], "": none; a file that the daemon makes */
	CONFIG_SOCKET,		/* char[], "": none; a socket that the daemon makes */
	CONFIG_SWITCH,		/* bool */
	CONFIG_NS,		/* uint64_t; 0: the row's default */
	CONFIG_NS_OR_0,		/* uint64_t; 0 is a value */
	CONFIG_NS32,		/* uint32_t; 0: the row's default */
	CONFIG_PPM,		/* uint32_t, in percent; 0: the row's default */
	CONFIG_COUNT,		/* uint32_t; 0: the row's default */
	CONFIG_BYTES,		/* uint64_t; 0: the row's default */
	CONFIG_LOG,		/* enum log_level */
};

#define CONFIG_VALUE_BYTES	PATH_MAX

struct config_row {
	const char *name;
	char letter;		/* 0: none */
	const char *argument;	/* NULL: takes none */
	/* 0 or -EINVAL */
	int (*set)(struct config *config, const struct config_row *row, const char *value);
	const char *wants;	/* "NAME is <wants>, not VALUE" */
	const char *help;
	const char *fallback;	/* the default of a node's daemon; NULL: in no file */
	bool live;		/* may change while the daemon runs */
	enum config_kind kind;
	size_t at, bytes;	/* the part of struct config that a line of the file sets */
	const char *variable;	/* environment variable, which goes before the file; NULL: none */
};

/* The last row has no name. */
extern const struct config_row config_rows[];

/* The value in force, as the row's `set` would read it; for rows with a fallback. */
void config_show(const struct config *config, const struct config_row *row,
		 char value[CONFIG_VALUE_BYTES]);

const char *config_source_name(enum config_source source);

/*
 * -EINVAL: empty, too long, or with control characters.  Whole, so that paths can be
 * compared byte by byte.
 */
int config_set_path(char path[PATH_MAX], const char *value);

#endif

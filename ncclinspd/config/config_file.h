/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_CONFIG_CONFIG_FILE_H
#define NCCLINSPD_CONFIG_CONFIG_FILE_H

/* The form of a configuration file: NAME = VALUE, one a line, and comments. */

/* `name` is never empty; `value` is NULL where the line has no "=". */
typedef void config_line_fn(void *arg, unsigned line, const char *name, const char *value);

/*
 * A whole regular file of at most 64 KiB as a string, the caller's to free().  A
 * negative errno; -EFBIG: larger; -EBADMSG: it has zero bytes; -EMEDIUMTYPE: no file.
 */
int config_file_read(const char *path, char **text);

/* The meaning of an error of config_file_read(), in words. */
const char *config_file_error(int r);

/* Call `fn` for each line that is not empty and no comment; `text` is cut up. */
void config_file_walk(char *text, config_line_fn *fn, void *arg);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_DOCTOR_VARIABLES_H
#define CLI_DOCTOR_VARIABLES_H

#include <jansson.h>
#include <stdint.h>

/*
 * Reads the plugin's variables from a process's environment, as that was when the process was
 * started: a new array of {name, value, source ("environment" or "default"), help}, with what
 * launchers say of the job where it is set.  `pid` is one of this pid namespace. Returns 0 or
 * a negative errno: -ENOENT: there is none, -EACCES: it is not yours.
 */
int variables_read(int64_t pid, json_t **rows);

/* All of its variables, by name, `proc` being where procfs is: a new object.  As above. */
int variables_read_all(const char *proc, int64_t pid, json_t **all);

#endif

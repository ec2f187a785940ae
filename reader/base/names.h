/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_BASE_NAMES_H
#define READER_BASE_NAMES_H

/*
 * Every text that jobs give us (functions, datatypes, algorithms, communicator
 * names), kept once, for as long as the daemon lives: later stages compare the
 * pointers.  Bounded: who invents names gets NAMES_OTHER from then on, and nobody
 * can take more than half of the room from the other users.
 */

#include <stddef.h>

#include "reader/base/model.h"

#define NAMES_OTHER	"(other)"
#define NAMES_DEFAULT	4096		/* texts kept by default */
#define NAMES_MAX_BYTES	128		/* longer texts are cut */

struct names;

/* Room for `capacity` texts.  0 or -ENOMEM. */
int names_new(struct names **namesp, uint32_t capacity);
void names_free(struct names *names);

/*
 * The one name_t of this text of `bytes` bytes (no terminator needed; a zero
 * byte ends it early), whoever brought it first; a new one is charged to `account`.
 * An empty text gives NULL: not known.  Never fails: when the table is full or
 * the user has half of it, a new text gives the name_t of NAMES_OTHER, and is
 * counted.
 */
name_t names_intern(struct names *names, uid_t account, const char *text, size_t bytes);

/*
 * The same for a name that only tags have, as ranges of an application may have any number of
 * them: all together a quarter of the room at most, a user's an eighth.  NULL beyond that: the
 * tag is shown as a number.
 */
name_t names_intern_tag(struct names *names, uid_t account, const char *text, size_t bytes);

uint32_t names_count(const struct names *names);
uint64_t names_refused(const struct names *names);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UTIL_GLOSSARY_H
#define UTIL_GLOSSARY_H

/* Values of fields that have one of a few, for words.c. */

#include "util/words.h"

/* NULL: there is no topic `i`. */
const struct topic *glossary_topic(size_t i);

#endif

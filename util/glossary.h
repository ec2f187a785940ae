/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UTIL_GLOSSARY_H
#define UTIL_GLOSSARY_H

/* For words.c: the values of fields that have one of a few. */

#include "util/words.h"

/* NULL: there is no topic `i`. */
const struct topic *glossary_topic(size_t i);

#endif

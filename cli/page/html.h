/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_PAGE_HTML_H
#define CLI_PAGE_HTML_H

/* Pieces of HTML.  Text from files goes through html_text() and no other way. */

#include <stdio.h>

/*
 * The text with HTML's own characters escaped, in attributes as well; bytes that are no character,
 * or one that is not to be seen or turns the direction of text, become '?'.
 */
void html_text(FILE *out, const char *text);

/* An element of that name and class (both our own; class NULL: none) around the text. */
void html_element(FILE *out, const char *name, const char *class, const char *text);

#endif

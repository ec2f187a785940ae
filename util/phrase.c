/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sentences of findings have parts that are there or not: text that does not fit is cut,
 * so that those who add a part need no check.
 */
#include "util/phrase.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "util/text.h"

void phrase_start(struct phrase *p, char *buffer, size_t size)
{
	*p = (struct phrase){ .at = buffer, .size = size };
	*buffer = '\0';
}

void phrase_add(struct phrase *p, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(p->at + p->used, p->size - p->used, format, args);
	va_end(args);
	p->used += n < 0 ? 0 : (size_t)n;
	if (p->used >= p->size)
		p->used = p->size - 1;
}

void phrase_add_duration(struct phrase *p, uint64_t ns)
{
	char text[TEXT_MAX];

	text_duration(text, sizeof(text), ns);
	phrase_add(p, "%s", text);
}

void phrase_add_list(struct phrase *p, const int32_t *numbers, size_t n)
{
	for (size_t i = 0, last; i < n; i = last + 1) {
		last = i;
		while (last + 1 < n && numbers[last + 1] == numbers[last] + 1)
			last++;
		phrase_add(p, "%s%" PRId32, i ? "," : "", numbers[i]);
		if (last > i)
			phrase_add(p, "-%" PRId32, numbers[last]);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Words and quantities of scenario files. */
#include "tests/sim/lex.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lex_unit {
	const char *suffix;
	double factor;
};

static const struct lex_unit multiples[] = {
	{ "", 1 }, { "k", 1e3 }, { "M", 1e6 }, { "G", 1e9 },
	{ "Ki", 1024 }, { "Mi", 1048576 }, { "Gi", 1073741824 }, { NULL, 0 }
};

static const struct lex_unit times[] = {
	{ "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { NULL, 0 }
};

static const struct lex_unit rates[] = {
	{ "GB/s", 1 }, { "MB/s", 1e-3 }, { "KB/s", 1e-6 }, { NULL, 0 }
};

int lex_split(struct lex *lex, char *line)
{
	char *save = NULL;

	lex->nwords = 0;
	lex->at = 0;
	line[strcspn(line, "#\r\n")] = '\0';
	for (char *w = strtok_r(line, " \t", &save); w; w = strtok_r(NULL, " \t", &save)) {
		if (lex->nwords == LEX_MAX_WORDS)
			return lex_fail(lex, "more than %d words", LEX_MAX_WORDS);
		lex->word[lex->nwords++] = w;
	}
	return 0;
}

int lex_fail(struct lex *lex, const char *fmt, ...)
{
	va_list ap;
	int n;

	n = snprintf(lex->err, lex->err_size, "%s:%d: ", lex->file, lex->line);
	if (n < 0 || (unsigned int)n >= lex->err_size)
		return -EINVAL;
	va_start(ap, fmt);
	vsnprintf(lex->err + n, lex->err_size - n, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

const char *lex_next(struct lex *lex)
{
	return lex->at < lex->nwords ? lex->word[lex->at++] : NULL;
}

bool lex_accept(struct lex *lex, const char *word)
{
	if (lex->at == lex->nwords || strcmp(lex->word[lex->at], word))
		return false;
	lex->at++;
	return true;
}

int lex_expect(struct lex *lex, const char *word)
{
	const char *got;

	if (lex_accept(lex, word))
		return 0;
	got = lex_next(lex);
	return lex_fail(lex, "'%s' is wanted, not '%s'", word, got ? got : "the end of the line");
}

int lex_end(struct lex *lex)
{
	if (lex->at == lex->nwords)
		return 0;
	return lex_fail(lex, "'%s' is not understood here", lex->word[lex->at]);
}

int lex_name(struct lex *lex, char *name, unsigned int size)
{
	const char *w = lex_next(lex);

	if (!w)
		return lex_fail(lex, "a name is missing");
	if (strlen(w) >= size)
		return lex_fail(lex, "name '%s' is longer than %u characters", w, size - 1);
	for (const char *p = w; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("._-", *p))
			return lex_fail(lex, "name '%s' has other than letters, digits, . _ -", w);
	strcpy(name, w);
	return 0;
}

/* A number of at least 0 with one of these units; "0" needs none. */
static int lex_read_quantity(struct lex *lex, const char *what, const struct lex_unit *units,
			     double *value)
{
	const char *w = lex_next(lex);
	char *end;
	double v;

	if (!w)
		return lex_fail(lex, "%s is missing", what);
	v = strtod(w, &end);
	if (end == w || v < 0 || v > 9e18)
		return lex_fail(lex, "'%s' is no %s", w, what);
	for (; units->suffix; units++) {
		if (!strcmp(end, units->suffix) || (v == 0 && !*end)) {
			*value = v * units->factor;
			return 0;
		}
	}
	return lex_fail(lex, "'%s' is no %s: unknown unit '%s'", w, what, end);
}

int lex_number(struct lex *lex, uint64_t *value)
{
	double v;
	int r = lex_read_quantity(lex, "number", multiples, &v);

	if (r)
		return r;
	if (v > 9e15)
		return lex_fail(lex, "'%s' is too large", lex->word[lex->at - 1]);
	*value = (uint64_t)v;
	return 0;
}

int lex_int(struct lex *lex, int lowest, int highest, int *value)
{
	uint64_t v = 0;
	int r = lex_number(lex, &v);

	if (r)
		return r;
	if (v > (uint64_t)highest || (int)v < lowest)
		return lex_fail(lex, "%llu is not between %d and %d",
				(unsigned long long)v, lowest, highest);
	*value = (int)v;
	return 0;
}

int lex_duration(struct lex *lex, int64_t *ns)
{
	double v;
	int r = lex_read_quantity(lex, "duration", times, &v);

	if (!r)
		*ns = (int64_t)v;
	return r;
}

int lex_rate(struct lex *lex, double *bytes_per_ns)
{
	int r = lex_read_quantity(lex, "rate", rates, bytes_per_ns);

	if (!r && *bytes_per_ns <= 0)
		return lex_fail(lex, "a rate of 0 moves nothing; see the fault 'stuck'");
	return r;
}

int lex_suffixed(struct lex *lex, const char *suffix, double *value)
{
	const char *w = lex_next(lex);
	char *end;

	if (!w)
		return lex_fail(lex, "a number with '%s' is missing", suffix);
	*value = strtod(w, &end);
	if (end == w || strcmp(end, suffix))
		return lex_fail(lex, "'%s' is no number with '%s'", w, suffix);
	return 0;
}

/* "3", "0-3" or "0-6/2". */
static int lex_read_range(struct lex *lex, char *text, int limit, int *list, int *count)
{
	int first, last, stride = 1, used = 0;

	if (sscanf(text, "%d-%d/%d%n", &first, &last, &stride, &used) == 3 && !text[used])
		;
	else if (sscanf(text, "%d-%d%n", &first, &last, &used) == 2 && !text[used])
		stride = 1;
	else if (sscanf(text, "%d%n", &first, &used) == 1 && !text[used])
		last = first;
	else
		return lex_fail(lex, "'%s' is no rank, range or range/stride", text);
	if (first < 0 || last < first || last >= limit || stride < 1)
		return lex_fail(lex, "'%s' is not within 0-%d", text, limit - 1);
	for (int i = first; i <= last; i += stride) {
		if (*count == limit)
			return lex_fail(lex, "more than %d ranks", limit);
		list[(*count)++] = i;
	}
	return 0;
}

int lex_list(struct lex *lex, int limit, int *list, int *count)
{
	const char *w = lex_next(lex);
	char *save = NULL;
	int r = 0;

	if (!w)
		return lex_fail(lex, "a list of ranks is missing");
	*count = 0;
	for (char *p = strtok_r((char *)w, ",", &save); p && !r; p = strtok_r(NULL, ",", &save))
		r = lex_read_range(lex, p, limit, list, count);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Delays only add time, so a low quantile of each size's times is kept and the line sought
 * below them.
 */
#include "ncclinspd/sums/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tables/stat.h"
#include "util/list.h"

static double sizes_run(const struct fit_size *from, const struct fit_size *to)
{
	return (double)to->bytes - (double)from->bytes;
}

static double sizes_rise(const struct fit_size *from, const struct fit_size *to)
{
	return (double)fit_low(to) - (double)fit_low(from);
}

/* ---- the low times of a size --------------------------------------------------- */

/* Half of what was seen is as good: every second of the least times. */
static void size_halve(struct fit_size *size)
{
	for (uint32_t i = 1; i < size->kept; i += 2)
		size->kept_ns[i / 2] = size->kept_ns[i];
	size->kept /= 2;
	size->seen /= 2;
}

static void size_keep(struct fit_size *size, uint32_t ns)
{
	uint32_t i;

	if (size->kept < FIT_KEPT)
		size->kept++;
	else if (ns >= size->kept_ns[FIT_KEPT - 1])
		return;
	for (i = size->kept - 1; i && size->kept_ns[i - 1] > ns; i--)
		size->kept_ns[i] = size->kept_ns[i - 1];
	size->kept_ns[i] = ns;
}

static void size_take(struct fit_size *size, const struct fit_size *from)
{
	size->n += from->n;
	size->seen += from->seen;
	for (uint32_t i = 0; i < from->kept; i++)
		size_keep(size, from->kept_ns[i]);
	while (size->seen >= FIT_LOW * FIT_KEPT / 2)
		size_halve(size);
}

uint64_t fit_low(const struct fit_size *size)
{
	uint32_t at = size->seen / FIT_LOW;

	return size->kept_ns[at < size->kept ? at : size->kept - 1];
}

/* ---- points ------------------------------------------------------------------ */

/* The height of b above the line from a to c. */
static double sizes_height(const struct fit_size *a, const struct fit_size *b,
			   const struct fit_size *c)
{
	return sizes_rise(a, b) - sizes_rise(a, c) / sizes_run(a, c) * sizes_run(a, b);
}

/* The smallest and the largest size stay. */
static void fit_give_up_one(struct fit *fit)
{
	uint32_t worst = 1;

	for (uint32_t i = 2; i + 1 < fit->sizes; i++)
		if (sizes_height(&fit->size[i - 1], &fit->size[i], &fit->size[i + 1]) >
		    sizes_height(&fit->size[worst - 1], &fit->size[worst], &fit->size[worst + 1]))
			worst = i;
	fit->sizes--;
	memmove(&fit->size[worst], &fit->size[worst + 1],
		(fit->sizes - worst) * sizeof(fit->size[0]));
}

static void fit_take(struct fit *fit, const struct fit_size *from)
{
	struct fit_size *s = fit->size;

	while (s < fit->size + fit->sizes && s->bytes < from->bytes)
		s++;
	if (s < fit->size + fit->sizes && s->bytes == from->bytes) {
		size_take(s, from);
		return;
	}
	memmove(s + 1, s, (size_t)(fit->size + fit->sizes - s) * sizeof(*s));
	*s = *from;
	if (++fit->sizes > FIT_SIZES)
		fit_give_up_one(fit);
}

void fit_add(struct fit *fit, uint64_t bytes, uint64_t ns)
{
	const struct fit_size size = {
		.bytes = bytes, .n = 1, .kept = 1, .seen = 1,
		.kept_ns = { ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX },
	};

	if (!bytes)
		return;
	fit->n++;
	fit->bytes += (double)bytes;
	fit_take(fit, &size);
}

void fit_merge(struct fit *to, const struct fit *from)
{
	for (uint32_t i = 0; i < from->sizes; i++)
		fit_take(to, &from->size[i]);
	to->n += from->n;
	to->bytes += from->bytes;
}

/* ---- lines ------------------------------------------------------------------- */

static bool fit_by_hull(const struct fit *fit, struct fit_line *line)
{
	const struct fit_size *hull[FIT_SIZES] = { NULL };
	double mean = fit->bytes / (double)fit->n;
	uint32_t n = 0, edge = 1;

	for (uint32_t i = 0; i < fit->sizes; i++) {
		while (n > 1 && sizes_height(hull[n - 2], hull[n - 1], &fit->size[i]) >= 0)
			n--;
		*array_must_add(hull, &n) = &fit->size[i];
	}
	if (n < 2)
		return false;
	while (edge + 1 < n && (double)hull[edge]->bytes < mean)
		edge++;
	line->ns_per_byte = sizes_rise(hull[edge - 1], hull[edge]) / sizes_run(hull[edge - 1],
									       hull[edge]);
	line->latency_ns = (double)fit_low(hull[edge]) -
			   line->ns_per_byte * (double)hull[edge]->bytes;
	return true;
}

struct means {
	double n, bytes, ns;
};

static struct means fit_weigh(const struct fit *fit)
{
	struct means m = { 0, 0, 0 };

	for (uint32_t i = 0; i < fit->sizes; i++) {
		m.n += (double)fit->size[i].n;
		m.bytes += (double)fit->size[i].n * (double)fit->size[i].bytes;
		m.ns += (double)fit->size[i].n * (double)fit_low(&fit->size[i]);
	}
	m.bytes /= m.n;
	m.ns /= m.n;
	return m;
}

static bool fit_by_least_squares(const struct fit *fit, struct fit_line *line)
{
	struct means m = fit_weigh(fit);
	double both = 0, square = 0;

	for (uint32_t i = 0; i < fit->sizes; i++) {
		const struct fit_size *s = &fit->size[i];
		double x = (double)s->bytes - m.bytes;

		both += (double)s->n * x * ((double)fit_low(s) - m.ns);
		square += (double)s->n * x * x;
	}
	line->ns_per_byte = both / square;
	line->latency_ns = m.ns - line->ns_per_byte * m.bytes;
	return square > 0;
}

static bool fit_by_theil_sen(const struct fit *fit, struct fit_line *line)
{
	double x[FIT_SIZES], y[FIT_SIZES], scratch[STAT_PAIRS(FIT_SIZES)];

	for (uint32_t i = 0; i < fit->sizes; i++) {
		x[i] = (double)fit->size[i].bytes;
		y[i] = (double)fit_low(&fit->size[i]);
	}
	stat_theil_sen(x, y, fit->sizes, scratch, &line->ns_per_byte, &line->latency_ns);
	return true;
}

static double line_explained(const struct fit *fit, const struct fit_line *line)
{
	struct means m = fit_weigh(fit);
	double left = 0, all = 0;

	for (uint32_t i = 0; i < fit->sizes; i++) {
		const struct fit_size *s = &fit->size[i];
		double ns = (double)fit_low(s);
		double miss = ns - line->latency_ns - line->ns_per_byte * (double)s->bytes;

		left += (double)s->n * miss * miss;
		all += (double)s->n * (ns - m.ns) * (ns - m.ns);
	}
	return left < all ? 1 - left / all : 0;
}

static bool line_is_possible(const struct fit_line *line)
{
	return line->ns_per_byte > 0 && line->latency_ns >= 0;
}

enum fit_outcome fit_line(const struct fit *fit, struct fit_line *line)
{
	static bool (*const methods[])(const struct fit *, struct fit_line *) = {
		[FIT_HULL] = fit_by_hull,
		[FIT_LEAST_SQUARES] = fit_by_least_squares,
		[FIT_THEIL_SEN] = fit_by_theil_sen,
	};

	if (fit->sizes < FIT_LEAST_SIZES)
		return fit->sizes ? FIT_FEW_SIZES : FIT_NO_TIMES;
	if (fit->size[fit->sizes - 1].bytes / FIT_SPREAD < fit->size[0].bytes)
		return FIT_CLOSE_SIZES;
	for (uint32_t i = 0; i < FIT_METHOD_END; i++) {
		struct fit_line found = { .method = i };

		if (!methods[i](fit, &found) || !line_is_possible(&found))
			continue;
		found.r2 = line_explained(fit, &found);
		if (found.r2 < FIT_LEAST_R2)
			continue;
		found.latency_ns = round(found.latency_ns);	/* wherever it is told, the same */
		*line = found;
		return FIT_FOUND;
	}
	return FIT_NO_LINE;
}

const char *fit_method_text(enum fit_method method)
{
	static const char *const text[] = {
#define X(NAME, string) [FIT_##NAME] = string,
		FIT_METHODS(X)
#undef X
	};

	return method < FIT_METHOD_END ? text[method] : NULL;
}

const char *fit_outcome_text(enum fit_outcome outcome)
{
	static const char *const text[] = {
#define X(NAME, string) [FIT_##NAME] = string,
		FIT_OUTCOMES(X)
#undef X
	};

	return outcome < FIT_OUTCOME_END ? text[outcome] : NULL;
}

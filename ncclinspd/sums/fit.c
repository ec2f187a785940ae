/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Delays only add time, so the least time of each size is kept and the line sought below
 * them.
 */
#include "ncclinspd/sums/fit.h"

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
	return (double)to->least_ns - (double)from->least_ns;
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

void fit_add(struct fit *fit, uint64_t bytes, uint64_t least_ns, uint64_t n)
{
	struct fit_size *s = fit->size;

	if (!bytes || !n)
		return;
	fit->n += n;
	fit->bytes += (double)bytes * (double)n;
	while (s < fit->size + fit->sizes && s->bytes < bytes)
		s++;
	if (s < fit->size + fit->sizes && s->bytes == bytes) {
		s->n += n;
		if (least_ns < s->least_ns)
			s->least_ns = least_ns;
		return;
	}
	memmove(s + 1, s, (size_t)(fit->size + fit->sizes - s) * sizeof(*s));
	*s = (struct fit_size){ bytes, least_ns, n };
	if (++fit->sizes > FIT_SIZES)
		fit_give_up_one(fit);
}

void fit_merge(struct fit *to, const struct fit *from)
{
	uint64_t n = to->n + from->n;
	double bytes = to->bytes + from->bytes;

	if (!to->n) {
		*to = *from;
		return;
	}
	for (uint32_t i = 0; i < from->sizes; i++)
		fit_add(to, from->size[i].bytes, from->size[i].least_ns, from->size[i].n);
	to->n = n;
	to->bytes = bytes;
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
	line->latency_ns = (double)hull[edge]->least_ns -
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
		m.ns += (double)fit->size[i].n * (double)fit->size[i].least_ns;
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

		both += (double)s->n * x * ((double)s->least_ns - m.ns);
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
		y[i] = (double)fit->size[i].least_ns;
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
		double ns = (double)s->least_ns;
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

bool fit_line(const struct fit *fit, struct fit_line *line)
{
	static bool (*const methods[])(const struct fit *, struct fit_line *) = {
		[FIT_HULL] = fit_by_hull,
		[FIT_LEAST_SQUARES] = fit_by_least_squares,
		[FIT_THEIL_SEN] = fit_by_theil_sen,
	};

	if (fit->sizes < FIT_LEAST_SIZES ||
	    fit->size[fit->sizes - 1].bytes / FIT_SPREAD < fit->size[0].bytes)
		return false;
	for (uint32_t i = 0; i < FIT_METHOD_END; i++) {
		struct fit_line found = { .method = i };

		if (!methods[i](fit, &found) || !line_is_possible(&found))
			continue;
		found.r2 = line_explained(fit, &found);
		*line = found;
		return found.r2 >= FIT_LEAST_R2;
	}
	return false;
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

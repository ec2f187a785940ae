/* SPDX-License-Identifier: Apache-2.0 */
/* One form for the figures of all benchmarks, so that two runs can be compared. */
#include "bench/figure.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *figure_bench;
static bool figure_json;

void figure_start(const char *bench, int *argc, char **argv)
{
	int n = 1;

	figure_bench = bench;
	for (int i = 1; i < *argc; i++) {
		if (!strcmp(argv[i], "--json"))
			figure_json = true;
		else
			argv[n++] = argv[i];
	}
	*argc = n;
	argv[n] = NULL;
}

void figure_say(const char *format, ...)
{
	va_list args;

	if (figure_json)
		return;
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
}

static void figure_print(double value, const char *unit, const char *format, va_list args)
{
	char what[128];

	vsnprintf(what, sizeof(what), format, args);
	if (figure_json)
		printf("{\"bench\":\"%s\",\"figure\":\"%s\",\"unit\":\"%s\",\"value\":%.6g}\n",
		       figure_bench, what, unit, value);
	else
		printf("%-56s %12.6g %s\n", what, value, unit);
	fflush(stdout);
}

void figure_tell(double value, const char *unit, const char *format, ...)
{
	va_list args;

	if (!figure_json)
		return;
	va_start(args, format);
	figure_print(value, unit, format, args);
	va_end(args);
}

void figure_show(double value, const char *unit, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	figure_print(value, unit, format, args);
	va_end(args);
}

static int figure_by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double figure_median(double *values, int n)
{
	qsort(values, (size_t)n, sizeof(*values), figure_by_value);
	return values[n / 2];
}

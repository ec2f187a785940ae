/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_FIGURE_H
#define BENCH_FIGURE_H

/*
 * What a benchmark prints: tables for people, or with --json one object a line for each figure,
 * which bench/bench.sh puts together:
 *
 *     {"bench":"drain","figure":"8 processes, idle","unit":"ns/process","value":301.2}
 */

#include <stdbool.h>

/* First in main(): takes the name, and --json out of the arguments. */
void figure_start(const char *bench, int *argc, char **argv);

/* printf() unless figures are printed. */
void figure_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A figure, if figures are printed. */
void figure_tell(double value, const char *unit, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Either way: a line of the table or a figure. */
void figure_show(double value, const char *unit, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The middle one of n values, which are sorted. */
double figure_median(double *values, int n);

#endif

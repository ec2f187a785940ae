/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_LEX_H
#define TESTS_SIM_LEX_H

/*
 * One line of a scenario as words, and words as quantities.  The functions
 * return 0, or -EINVAL with the reason in err, which says where and what.
 */

#include <stdbool.h>
#include <stdint.h>

#define LEX_MAX_WORDS	64

struct lex {
	const char *file;
	int line;
	char *word[LEX_MAX_WORDS];
	int nwords;
	int at;			/* the next word */
	char *err;
	unsigned int err_size;
};

/* Cut `line` into words, in place; '#' starts a comment. */
int lex_split(struct lex *lex, char *line);

/* Say what is wrong with this line; always returns -EINVAL. */
int lex_fail(struct lex *lex, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The next word, or NULL at the end of the line. */
const char *lex_next(struct lex *lex);

/* Take the next word if it is this one. */
bool lex_accept(struct lex *lex, const char *word);

/* The same, but it must be there. */
int lex_expect(struct lex *lex, const char *word);

int lex_end(struct lex *lex);				/* nothing may follow */
int lex_name(struct lex *lex, char *name, unsigned int size);	/* letters, digits, . _ - */
int lex_number(struct lex *lex, uint64_t *value);	/* 12, 4Ki, 3M */
int lex_int(struct lex *lex, int lowest, int highest, int *value);
int lex_duration(struct lex *lex, int64_t *ns);		/* 5us, 1.5ms, 0 */
int lex_rate(struct lex *lex, double *bytes_per_ns);	/* 25GB/s, 900MB/s */
int lex_suffixed(struct lex *lex, const char *suffix, double *value);	/* 12ppm, 5% */
int lex_list(struct lex *lex, int limit, int *list, int *count);	/* 0-3,8,10-14/2 */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_PARSE_H
#define TESTS_SIM_PARSE_H

/* Between the files of the scenario parser: its state, its tables, its helpers. */

#include "tests/sim/lex.h"
#include "tests/sim/scenario.h"

#define PARSE_MAX_DEPTH	8

struct parser {
	struct lex lex;
	struct scenario *scn;
	struct sim_stmt **tail[PARSE_MAX_DEPTH];	/* where the next statement goes */
	struct sim_stmt **body[PARSE_MAX_DEPTH];	/* where its first one went */
	enum sim_stmt_kind block[PARSE_MAX_DEPTH];
	int depth;
	int inner, opened;	/* groups within a group: open, and without a call so far */
	struct sim_op *last;	/* the newest operation */
	bool laid_out;		/* the number of ranks is settled */
};

/* The first word of a line and who understands the rest; ends with a NULL word. */
struct parse_word {
	const char *word;
	int (*parse)(struct parser *p);
};

extern const struct parse_word parse_settings[];
extern const struct parse_word parse_faults[];
extern const struct parse_word parse_program[];

/* A line that begins with the name of a function. */
int parse_operation(struct parser *p, enum sim_func func);

/* Ranks are named from here on: their number is final. */
void parse_lay_out(struct parser *p);

/* "ranks LIST", or all ranks if the word is not there. */
int parse_ranks(struct parser *p, bool *ranks);

/* The name of a communicator; find answers -1 if there is none. */
int parse_find_family(const struct scenario *scn, const char *name);
int parse_family(struct parser *p, int *family);

/* The index of a datatype's name. */
int parse_datatype(struct parser *p, int *datatype);

/* D every N: what is so much longer in one of N cases. */
int parse_rare(struct parser *p, int64_t *ns, uint64_t *every);

/* channels N, algo A, proto P: what communicators and operations share. */
int parse_kernel_option(struct parser *p, int *channels, int *algo, int *proto);

#endif

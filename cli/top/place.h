/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TOP_PLACE_H
#define CLI_TOP_PLACE_H

/*
 * The place of the live view's user: which screen, how deep inside it, which row, and what was
 * asked to be left out.
 */

#include "cli/top/capture.h"
#include "cli/top/focus.h"
#include "cli/top/menu.h"
#include "cli/top/prompt.h"
#include "cli/top/wish.h"
#include "cli/view/view.h"

#define PLACE_DEEP 6
#define PLACE_KEY  256
#define PLACE_TEXT 128
#define PLACE_FAR  (1 << 20)	/* further than any table reaches */

/* One table, or the details of one row. */
struct place_step {
	enum view_table table;
	json_t *scope;	/* members that rows must agree with, each one; NULL: all are shown */
	json_t *row;	/* the one whose details are shown; NULL: the table is */
	int cursor;	/* counted over the rows that are shown; of details: the first line */
	int scroll;	/* first row on the screen */
	char key[PLACE_KEY];	/* key of the row under the cursor */
};

/* Steps from a screen's own table to where one has gone. */
struct place_path {
	struct place_step step[PLACE_DEEP];
	int depth;	/* the last of them */
};

/* Only rows of one user, GPU and communicator; empty: of all. */
enum place_pick { PLACE_USER, PLACE_GPU, PLACE_COMM, PLACE_PICKS };

struct place {
	int screen;	/* a table below VIEW_SCREENS */
	struct place_path path[VIEW_SCREENS];
	int sort[VIEW_TABLES];		/* column; -1: worst first */
	bool ascending[VIEW_TABLES];
	char pick[PLACE_PICKS][PLACE_TEXT];
	char filter[PLACE_TEXT];
	char search[PLACE_TEXT];
	bool settled;	/* a key was pressed, or the first rows have said which screen leads */
	bool mouse;	/* the terminal sends clicks, instead of marking text for copying */
	bool tree;
	bool follow;	/* the cursor stays with its row, not with its line */
	bool paused;
	bool help;
	bool help_keys;		/* the help is about all keys, not about the screen */
	bool quit;
	bool interactive;	/* false: one frame of text, no keys */
	bool ascii;
	bool readonly;		/* nothing can be changed from here */
	uint64_t delay_ns;
	struct prompt prompt;
	struct menu menu;
	struct top_wish wish;
	struct focus focus;
	struct capture capture;
	json_t *tags;	/* rows that are tagged, as they were then, by key; or NULL */
	json_t *folded;	/* keys of the tree's branches that are; or NULL */
	/* the state of the last frame */
	int page;	/* rows that it had room for */
	int header_line;	/* the header of the table that keys act on; -1: it has none */
	struct report shown;	/* its columns */
	int count;	/* rows that there were */
	json_t *under;	/* the row under the cursor; or NULL */
	int help_line;	/* first line of the help that is shown */
};

void place_init(struct place *place, uint64_t delay_ns, bool ascii, bool interactive);
void place_deinit(struct place *place);

struct place_step *place_step(struct place *place);

/* The table that is shown there: ranks may be a tree. */
enum view_table place_table(const struct place *place);

/* Goes from the row under the cursor to what it consists of, or to its details. */
void place_enter(struct place *place);

/* Back to where one came from, or from ranks up to their communicators and jobs. */
void place_leave(struct place *place);

void place_screen(struct place *place, int screen);

/* The first rows say, once: jobs lead where there are several, else ranks; not after a key. */
void place_lead(struct place *place, const struct view *view);

/* The cursor up or down, as far as there are rows. */
void place_move(struct place *place, int step);

/* The job that the user has gone into; NULL: into none. */
const json_t *place_job(const struct place *place);

/* The process that the user looks at: has gone into; 0: none. */
json_int_t place_process(const struct place *place, const struct view *view);

/* The answers that have to be asked for to show it. */
struct view_want place_want(const struct place *place, const char *window);

#endif

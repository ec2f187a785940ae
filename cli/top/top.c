/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp top: fetch, layout, draw, key. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/base/member.h"
#include "cli/common/cli.h"
#include "cli/top/ask.h"
#include "cli/top/keys.h"
#include "cli/top/layout.h"
#include "cli/top/screen.h"
#include "util/text.h"

#define TEXT_COLUMNS 100
#define TEXT_LINES   400
#define LIVE_TIMEOUT_MS 1000
#define LOOK_NS      500000000	/* between the two of the first text */

struct top {
	struct cli *cli;
	struct view view;
	struct place place;
	struct frame frame;
};

static int top_fetch(struct top *top, uint64_t now_ns)
{
	const char *window = top->cli->window ? top->cli->window : "10s";
	struct view_want want = place_want(&top->place, window);

	want.fresh = !top->place.interactive;
	return view_fetch(&top->view, top->cli->client, &want, now_ns);
}

/* ---- as text -------------------------------------------------------------- */

static int top_text_columns(void)
{
	const char *columns = getenv("COLUMNS");
	int64_t n;

	if (columns && !text_parse_integer(columns, 20, LINE_BYTES / 4, &n))
		return (int)n;
	return TEXT_COLUMNS;
}

/*
 * Rates and waits are differences: whoever looks only once gets to know them by a second
 * look, a moment later.
 */
static int top_fetch_text(struct top *top)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	bool first = !top->view.known;
	int r = top_fetch(top, cli_now_ns());

	if (r || !first || !json_array_size(top->view.rows[VIEW_RANKS]))
		return r;
	nanosleep(&pause, NULL);
	return top_fetch(top, cli_now_ns());
}

static int top_run_text(struct top *top)
{
	struct cli *cli = top->cli;
	int r = 0;

	frame_init(&top->frame, top_text_columns(), TEXT_LINES);
	for (int64_t i = 0; !r && cli_wants_sample(cli, i); i++) {
		if (i)
			putchar('\n');
		r = top_fetch_text(top);
		if (r)
			break;
		place_lead(&top->place, &top->view);
		layout_frame(&top->frame, &top->view, &top->place);
		for (int k = 0; k < top->frame.count; k++)
			line_print(&top->frame.lines[k], &cli->style, stdout);
		fflush(stdout);
	}
	frame_deinit(&top->frame);
	return r ? cli_fail(cli, r) : CLI_DONE;
}

/* ---- live ----------------------------------------------------------------- */

static void top_draw(struct top *top)
{
	int columns, lines;

	screen_size(&columns, &lines);
	frame_init(&top->frame, columns, lines);
	capture_look(&top->place.capture, cli_now_ns(), top->place.wish.told);
	layout_frame(&top->frame, &top->view, &top->place);
	screen_draw(&top->frame);
	frame_deinit(&top->frame);
}

/* Has the user moved to where something else is to be asked for than before? */
static bool top_has_moved(const struct top *top, int screen, int depth)
{
	return top->place.screen != screen || top->place.path[screen].depth != depth;
}

/* More of what is in flight is to be shown than was asked for. */
static bool top_wants_more(const struct top *top)
{
	int most = place_want(&top->place, "").most;
	const struct view *view = &top->view;

	return (int)json_array_size(view->rows[VIEW_INFLIGHT]) < view->inflight_total &&
	       (!most || most > (int)json_array_size(view->rows[VIEW_INFLIGHT]));
}

/* ---- what the user wants done ---------------------------------------------- */

static void top_tell_failure(struct top *top)
{
	struct top_wish *wish = &top->place.wish;

	snprintf(wish->told, sizeof(wish->told), "! %s", client_error(top->cli->client));
}

/* The number of processes it is about; negative: it failed, and why is told. */
static int top_put_level(struct top *top, const json_t *body)
{
	json_auto_t *answer = NULL;
	int n = client_put(top->cli->client, "/v1/level", body, &answer);

	if (n)
		top_tell_failure(top);
	else
		n = (int)json_array_size(json_object_get(answer, "processes"));
	return n;
}

static void top_send_levels(struct top *top)
{
	struct top_wish *wish = &top->place.wish;
	int told = 0, n = 0;

	json_each(body, wish->due) {
		n = top_put_level(top, body);
		if (n < 0)
			break;
		told += n;
	}
	if (n >= 0)
		snprintf(wish->told, sizeof(wish->told), "%s: %d process%s told", wish->whom,
			 told, told == 1 ? " is" : "es are");
	json_decref(wish->due);
	wish->due = NULL;
}

static void top_start_trace(struct top *top)
{
	struct top_wish *wish = &top->place.wish;
	struct capture *capture = &top->place.capture;
	int r;

	snprintf(capture->whom, sizeof(capture->whom), "%s", wish->whom);
	snprintf(capture->path, sizeof(capture->path), "%s", wish->file);
	r = capture_start(capture, client_socket(top->cli->client), wish->due,
			  top->view.rows[VIEW_RANKS], cli_now_ns());
	if (r)
		snprintf(wish->told, sizeof(wish->told), "! no trace: %s", strerror(-r));
	json_decref(wish->due);
	wish->due = NULL;
	wish->file[0] = '\0';
}

static void top_send_snapshot(struct top *top)
{
	struct top_wish *wish = &top->place.wish;
	json_auto_t *answer = NULL;

	wish->snapshot = false;
	if (client_post(top->cli->client, "/v1/snapshot", &answer))
		top_tell_failure(top);
	else
		snprintf(wish->told, sizeof(wish->told), "snapshot: %s",
			 json_string_value(json_object_get(answer, "path")) ?: "-");
}

/* Send what was confirmed, and tell what came of it until the next key. */
static void top_send_wishes(struct top *top)
{
	json_auto_t *body = focus_due(&top->place.focus, cli_now_ns());

	if (body && top_put_level(top, body) < 0)
		focus_failed(&top->place.focus);
	if (top->place.wish.due && top->place.wish.file[0])
		top_start_trace(top);
	else if (top->place.wish.due)
		top_send_levels(top);
	if (top->place.wish.snapshot)
		top_send_snapshot(top);
}

/* The process that is looked at may be timed in full: asked where nothing else is. */
static void top_look_closer(struct top *top)
{
	struct place *place = &top->place;
	json_int_t pid = place_process(place, &top->view);

	if (place->readonly || !top->view.up)
		return;
	if (focus_look(&place->focus, pid, view_process(&top->view, pid)) &&
	    !place->prompt.label && !place->menu.title && !place->help)
		prompt_open(&place->prompt, FOCUS_QUESTION, ASK_FOCUS, "");
}

/* One key acts and shows what it did, with what has to be asked for first. */
static void top_take_key(struct top *top, int key)
{
	int screen = top->place.screen, depth = top->place.path[screen].depth;
	bool mouse = top->place.mouse;

	keys_press(&top->place, &top->view, key);
	if (mouse != top->place.mouse)
		screen_mouse(top->place.mouse);
	top_send_wishes(top);
	if (top_has_moved(top, screen, depth)) {
		top_fetch(top, cli_now_ns());
		top_look_closer(top);
	} else if (place_table(&top->place) == VIEW_INFLIGHT && top_wants_more(top)) {
		top_fetch(top, cli_now_ns());
	}
	top_draw(top);
}

#define STEP_MS 1000	/* a pause has no end, and a trace is seen to go on */

static int top_wait_ms(const struct top *top, uint64_t left_ns)
{
	bool in_steps = top->place.paused || top->place.capture.pid;

	if (in_steps && (top->place.paused || left_ns > STEP_MS * UINT64_C(1000000)))
		return STEP_MS;
	return (int)(left_ns / 1000000) + 1;
}

/* Keys until it is time to ask again; every key is seen at once. */
static void top_wait_keys(struct top *top, uint64_t begin_ns)
{
	while (!top->place.quit && !screen_signal()) {
		uint64_t until_ns = begin_ns + top->place.delay_ns, now = cli_now_ns();
		uint64_t left = now < until_ns ? until_ns - now : 0;
		int key;

		if (!left && !top->place.paused)
			return;
		key = screen_key(top_wait_ms(top, left));
		if (key)
			top_take_key(top, key);
		else if (top->place.capture.pid)
			top_draw(top);	/* shows how far it is */
	}
}

static void top_run_live(struct top *top)
{
	const struct cli *cli = top->cli;

	for (int64_t i = 0; !top->place.quit && !screen_signal(); i++) {
		uint64_t begin = cli_now_ns();

		if (cli->samples != CLI_ANY && i >= cli->samples)
			break;
		if (!top_fetch(top, begin)) {
			view_sample(&top->view);
			place_lead(&top->place, &top->view);
		}
		top_look_closer(top);
		top_send_wishes(top);
		top_draw(top);
		top_wait_keys(top, begin);
	}
}

/* A signal that was caught to restore the terminal still ends us as it would have. */
static int top_end_by_signal(int caught)
{
	if (caught == SIGINT)
		return CLI_INTERRUPTED;
	if (caught) {
		signal(caught, SIG_DFL);
		raise(caught);
	}
	return CLI_DONE;
}

/* False: as text.  A terminal that is not known is no reason to fail, but one to say why. */
static bool top_open_screen(const struct cli *cli)
{
	int r = cli->terminal && !cli->batch ? screen_open(&cli->style) : -ENOTTY;

	if (r == -ENOENT)
		fprintf(stderr, "ncclinsp: top: no terminfo entry for TERM=%s, so this is text; "
			"install it (ncurses-term, ncurses-base), or try TERM=xterm\n",
			getenv("TERM"));
	return !r;
}

int cmd_top(struct cli *cli)
{
	struct top top = { .cli = cli };
	bool live = top_open_screen(cli);
	int code = CLI_DONE;

	place_init(&top.place, cli->delay_ns, cli->style.ascii, live);
	top.place.readonly = cli->readonly;
	if (live) {
		client_set_timeout(cli->client, LIVE_TIMEOUT_MS);
		top_run_live(&top);
		screen_close();
		capture_end(&top.place.capture);
	} else {
		code = top_run_text(&top);
	}
	view_deinit(&top.view);
	place_deinit(&top.place);
	return live ? top_end_by_signal(screen_signal()) : code;
}

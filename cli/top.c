/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp top: fetch, layout, draw, key. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/layout.h"
#include "cli/screen.h"
#include "util/text.h"

#define TEXT_COLUMNS 100
#define TEXT_LINES   400
#define LIVE_TIMEOUT_MS 1000

struct top {
	struct cli *cli;
	struct view view;
	struct layout_state state;
	struct frame frame;
};

static const char *window(const struct cli *cli)
{
	return cli->window ? cli->window : "10s";
}

/* ---- as text -------------------------------------------------------------- */

static int text_columns(void)
{
	const char *columns = getenv("COLUMNS");
	int64_t n;

	if (columns && !text_parse_integer(columns, 20, LINE_BYTES / 4, &n))
		return (int)n;
	return TEXT_COLUMNS;
}

static int run_text(struct top *top)
{
	struct cli *cli = top->cli;
	int r = 0;

	frame_init(&top->frame, text_columns(), TEXT_LINES);
	for (int64_t i = 0; !r && cli_wants_sample(cli, i); i++) {
		if (i)
			putchar('\n');
		r = view_fetch(&top->view, cli->client, window(cli), cli_now_ns());
		if (r)
			break;
		layout_frame(&top->frame, &top->view, &top->state);
		for (int k = 0; k < top->frame.count; k++)
			line_print(&top->frame.lines[k], &cli->style, stdout);
		fflush(stdout);
	}
	frame_deinit(&top->frame);
	return r ? cli_fail(cli, r) : CLI_DONE;
}

/* ---- live ----------------------------------------------------------------- */

static void draw(struct top *top)
{
	int columns, lines;

	screen_size(&columns, &lines);
	frame_init(&top->frame, columns, lines);
	layout_frame(&top->frame, &top->view, &top->state);
	screen_draw(&top->frame);
	frame_deinit(&top->frame);
}

/* Keys until it is time to ask again; every key is seen at once. */
static void wait_keys(struct top *top, uint64_t until_ns)
{
	while (!top->state.quit && !screen_signal()) {
		uint64_t now = cli_now_ns();
		uint64_t left = now < until_ns ? until_ns - now : 0;

		if (!left && !top->state.paused)
			return;
		layout_key(&top->state,
			   screen_key(top->state.paused ? 1000 : (int)(left / 1000000) + 1));
		draw(top);
	}
}

static void run_live(struct top *top)
{
	const struct cli *cli = top->cli;

	for (int64_t i = 0; !top->state.quit && !screen_signal(); i++) {
		uint64_t begin = cli_now_ns();

		if (cli->samples != CLI_ANY && i >= cli->samples)
			break;
		view_fetch(&top->view, cli->client, window(cli), begin);
		draw(top);
		wait_keys(top, begin + cli->delay_ns);
	}
}

/* A signal that was caught to restore the terminal still ends us as it would have. */
static int end_by(int caught)
{
	if (caught == SIGINT)
		return CLI_INTERRUPTED;
	if (caught) {
		signal(caught, SIG_DFL);
		raise(caught);
	}
	return CLI_DONE;
}

int cmd_top(struct cli *cli)
{
	struct top top = { .cli = cli, .state = { .sort = -1, .delay_ns = cli->delay_ns } };
	int code;

	top.state.interactive = cli->terminal && !screen_open(&cli->style);
	if (!top.state.interactive) {
		code = run_text(&top);
		view_deinit(&top.view);
		return code;
	}
	client_set_timeout(cli->client, LIVE_TIMEOUT_MS);
	run_live(&top);
	screen_close();
	view_deinit(&top.view);
	return end_by(screen_signal());
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The only file that knows curses.  It gives the terminal back however the program ends. */
#include "cli/top/screen.h"

#include <curses.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "cli/top/keys.h"
#include "util/list.h"
#include "util/text.h"

static struct {
	SCREEN *screen;
	bool ascii;
	chtype attrs[LINE_ATTRS];
	struct termios before;
	bool have_before;
} term;

static volatile sig_atomic_t end_signal;

/* ---- signals -------------------------------------------------------------- */

static const int end_signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
static const int crash_signals[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL };

static void screen_on_end(int signal)
{
	end_signal = signal;
}

/*
 * Curses must not be called from here, so the least that makes a shell usable
 * again is written by hand: leave the alternate screen, show the cursor, plain
 * attributes, no mouse; and the line settings.  SA_RESETHAND lets the signal kill us.
 */
static void screen_on_crash(int signal)
{
	static const char restore[] = "\033[?1006l\033[?1000l\033[?1049l\033[?25h\033[0m\r\n";

	if (write(STDOUT_FILENO, restore, sizeof(restore) - 1) < 0)
		_exit(EXIT_FAILURE);
	if (term.have_before)
		tcsetattr(STDIN_FILENO, TCSANOW, &term.before);
	raise(signal);
}

static void screen_catch_signals(void)
{
	struct sigaction end = { .sa_handler = screen_on_end };
	struct sigaction crash = { .sa_handler = screen_on_crash, .sa_flags = (int)SA_RESETHAND };

	for (size_t i = 0; i < ARRAY_LEN(end_signals); i++)
		sigaction(end_signals[i], &end, NULL);
	for (size_t i = 0; i < ARRAY_LEN(crash_signals); i++)
		sigaction(crash_signals[i], &crash, NULL);
}

int screen_signal(void)
{
	return end_signal;
}

/* ---- attributes ----------------------------------------------------------- */

static const struct {
	attr_t plain;	/* attributes without colour */
	short color;	/* -1: none */
	short back;	/* -1: the terminal's own */
	attr_t extra;	/* attributes with colours */
} looks[LINE_ATTRS] = {
	[LINE_PLAIN] = { A_NORMAL, -1, -1, A_NORMAL },
	[LINE_BOLD] = { A_BOLD, -1, -1, A_BOLD },
	[LINE_DIM] = { A_DIM, -1, -1, A_DIM },
	[LINE_BAD] = { A_BOLD, COLOR_RED, -1, A_BOLD },
	[LINE_WARN] = { A_NORMAL, COLOR_BLACK, COLOR_YELLOW, A_NORMAL },
	[LINE_GOOD] = { A_NORMAL, COLOR_GREEN, -1, A_NORMAL },
	[LINE_BAR] = { A_REVERSE, -1, -1, A_REVERSE },
	[LINE_CURSOR] = { A_REVERSE | A_BOLD, -1, -1, A_REVERSE | A_BOLD },
};

static void screen_make_attrs(bool color)
{
	bool colors = color && has_colors() && start_color() == OK;

	if (colors)
		use_default_colors();
	for (int i = 0; i < LINE_ATTRS; i++) {
		term.attrs[i] = looks[i].plain;
		if (!colors || looks[i].color < 0)
			continue;
		init_pair((short)(i + 1), looks[i].color, looks[i].back);
		term.attrs[i] = looks[i].extra | COLOR_PAIR(i + 1);
	}
}

/* ---- life ----------------------------------------------------------------- */

int screen_open(const struct line_style *style)
{
	const char *name = getenv("TERM");

	if (!name || !*name || !strcmp(name, "dumb") || !isatty(STDIN_FILENO))
		return -ENOTTY;
	term.have_before = !tcgetattr(STDIN_FILENO, &term.before);
	screen_catch_signals();	/* before curses, which leaves handlers that it finds alone */
	term.screen = newterm(NULL, stdout, stdin);
	if (!term.screen)
		return -ENOENT;
	set_term(term.screen);
	atexit(screen_close);
	term.ascii = style->ascii;
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	set_escdelay(100);	/* a sequence of a click may come in pieces */
	curs_set(0);
	screen_make_attrs(style->color);
	return 0;
}

void screen_close(void)
{
	if (!term.screen)
		return;
	endwin();
	delscreen(term.screen);
	term.screen = NULL;
}

void screen_mouse(bool on)
{
	mouseinterval(0);	/* a press is a click, at once */
	mousemask(on ? BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED : 0, NULL);
}

void screen_size(int *columns, int *lines)
{
	getmaxyx(stdscr, *lines, *columns);
}

/* ---- drawing -------------------------------------------------------------- */

static void screen_draw_line(int y, const struct line *line)
{
	int begin = 0;

	move(y, 0);
	for (int i = 0; i < line->spans; i++) {
		char part[LINE_BYTES];
		int len = line->span[i].end - begin;

		memcpy(part, line->text + begin, (size_t)len);
		part[len] = '\0';
		if (term.ascii)
			text_to_ascii(part);
		attrset(term.attrs[line->span[i].attr]);
		addstr(part);
		begin = line->span[i].end;
	}
	attrset(A_NORMAL);
}

void screen_draw(const struct frame *frame)
{
	erase();
	for (int i = 0; i < frame->count; i++)
		screen_draw_line(i, &frame->lines[i]);
	refresh();
}

/* ---- keys ----------------------------------------------------------------- */

static const struct {
	int curses;
	int key;
} keys[] = {
	{ KEY_UP, KEYS_UP },		{ KEY_DOWN, KEYS_DOWN },
	{ KEY_PPAGE, KEYS_PAGE_UP },	{ KEY_NPAGE, KEYS_PAGE_DOWN },
	{ KEY_HOME, KEYS_HOME },	{ KEY_END, KEYS_END },
	{ KEY_RIGHT, KEYS_NEXT },	{ KEY_LEFT, KEYS_PREVIOUS },
	{ KEY_BTAB, KEYS_PREVIOUS },	{ KEY_F(1), KEYS_HELP },
	{ KEY_F(2), KEYS_MENU },	{ KEY_F(3), KEYS_SEARCH },
	{ KEY_F(4), KEYS_FILTER },	{ KEY_F(5), KEYS_TREE },
	{ KEY_F(6), KEYS_SORT },	{ KEY_F(10), KEYS_QUIT },
	{ KEY_ENTER, KEYS_ENTER },	{ '\n', KEYS_ENTER },
	{ KEY_BACKSPACE, KEYS_ERASE },	{ KEY_RESIZE, KEYS_NONE },
	{ 'L' - '@', KEYS_NONE },	{ 0x7f, KEYS_ERASE },
	{ '\b', KEYS_ERASE },
};

/* A terminal that has gone answers at once, again and again. */
static void look_for_end(void)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

	if (poll(&in, 1, 0) > 0 && in.revents & (POLLHUP | POLLERR | POLLNVAL))
		end_signal = SIGHUP;
}

static int screen_mouse_key(void)
{
	MEVENT event;

	if (getmouse(&event) != OK)
		return 0;
	if (event.bstate & BUTTON4_PRESSED)
		return KEYS_WHEEL_UP;
	if (event.bstate & BUTTON5_PRESSED)
		return KEYS_WHEEL_DOWN;
	return event.bstate & BUTTON1_PRESSED ? KEYS_CLICK_AT(event.x, event.y) : 0;
}

int screen_key(int timeout_ms)
{
	int c;

	timeout(timeout_ms);
	c = getch();
	if (c == ERR)
		look_for_end();
	if (c == KEY_MOUSE)
		return screen_mouse_key();
	if (c == 'L' - '@')
		clearok(curscr, TRUE);
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (keys[i].curses == c)
			return keys[i].key;
	return c > 0 && c < 0x100 ? c : 0;
}

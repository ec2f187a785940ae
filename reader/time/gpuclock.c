/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Points are (x, y) = (g - g0, (u - g) - (u0 - g0)): subtracted as whole numbers
 * from the window's first stamp, since 1.7e18 ns leave a double no room.  Those
 * below the line are kept upside down, so that both sets are a hull of minima.
 *
 * The least and the greatest slope of any line between the two sets are worked out
 * anew when points have changed them, but no more often than every REFIT_NS; between,
 * the older and wider ones serve.
 *
 * Two windows overlap by half.  The older one answers; when it is full, or was
 * contradicted, the younger one takes its place.
 */
#include "reader/time/gpuclock.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reader/base/model.h"
#include "reader/time/hull.h"

#define REFIT_NS	100000000
#define REFIT_TRIES	32
#define PAST_NS		30000	/* before its launch by more: another kernel's stamp */
#define TRIAL_SIGHTS	16	/* sights in a row tell of a step */
#define SURE_KERNELS	16	/* by so many, the latest moment of a stamp is known well */
#define COARSEST_NS	1024	/* the slowest tick that any GPU is known to have */
#define FAR_NS		(INT64_C(1) << 42)	/* 73 minutes: in no window that began then */
#define ROUNDED_NS	1	/* by so much nothing bends */
#define WATCHED_NS	50000	/* shorter kernels are not seen to begin and end */

struct clock_window {
	uint64_t g0, u0;
	struct hull above, below;	/* below: mirrored, and so are its slopes */
	int64_t fitted_x;
	uint32_t kernels;		/* one after another; channels of one are one */
	uint64_t newest_stop;
	bool changed;
};

struct gpuclock {
	struct clock_window w[2];	/* the one that answers, the younger one */
	struct clock_window trial;	/* window since the clock may have stepped */
	bool has_young;
	uint32_t trials;		/* sights in it; 0: there is none */
	uint64_t newest_gpu;		/* stamp that fitted */
	uint64_t last_gpu;		/* seen, whatever it was */
	uint64_t grid, least_apart;	/* divisor, and least, of all differences between stamps */
	/*
	 * Its resolution as far as it is known: the grid, or where there is none (its tick is no
	 * whole number of ns) the least difference, and no coarser than any clock that is known.
	 */
	uint64_t unit;
	uint64_t stamps, windows, steps, bends;
};

/* ---- one window ---------------------------------------------------------- */

static void window_begin(struct clock_window *w, uint64_t g, uint64_t u)
{
	w->g0 = g;
	w->u0 = u;
	hull_begin(&w->above);
	hull_begin(&w->below);
	w->fitted_x = INT64_MIN;
	w->kernels = 0;
	w->newest_stop = 0;
	w->changed = false;
}

/* Moments further away than FAR_NS are not of this clock. */
static double window_x(const struct clock_window *w, uint64_t g)
{
	return (double)(int64_t)(g - w->g0);
}

/*
 * The greatest slope of a line between the sets, times `sign`, by what was known of it before.
 * False: there is no line.
 */
static bool window_steepest(const struct clock_window *w, double sign, double *slope)
{
	double s = *slope;

	for (int i = 0; i < REFIT_TRIES; i++) {
		struct hull_point a, b;
		double gap = hull_touch(&w->above, s, &a) + hull_touch(&w->below, -s, &b);
		double dx = a.x - b.x;

		if (gap >= -0.5) {
			*slope = s;
			return true;
		}
		if (sign * dx <= 0)	/* turning it further back opens no gap */
			return false;
		s = (a.y + b.y) / dx;
		if (s * sign < -1.0 / HULL_SLOPE)
			return false;
	}
	return true;			/* the slope stays as steep: wider, never wrong */
}

/* False: no straight line runs between the sets any more. */
static bool window_fit(struct clock_window *w)
{
	double min = w->above.min, max = w->above.max;

	w->changed = false;
	if (hull_is_empty(&w->above) || hull_is_empty(&w->below))
		return true;
	if (!window_steepest(w, -1, &min) || !window_steepest(w, 1, &max))
		return false;
	max = max > min ? max : min;
	hull_narrow(&w->above, min, max);
	hull_narrow(&w->below, -max, -min);
	return true;
}

/* A moment of a sight as a window sees it. */
struct clock_point {
	double x, y;		/* y: upside down as its hull is; HUGE_VAL: not told */
	double bound;		/* of its hull */
};

struct sight_points {
	struct clock_point start, stop, launch;	/* launch: the least that its start can be */
	bool far;		/* too far from the window's origin to be of this clock */
	bool news;		/* one of them keeps lines lower than its hull does */
};

/* True: it lowers the lines. */
static inline bool point_look(struct clock_point *p, const struct clock_window *w,
			      const struct hull *h, uint64_t g, uint64_t u)
{
	double y = (double)(int64_t)((u - g) - (w->u0 - w->g0));

	p->x = window_x(w, g);
	p->y = !u ? HUGE_VAL : h == &w->below ? -y : y;
	p->bound = hull_bound(h, p->x);
	return p->y + GPUCLOCK_HOST_NS + h->near < p->bound;
}

static struct sight_points window_points(const struct clock_window *w,
					 const struct gpuclock_sight *s)
{
	struct sight_points p;

	p.news = point_look(&p.start, w, &w->above, s->gpu_start_ns, s->start_ns);
	p.news |= point_look(&p.stop, w, &w->above, s->gpu_stop_ns, s->stop_ns);
	p.news |= point_look(&p.launch, w, &w->below, s->gpu_first_ns ?: s->gpu_start_ns,
			     s->launch_ns);
	p.far = fabs(p.start.x) >= FAR_NS || fabs(p.start.y) >= FAR_NS;
	return p;
}

/* Does it lie behind all lines, those above the other hull, by more than that? */
static bool point_is_beyond(const struct clock_point *p, const struct hull *other, double by_ns)
{
	return p->y + by_ns < p->bound && p->y + by_ns < -hull_bound(other, p->x);
}

/* False: the line cannot be straight between this point and the others. */
static bool window_add_point(struct clock_window *w, struct hull *h, const struct hull *other,
			     const struct clock_point *p)
{
	double y = p->y + GPUCLOCK_HOST_NS;

	if (y + h->near >= p->bound || !hull_add(h, p->x, y))
		return true;
	w->changed = true;
	return y + ROUNDED_NS >= -hull_bound(other, p->x);
}

static bool window_add(struct clock_window *w, const struct gpuclock_sight *s,
		       const struct sight_points *p)
{
	int64_t x = (int64_t)(s->gpu_stop_ns - w->g0);

	if (s->gpu_start_ns >= w->newest_stop)
		w->kernels++;
	if (s->gpu_stop_ns > w->newest_stop)
		w->newest_stop = s->gpu_stop_ns;
	if (p->news && !(window_add_point(w, &w->above, &w->below, &p->start) &&
			 window_add_point(w, &w->above, &w->below, &p->stop) &&
			 window_add_point(w, &w->below, &w->above, &p->launch)))
		return false;
	if (!w->changed || x - REFIT_NS < w->fitted_x)
		return true;
	w->fitted_x = x;
	return window_fit(w);
}

static bool window_take(struct clock_window *w, const struct gpuclock_sight *s)
{
	const struct sight_points p = window_points(w, s);

	return window_add(w, s, &p);
}

/* A sight that brings no news lies where all others do. */
static enum gpuclock_verdict window_judge(const struct clock_window *w,
					  const struct sight_points *p)
{
	if (p->far)
		return p->start.y < 0 ? GPUCLOCK_FUTURE : GPUCLOCK_PAST;
	if (!p->news)
		return GPUCLOCK_FITS;
	if (point_is_beyond(&p->start, &w->below, GPUCLOCK_STEP_NS) ||
	    point_is_beyond(&p->stop, &w->below, GPUCLOCK_STEP_NS))
		return GPUCLOCK_FUTURE;
	return point_is_beyond(&p->launch, &w->above, PAST_NS) ? GPUCLOCK_PAST : GPUCLOCK_FITS;
}

/* The callback of its start came later than any clock bends, for sure. */
static bool sight_is_late(const struct sight_points *p)
{
	return p->start.y - GPUCLOCK_STEP_NS > p->start.bound;
}

/* ---- the windows --------------------------------------------------------- */

int gpuclock_new(struct gpuclock **cp)
{
	struct gpuclock *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->least_apart = UNKNOWN_U64;
	c->unit = COARSEST_NS;
	window_begin(&c->w[0], 0, 0);
	window_begin(&c->trial, 0, 0);
	*cp = c;
	return 0;
}

void gpuclock_free(struct gpuclock *c)
{
	free(c);
}

static void gpuclock_begin_anew(struct gpuclock *c, const struct gpuclock_sight *s)
{
	window_begin(&c->w[0], s->gpu_start_ns, s->start_ns);
	c->has_young = false;
	c->windows++;
}

/* The older one has had its time, or was contradicted. */
static void gpuclock_move_on(struct gpuclock *c, const struct gpuclock_sight *s)
{
	if (!c->has_young) {
		gpuclock_begin_anew(c, s);
		return;
	}
	c->w[0] = c->w[1];
	c->has_young = false;
}

/* `p` is the sight in the older window. */
static void gpuclock_learn_sight(struct gpuclock *c, const struct gpuclock_sight *s,
				 const struct sight_points *p)
{
	int64_t age = (int64_t)(s->start_ns - c->w[0].u0);
	struct sight_points moved;

	if (age > GPUCLOCK_WINDOW_NS) {
		gpuclock_move_on(c, s);
		age = (int64_t)(s->start_ns - c->w[0].u0);
		moved = window_points(&c->w[0], s);
		p = &moved;
	}
	if (!c->has_young && age > GPUCLOCK_WINDOW_NS / 2) {
		window_begin(&c->w[1], s->gpu_start_ns, s->start_ns);
		c->has_young = true;
		c->windows++;
	}
	if (c->has_young && !window_take(&c->w[1], s))
		window_begin(&c->w[1], s->gpu_start_ns, s->start_ns);
	if (window_add(&c->w[0], s, p))
		return;
	c->bends++;
	gpuclock_move_on(c, s);
	window_take(&c->w[0], s);
}

/*
 * Whether the host saw it run from beginning to end.  If so, the callbacks did not
 * come late, and the stamps are its own: a late callback, and one that tells of an
 * earlier kernel, find the end there already.
 */
enum watched {
	TOO_SHORT,		/* to tell */
	WATCHED,
	NOT_WATCHED,
};

static enum watched sight_was_watched(const struct gpuclock_sight *s)
{
	double ran = (double)(s->gpu_stop_ns - s->gpu_start_ns);
	double seen = (double)(int64_t)(s->stop_ns - s->start_ns);

	if (!s->stop_ns || ran < WATCHED_NS)
		return TOO_SHORT;
	return fabs(seen - ran) <= 0.2 * ran ? WATCHED : NOT_WATCHED;
}

bool gpuclock_watched(const struct gpuclock_sight *s)
{
	return sight_was_watched(s) == WATCHED;
}

bool gpuclock_is_sure(const struct gpuclock *c)
{
	return c->w[0].kernels >= SURE_KERNELS;
}

/* It contradicts the clock as we know it.  True: too many do, the clock has stepped. */
static bool gpuclock_try(struct gpuclock *c, const struct gpuclock_sight *s)
{
	const struct sight_points p = window_points(&c->trial, s);

	if (!c->trials || window_judge(&c->trial, &p) != GPUCLOCK_FITS ||
	    !window_add(&c->trial, s, &p)) {
		window_begin(&c->trial, s->gpu_start_ns, s->start_ns);
		window_take(&c->trial, s);
		c->trials = 0;
	}
	if (++c->trials < TRIAL_SIGHTS)
		return false;
	c->w[0] = c->trial;
	c->has_young = false;
	c->trials = 0;
	c->windows++;
	c->steps++;
	return true;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* A difference that says more of the grid than those before. */
static void gpuclock_note_apart(struct gpuclock *c, uint64_t apart)
{
	if (apart < c->least_apart)
		c->least_apart = apart;
	c->grid = common_divisor(apart, c->grid);
	c->unit = c->grid > 1 ? c->grid : c->least_apart;
	if (c->unit > COARSEST_NS)
		c->unit = COARSEST_NS;
}

static void gpuclock_note_stamp(struct gpuclock *c, uint64_t gpu_ns)
{
	uint64_t apart = gpu_ns > c->last_gpu ? gpu_ns - c->last_gpu : c->last_gpu - gpu_ns;

	if (apart && c->last_gpu &&
	    (apart < c->least_apart || (c->grid != 1 && apart % c->grid)))
		gpuclock_note_apart(c, apart);
	c->last_gpu = gpu_ns;
}

/* Signs of a step count only if nothing comes between that speaks against it. */
static bool gpuclock_has_stepped(struct gpuclock *c, const struct gpuclock_sight *s,
				 const struct sight_points *p, enum gpuclock_verdict verdict)
{
	bool late = verdict != GPUCLOCK_FUTURE && sight_is_late(p);
	enum watched watched = sight_was_watched(s);

	if (verdict == GPUCLOCK_FUTURE || (watched == WATCHED && (late || verdict)))
		return gpuclock_try(c, s);
	if ((verdict == GPUCLOCK_FITS && !late) || watched == NOT_WATCHED)
		c->trials = 0;
	return false;
}

/* Stamps that are told of, whatever they are worth. */
static void gpuclock_note(struct gpuclock *c, const struct gpuclock_sight *s)
{
	gpuclock_note_stamp(c, s->gpu_start_ns);
	gpuclock_note_stamp(c, s->gpu_stop_ns);
}

static bool gpuclock_is_beyond(const struct gpuclock *c, const struct gpuclock_sight *s)
{
	return !c->windows || (int64_t)(s->start_ns - c->w[0].u0) > FAR_NS / 2;
}

static void gpuclock_take(struct gpuclock *c, const struct gpuclock_sight *s,
			  const struct sight_points *p)
{
	gpuclock_learn_sight(c, s, p);
	c->stamps++;
	c->newest_gpu = s->gpu_stop_ns;
}

enum gpuclock_verdict gpuclock_see(struct gpuclock *c, const struct gpuclock_sight *s,
				   bool trusted)
{
	enum gpuclock_verdict verdict;
	struct sight_points p;

	gpuclock_note(c, s);
	if (!s->start_ns)
		return GPUCLOCK_FITS;
	if (gpuclock_is_beyond(c, s))
		gpuclock_begin_anew(c, s);
	p = window_points(&c->w[0], s);
	verdict = window_judge(&c->w[0], &p);
	if (gpuclock_has_stepped(c, s, &p, verdict)) {
		verdict = GPUCLOCK_FITS;
		p = window_points(&c->w[0], s);
	}
	if (verdict != GPUCLOCK_FITS || !trusted)
		return verdict;
	gpuclock_take(c, s, &p);
	return GPUCLOCK_FITS;
}

bool gpuclock_see_plain(struct gpuclock *c, const struct gpuclock_sight *s)
{
	struct sight_points p;

	if (!s->start_ns || gpuclock_is_beyond(c, s))
		return false;
	p = window_points(&c->w[0], s);
	if (window_judge(&c->w[0], &p) != GPUCLOCK_FITS || sight_is_late(&p))
		return false;
	gpuclock_note(c, s);
	c->trials = 0;
	gpuclock_take(c, s, &p);
	return true;
}

/* ---- questions ----------------------------------------------------------- */

/* Rounded up. */
static uint64_t whole_ns(double ns)
{
	int64_t whole = (int64_t)ns;

	return (uint64_t)whole + ((double)whole < ns);
}

bool gpuclock_map(const struct gpuclock *c, uint64_t gpu_ns, uint64_t *lo, uint64_t *hi)
{
	const struct clock_window *w = &c->w[0];
	uint64_t base = gpu_ns + (w->u0 - w->g0);
	double down, x = window_x(w, gpu_ns);

	if (hull_is_empty(&w->above) || fabs(x) >= FAR_NS)
		return false;
	*hi = base + whole_ns(hull_bound(&w->above, x)) + c->unit;
	if (!lo)
		return true;
	down = hull_bound(&w->below, x);
	*lo = down < HUGE_VAL ? base - whole_ns(down) - c->unit : 0;
	if (*lo > *hi)			/* bent, and not found out yet */
		*lo = *hi;
	return true;
}

uint64_t gpuclock_span_error(const struct gpuclock *c, uint64_t span_ns)
{
	const struct clock_window *w = &c->w[0];
	double drift = -w->above.min > w->above.max ? -w->above.min : w->above.max;

	if (!c->grid)			/* no two stamps have differed yet */
		return UNKNOWN_U64;
	return c->unit + whole_ns((double)(int64_t)span_ns * drift);
}

void gpuclock_facts(const struct gpuclock *c, struct gpuclock_facts *facts)
{
	const struct clock_window *w = &c->w[0];

	*facts = (struct gpuclock_facts){
		.stamps = c->stamps,
		.gpu_ns = c->newest_gpu,
		.has_drift = !hull_is_empty(&w->above) && !hull_is_empty(&w->below),
		.drift_ppm = -1e6 * (w->above.min + w->above.max) / 2,
		.drift_error_ppm = 1e6 * (w->above.max - w->above.min) / 2,
		.resolution_ns = c->grid > 1 ? c->grid : c->grid ? c->unit : UNKNOWN_U64,
		.windows = c->windows,
		.steps = c->steps,
		.bends = c->bends,
		.points = w->above.n + w->below.n,
	};
	if (c->stamps)
		gpuclock_map(c, c->newest_gpu, &facts->lo_ns, &facts->hi_ns);
}

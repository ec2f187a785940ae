/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Points are (x, y) = (g - g0, (u - g) - (u0 - g0)): subtracted as whole numbers
 * from the window's first stamp, since 1.7e18 ns leave a double no room.  Those
 * below the line are kept upside down, so that both sets are a hull of minima.
 *
 * `lines` is what the two sets have in common: the least and the greatest slope of
 * any line between them.  It is worked out anew when points have changed it, but
 * no more often than every REFIT_NS; between, the older and wider one serves.
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
#define WATCHED_NS	50000	/* shorter kernels are not seen to begin and end */

struct clock_window {
	uint64_t g0, u0;
	struct hull above, below;	/* below: mirrored */
	double min, max;		/* slopes of the lines between them */
	int64_t fitted_x;
	uint32_t kernels;		/* one after another; channels of one are one */
	uint64_t newest_stop;
	bool changed;
	/*
	 * The bracket where it was worked out last, and what points since may have left of it:
	 * elsewhere it is no further off than the steepest line.
	 */
	int64_t known_x, known_lo, known_hi;
};

struct gpuclock {
	struct clock_window w[2];	/* the one that answers, the younger one */
	struct clock_window trial;	/* window since the clock may have stepped */
	bool has_young;
	uint32_t trials;		/* sights in it; 0: there is none */
	uint64_t newest_gpu;		/* stamp that fitted */
	uint64_t last_gpu;		/* seen, whatever it was */
	uint64_t grid, least_apart;	/* divisor, and least, of all differences between stamps */
	uint64_t stamps, windows, steps, bends;
};

int gpuclock_new(struct gpuclock **cp)
{
	struct gpuclock *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->least_apart = UNKNOWN_U64;
	*cp = c;
	return 0;
}

void gpuclock_free(struct gpuclock *c)
{
	free(c);
}

/* ---- one window ---------------------------------------------------------- */

/* No point lies on the right side of such a bracket. */
static void window_forget(struct clock_window *w)
{
	w->known_lo = 2 * HULL_MAX;
	w->known_hi = -2 * HULL_MAX;
}

static void window_begin(struct clock_window *w, uint64_t g, uint64_t u)
{
	*w = (struct clock_window){ .g0 = g, .u0 = u, .min = -1.0 / HULL_SLOPE,
				    .max = 1.0 / HULL_SLOPE, .fitted_x = INT64_MIN };
	window_forget(w);
}

/* False: too far from the window's origin to be of this clock. */
static bool window_x(const struct clock_window *w, uint64_t g, int64_t *x)
{
	*x = (int64_t)(g - w->g0);
	return *x > -HULL_MAX && *x < HULL_MAX;
}

static bool window_point(const struct clock_window *w, uint64_t g, uint64_t u, struct hull_point *p)
{
	p->y = (int64_t)((u - g) - (w->u0 - w->g0));
	return window_x(w, g, &p->x) && p->y > -HULL_MAX && p->y < HULL_MAX;
}

/* The greatest slope of a line between the sets, times `sign`; false: there is none. */
static bool window_steepest(const struct clock_window *w, double sign, double *slope)
{
	double s = sign / HULL_SLOPE;

	for (int i = 0; i < REFIT_TRIES; i++) {
		struct hull_point a, b;
		double gap = hull_touch(&w->above, s, &a) + hull_touch(&w->below, -s, &b);
		double dx = (double)(a.x - b.x);

		if (gap >= -0.5) {
			*slope = s;
			return true;
		}
		if (sign * dx <= 0)	/* turning it further back opens no gap */
			return false;
		s = (double)(a.y + b.y) / dx;
		if (s * sign < -1.0 / HULL_SLOPE)
			return false;
	}
	return true;			/* the slope stays as steep: wider, never wrong */
}

/* False: no straight line runs between the sets any more. */
static bool window_fit(struct clock_window *w)
{
	double min = w->min, max = w->max;

	w->changed = false;
	if (!w->above.n || !w->below.n)
		return true;
	if (!window_steepest(w, -1, &min) || !window_steepest(w, 1, &max))
		return false;
	w->min = min;
	w->max = max > min ? max : min;
	return true;
}

static double window_hi_at(const struct clock_window *w, double x)
{
	return w->above.n ? hull_bound(&w->above, x, w->min, w->max) : HUGE_VAL;
}

static double window_lo_at(const struct clock_window *w, double x)
{
	return w->below.n ? -hull_bound(&w->below, x, -w->max, -w->min) : -HUGE_VAL;
}

static int64_t double_clamped(double y)
{
	return (int64_t)fmax(fmin(y, (double)HULL_MAX), -(double)HULL_MAX);
}

static void window_know(struct clock_window *w, int64_t x)
{
	w->known_x = x;
	w->known_lo = double_clamped(window_lo_at(w, (double)x));
	w->known_hi = double_clamped(window_hi_at(w, (double)x));
}

/* The steepest line differs there from where the bracket is known by less. */
static int64_t window_away(const struct clock_window *w, int64_t x)
{
	return llabs(x - w->known_x) / HULL_SLOPE + 1;
}

/* Does the point lie below all lines, by more than that? */
static bool window_is_below(struct clock_window *w, const struct hull_point *p, int64_t by_ns)
{
	if (p->y + by_ns - w->known_lo > window_away(w, p->x))
		return false;
	window_know(w, p->x);
	return w->known_lo - p->y > by_ns;
}

/* The same above all lines. */
static bool window_is_above(struct clock_window *w, const struct hull_point *p, int64_t by_ns)
{
	if (w->known_hi + by_ns - p->y > window_away(w, p->x))
		return false;
	window_know(w, p->x);
	return p->y - w->known_hi > by_ns;
}

/* What a sight is to a window; not there: too far away, or not told. */
struct sight_points {
	struct hull_point start, stop, launch;	/* launch: the least that its start can be */
	bool has_start, has_stop, has_launch;
};

static uint64_t sight_first_ns(const struct gpuclock_sight *s)
{
	return s->gpu_first_ns ?: s->gpu_start_ns;
}

static struct sight_points window_points(const struct clock_window *w,
					 const struct gpuclock_sight *s)
{
	struct sight_points p;

	p.has_start = s->start_ns && window_point(w, s->gpu_start_ns, s->start_ns, &p.start);
	p.has_stop = s->stop_ns && window_point(w, s->gpu_stop_ns, s->stop_ns, &p.stop);
	p.has_launch = s->launch_ns &&
		       window_point(w, sight_first_ns(s), s->launch_ns, &p.launch);
	return p;
}

/* False: the line cannot be straight between this point and the others. */
static bool window_add_above(struct clock_window *w, struct hull_point p)
{
	int64_t least;

	p.y += GPUCLOCK_HOST_NS;
	if (!hull_add(&w->above, p.x, p.y))
		return true;
	w->changed = true;
	least = p.y - window_away(w, p.x);
	w->known_hi = least < w->known_hi ? least : w->known_hi;
	return !window_is_below(w, &p, 0);
}

static bool window_add_below(struct clock_window *w, struct hull_point p)
{
	int64_t most;

	p.y -= GPUCLOCK_HOST_NS;
	if (!hull_add(&w->below, p.x, -p.y))
		return true;
	w->changed = true;
	most = p.y + window_away(w, p.x);
	w->known_lo = most > w->known_lo ? most : w->known_lo;
	return !window_is_above(w, &p, 0);
}

static bool window_add(struct clock_window *w, const struct gpuclock_sight *s,
		       const struct sight_points *p)
{
	bool straight = (!p->has_start || window_add_above(w, p->start)) &&
			(!p->has_stop || window_add_above(w, p->stop)) &&
			(!p->has_launch || window_add_below(w, p->launch));
	int64_t x = (int64_t)(s->gpu_stop_ns - w->g0);

	if (s->gpu_start_ns >= w->newest_stop)
		w->kernels++;
	if (s->gpu_stop_ns > w->newest_stop)
		w->newest_stop = s->gpu_stop_ns;
	if (straight && w->changed && x - REFIT_NS >= w->fitted_x) {
		w->fitted_x = x;
		straight = window_fit(w);
		window_forget(w);
	}
	return straight;
}

static bool window_take(struct clock_window *w, const struct gpuclock_sight *s)
{
	const struct sight_points p = window_points(w, s);

	return window_add(w, s, &p);
}

static enum gpuclock_verdict window_judge(struct clock_window *w, const struct gpuclock_sight *s,
					  const struct sight_points *p)
{
	if ((p->has_start && window_is_below(w, &p->start, GPUCLOCK_STEP_NS)) ||
	    (p->has_stop && window_is_below(w, &p->stop, GPUCLOCK_STEP_NS)))
		return GPUCLOCK_FUTURE;
	if (p->has_launch && window_is_above(w, &p->launch, PAST_NS))
		return GPUCLOCK_PAST;
	if (s->start_ns && !p->has_start)
		return s->start_ns - s->gpu_start_ns - (w->u0 - w->g0) > INT64_MAX ?
		       GPUCLOCK_FUTURE : GPUCLOCK_PAST;
	return GPUCLOCK_FITS;
}

/* ---- the windows --------------------------------------------------------- */

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

static bool sight_is_late(struct clock_window *w, const struct sight_points *p)
{
	return p->has_start && window_is_above(w, &p->start, GPUCLOCK_STEP_NS);
}

/* It contradicts the clock as we know it.  True: too many do, the clock has stepped. */
static bool gpuclock_try(struct gpuclock *c, const struct gpuclock_sight *s)
{
	const struct sight_points p = window_points(&c->trial, s);

	if (!c->trials || window_judge(&c->trial, s, &p) != GPUCLOCK_FITS ||
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

static void note_stamp(struct gpuclock *c, uint64_t gpu_ns)
{
	uint64_t apart = gpu_ns > c->last_gpu ? gpu_ns - c->last_gpu : c->last_gpu - gpu_ns;

	if (apart && c->last_gpu) {
		if (apart < c->least_apart)
			c->least_apart = apart;
		if (c->grid != 1 && (!c->grid || apart % c->grid))
			c->grid = common_divisor(apart, c->grid);
	}
	c->last_gpu = gpu_ns;
}

/* Signs of a step count only if nothing comes between that speaks against it. */
static bool gpuclock_has_stepped(struct gpuclock *c, const struct gpuclock_sight *s,
				 const struct sight_points *p, enum gpuclock_verdict verdict)
{
	bool late = verdict != GPUCLOCK_FUTURE && sight_is_late(&c->w[0], p);
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
	note_stamp(c, s->gpu_start_ns);
	note_stamp(c, s->gpu_stop_ns);
}

static bool gpuclock_is_beyond(const struct gpuclock *c, const struct gpuclock_sight *s)
{
	return !c->windows || (int64_t)(s->start_ns - c->w[0].u0) > HULL_MAX / 2;
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
	verdict = window_judge(&c->w[0], s, &p);
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
	if (window_judge(&c->w[0], s, &p) != GPUCLOCK_FITS || sight_is_late(&c->w[0], &p))
		return false;
	gpuclock_note(c, s);
	c->trials = 0;
	gpuclock_take(c, s, &p);
	return true;
}

/* ---- questions ----------------------------------------------------------- */

/* No coarser than any that is known. */
static uint64_t known_resolution(const struct gpuclock *c)
{
	uint64_t ns = c->grid > 1 ? c->grid : c->least_apart;

	return ns < COARSEST_NS ? ns : COARSEST_NS;
}

/*
 * The number that all differences are multiples of.  A clock without such a grid (its tick
 * is no whole number of ns) is no coarser than the least difference, nor than any known.
 */
static uint64_t gpuclock_resolution_of(const struct gpuclock *c)
{
	if (c->grid != 1)
		return c->grid ? c->grid : UNKNOWN_U64;
	return known_resolution(c);
}

bool gpuclock_map(const struct gpuclock *c, uint64_t gpu_ns, uint64_t *lo, uint64_t *hi)
{
	const struct clock_window *w = &c->w[0];
	uint64_t base = gpu_ns + (w->u0 - w->g0), unit = known_resolution(c);
	double low, high;
	int64_t x;

	if (!c->windows || !w->above.n || !window_x(w, gpu_ns, &x))
		return false;
	high = window_hi_at(w, (double)x);
	low = window_lo_at(w, (double)x);
	*hi = base + (uint64_t)(int64_t)ceil(high) + unit;
	*lo = w->below.n ? base + (uint64_t)(int64_t)floor(low) - unit : 0;
	if (*lo > *hi)			/* bent, and not found out yet */
		*lo = *hi;
	return true;
}

bool gpuclock_no_later(const struct gpuclock *c, uint64_t gpu_ns, uint64_t *hi)
{
	const struct clock_window *w = &c->w[0];
	const struct hull_point *newest;
	double high;
	int64_t x;

	if (!c->windows || !w->above.n || !window_x(w, gpu_ns, &x))
		return false;
	newest = &w->above.p[w->above.n - 1];
	high = (double)newest->y +
	       (double)(x - newest->x) * (x < newest->x ? w->min : w->max);
	*hi = gpu_ns + (w->u0 - w->g0) + (uint64_t)((int64_t)high + 2) + known_resolution(c);
	return true;
}

uint64_t gpuclock_span_error(const struct gpuclock *c, uint64_t span_ns)
{
	const struct clock_window *w = &c->w[0];
	double drift = -w->min > w->max ? -w->min : w->max;

	if (!c->grid)			/* no two stamps have differed yet */
		return UNKNOWN_U64;
	return known_resolution(c) + (uint64_t)(int64_t)ceil((double)(int64_t)span_ns * drift);
}

void gpuclock_facts(const struct gpuclock *c, struct gpuclock_facts *facts)
{
	const struct clock_window *w = &c->w[0];

	*facts = (struct gpuclock_facts){
		.stamps = c->stamps,
		.gpu_ns = c->newest_gpu,
		.has_drift = w->above.n && w->below.n,
		.drift_ppm = -1e6 * (w->min + w->max) / 2,
		.drift_error_ppm = 1e6 * (w->max - w->min) / 2,
		.resolution_ns = gpuclock_resolution_of(c),
		.windows = c->windows,
		.steps = c->steps,
		.bends = c->bends,
		.points = w->above.n + w->below.n,
	};
	if (c->stamps)
		gpuclock_map(c, c->newest_gpu, &facts->lo_ns, &facts->hi_ns);
}

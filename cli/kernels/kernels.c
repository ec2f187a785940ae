/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces of PyTorch's profiler are JSON of hundreds of megabytes, plain or compressed: one event
 * at a time is in memory, and of it only what tells of kernels stays.
 */
#include "cli/kernels/kernels.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "cli/base/intake.h"
#include "cli/base/member.h"
#include "cli/base/must.h"
#include "util/text.h"
#include "util/utf8.h"

#define BUFFER	    (256u << 10)
#define VALUE_MOST  (16u << 20)
#define NAMES_MOST  (16u << 20)	/* bytes of all different names */
#define NAME_ROOM   64		/* bytes that one takes beside its text */
#define KERNELS_MOST 8000000u	/* 0.5 GB */
#define STEPS_MOST   10000
#define STEP	    "ProfilerStep#"
#define TIME_MOST   (INT64_C(1) << 61)	/* ns, 73 years: three of them can be added */

/* ---- values of the file, one by one ------------------------------------------------------- */

struct kineto_launch {
	int64_t at_ns;
	uint64_t correlation;
};

struct kineto {
	struct kernels *k;
	gzFile file;
	char *why;
	char *buffer;
	size_t at, end;
	LIST(char) value;	/* the one read last, terminated */
	LIST(struct kineto_launch) launches;
	size_t names_bytes;
	int64_t base_ns;	/* the time that is 0 in the file */
	bool any_event;
};

static int kineto_fail(struct kineto *f, const char *why)
{
	if (!*f->why)
		snprintf(f->why, KERNELS_WHY, "%s", why);
	return -1;
}

/* The next byte, which stays; EOF: none, or an error. */
static int kineto_peek(struct kineto *f)
{
	int n, error;

	if (f->at == f->end) {
		n = gzread(f->file, f->buffer, BUFFER);
		gzerror(f->file, &error);
		if (n <= 0 && error)
			kineto_fail(f, error == Z_ERRNO ? strerror(errno) :
				       "it ends early, or what is compressed in it is damaged");
		f->at = 0;
		f->end = n > 0 ? (size_t)n : 0;
	}
	return f->at < f->end ? (unsigned char)f->buffer[f->at] : EOF;
}

/* The same behind space. */
static int kineto_next(struct kineto *f)
{
	int c;

	while ((c = kineto_peek(f)) != EOF && isspace(c))
		f->at++;
	return c;
}

/* Is that the next byte?  Then it is behind us. */
static bool kineto_takes(struct kineto *f, char wanted)
{
	if (kineto_next(f) != wanted)
		return false;
	f->at++;
	return true;
}

static int value_put(struct kineto *f, int c)
{
	if (f->value.n == VALUE_MOST)
		return kineto_fail(f, "one value of it is larger than 16 MiB");
	*(char *)must(list_append(&f->value)) = (char)c;
	return 0;
}

/* The next value of any type, with all that is in it; it is checked where it is parsed. */
static int value_read(struct kineto *f)
{
	bool text = false, escaped = false;
	unsigned depth = 0;
	int c = kineto_next(f);

	for (f->value.n = 0; c != EOF; c = kineto_peek(f)) {
		bool closes = !text && (c == '}' || c == ']');

		if (!text && !depth && (closes || c == ',' || isspace(c)))
			break;		/* the end of a number */
		if (value_put(f, c))
			return -1;
		f->at++;
		if (!text && (c == '{' || c == '['))
			depth++;
		depth -= closes;
		if (c == '"' && !escaped)
			text = !text;
		escaped = text && c == '\\' && !escaped;
		if (!text && !depth && (closes || c == '"'))
			break;
	}
	if (!f->value.n || text || depth)
		return kineto_fail(f, "it ends early, or is no JSON");
	return value_put(f, '\0');
}

/* ---- events ------------------------------------------------------------------------------- */

uint8_t kernels_func(const char *name, size_t bytes)
{
	static const struct { const char *name; uint8_t func; } funcs[] = {
		{ "AllReduce", 1 }, { "AllGather", 2 }, { "ReduceScatter", 3 }, { "Broadcast", 4 },
		{ "Reduce", 5 }, { "SendRecv", 6 }, { "Send", 6 }, { "Recv", 6 },
	};

	for (size_t i = 0; i < ARRAY_LEN(funcs); i++)
		if (strlen(funcs[i].name) == bytes && !memcmp(funcs[i].name, name, bytes))
			return funcs[i].func;
	return 0;
}

/* "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)": the word behind the first "_". */
static uint8_t kernel_name_func(const char *name)
{
	const char *word = strchr(name, '_');

	return word ? kernels_func(word + 1, strcspn(word + 1, "_(")) : 0;
}

/* The name as it is kept; NULL: there are too many. */
static const char *kineto_keep_name(struct kineto *f, const char *name)
{
	json_t *names = f->k->names;

	if (!json_object_get(names, name)) {
		f->names_bytes += strlen(name) + NAME_ROOM;
		if (f->names_bytes > NAMES_MOST)
			return NULL;
		json_object_set_new(names, name, json_true());
	}
	return json_object_iter_key(json_object_iter_at(names, name));
}

/* Microseconds, whole or not, as ns; -1: it is no time. */
static int64_t event_ns(const json_t *event, const char *key)
{
	const json_t *value = json_object_get(event, key);
	double us = json_number_value(value);

	if (!json_is_number(value) || !(us >= 0 && us < (double)TIME_MOST / 1000))
		return -1;
	return json_is_integer(value) ? (int64_t)us * 1000 : llround(us * 1e3);
}

static int kineto_add_kernel(struct kineto *f, const json_t *event)
{
	const json_t *args = json_object_get(event, "args");
	const char *name = member_text(event, "name", "?"), *nccl = strstr(name, "nccl");
	int64_t start_ns = event_ns(event, "ts"), duration_ns = event_ns(event, "dur");
	uint64_t device = member_number(args, "device", member_number(event, "pid", UINT64_MAX));

	if (device >= KERNELS_DEVICES || start_ns < 0 || duration_ns < 0) {
		f->k->malformed++;
		return 0;
	}
	if (f->k->all.n == KERNELS_MOST)
		return kineto_fail(f, "it has more than 8 million kernels: profile fewer steps");
	name = kineto_keep_name(f, name);
	if (!name)
		return kineto_fail(f, "its kernels have too many names: 16 MiB at most");
	*(struct gpu_kernel *)must(list_append(&f->k->all)) = (struct gpu_kernel){
		.start_ns = start_ns, .stop_ns = start_ns + duration_ns,
		.correlation = member_number(args, "correlation", 0),
		.name = name, .device = (int32_t)device,
		.stream = member_number(args, "stream", member_number(event, "tid", 0)),
		.nccl = nccl, .func = nccl ? kernel_name_func(nccl) : 0,
	};
	return 0;
}

/* A process's own events tell which one it is. */
static int kineto_take_pid(struct kineto *f, const json_t *event)
{
	int32_t pid = member_i32(event, "pid");

	if (pid == UNKNOWN_I32 || pid == f->k->pid)
		return 0;
	if (f->k->pid != UNKNOWN_I32)
		return kineto_fail(f, "it is of several processes: give the file of each");
	f->k->pid = pid;
	return 0;
}

static int kineto_add_launch(struct kineto *f, const json_t *event)
{
	uint64_t correlation = member_number(json_object_get(event, "args"), "correlation", 0);
	int64_t at_ns = event_ns(event, "ts");

	if (f->launches.n == KERNELS_MOST)
		return kineto_fail(f, "it has more than 8 million calls of CUDA: profile fewer "
				      "steps");
	if (correlation && at_ns >= 0)
		*(struct kineto_launch *)must(list_append(&f->launches)) =
			(struct kineto_launch){ at_ns, correlation };
	return kineto_take_pid(f, event);
}

static int kineto_add_step(struct kineto *f, const json_t *event)
{
	const char *name = member_text(event, "name", "");
	int64_t at_ns = event_ns(event, "ts"), number;

	if (strncmp(name, STEP, strlen(STEP)))
		return kineto_take_pid(f, event);
	if (at_ns < 0 || text_parse_integer(name + strlen(STEP), 0, INT64_MAX, &number)) {
		f->k->malformed++;
		return 0;
	}
	if (f->k->steps.n == STEPS_MOST)
		return kineto_fail(f, "it has more than 10,000 steps: profile fewer");
	*(struct kernels_step *)must(list_append(&f->k->steps)) =
		(struct kernels_step){ .at_ns = at_ns, .number = number };
	return kineto_take_pid(f, event);
}

/* Most events are of none of these kinds, and are not parsed. */
static int kineto_take_event(struct kineto *f)
{
	static const struct {
		const char *category;
		int (*add)(struct kineto *f, const json_t *event);
	} kinds[] = {
		{ "kernel", kineto_add_kernel }, { "cuda_runtime", kineto_add_launch },
		{ "cuda_driver", kineto_add_launch }, { "user_annotation", kineto_add_step },
	};
	json_auto_t *event = NULL;
	int r = 0;

	f->any_event = true;
	for (size_t i = 0; i < ARRAY_LEN(kinds) && !r; i++) {
		if (!strstr(f->value.at, kinds[i].category))
			continue;
		event = event ?: intake_read(f->value.at, f->value.n - 1, NULL);
		if (!event) {
			f->k->malformed++;
			break;
		}
		if (!strcmp(member_text(event, "cat", ""), kinds[i].category) &&
		    !strcmp(member_text(event, "ph", ""), "X"))
			r = kinds[i].add(f, event);
	}
	return r;
}

static int kineto_read_events(struct kineto *f)
{
	if (!kineto_takes(f, '['))
		return kineto_fail(f, "its traceEvents are no array");
	if (kineto_takes(f, ']'))
		return 0;
	do {
		if (value_read(f) || kineto_take_event(f))
			return -1;
	} while (kineto_takes(f, ','));
	return kineto_takes(f, ']') ? 0 : kineto_fail(f, "it ends early, or is no JSON");
}

/* ---- the file ----------------------------------------------------------------------------- */

static void kineto_take_rank(struct kineto *f)
{
	json_auto_t *info = intake_read(f->value.at, f->value.n - 1, NULL);

	f->k->rank = member_i32(info, "rank");
}

static int kineto_read_members(struct kineto *f)
{
	char key[64];

	do {
		if (value_read(f) || *f->value.at != '"' || !kineto_takes(f, ':'))
			return kineto_fail(f, "it is no JSON");
		snprintf(key, sizeof(key), "%s", f->value.at);
		if (!strcmp(key, "\"traceEvents\"")) {
			if (kineto_read_events(f))
				return -1;
			continue;
		}
		if (value_read(f))
			return -1;
		if (!strcmp(key, "\"baseTimeNanoseconds\""))
			f->base_ns = strtoll(f->value.at, NULL, 10);
		else if (!strcmp(key, "\"distributedInfo\""))
			kineto_take_rank(f);
	} while (kineto_takes(f, ','));
	return kineto_takes(f, '}') ? 0 : kineto_fail(f, "it ends early, or is no JSON");
}

/* All begin with a time. */
static int time_order(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Finds the first launch of each step. */
static void kineto_place_steps(struct kineto *f)
{
	uint64_t first = f->launches.n ? UINT64_MAX : 0;
	uint32_t n = f->launches.n;

	list_sort(&f->launches, time_order);
	list_sort(&f->k->steps, time_order);
	for (uint32_t i = f->k->steps.n; i-- > 0;) {
		struct kernels_step *step = &f->k->steps.at[i];

		for (; n && f->launches.at[n - 1].at_ns >= step->at_ns; n--)
			if (f->launches.at[n - 1].correlation < first)
				first = f->launches.at[n - 1].correlation;
		step->correlation = first;
		step->at_ns += f->base_ns;
	}
}

static int kineto_finish(struct kineto *f)
{
	struct kernels *k = f->k;

	if (!f->any_event)
		return kineto_fail(f, "no trace of PyTorch's profiler: there is no event in it");
	if (!k->all.n)
		return kineto_fail(f, "no kernel of a GPU is in it: was the profiler asked for "
				      "CUDA's activities?");
	if (f->base_ns < 0 || f->base_ns > TIME_MOST)
		f->base_ns = 0;
	kineto_place_steps(f);
	list_sort(&k->all, time_order);
	for (uint32_t i = 0; i < k->all.n; i++) {
		k->all.at[i].start_ns += f->base_ns;
		k->all.at[i].stop_ns += f->base_ns;
		k->last_ns = k->all.at[i].stop_ns > k->last_ns ? k->all.at[i].stop_ns : k->last_ns;
	}
	k->first_ns = k->all.at[0].start_ns;
	return 0;
}

static int kineto_read(struct kineto *f)
{
	int c = kineto_next(f);

	if (*f->why)
		return -1;
	if (c == '[')
		return kineto_read_events(f) ? -1 : kineto_finish(f);
	if (!kineto_takes(f, '{'))
		return kineto_fail(f, "no trace of PyTorch's profiler: that is JSON, plain or .gz");
	return kineto_read_members(f) ? -1 : kineto_finish(f);
}

int kernels_read(struct kernels *k, const char *path, char why[KERNELS_WHY])
{
	struct kineto f = { .k = k, .why = why };
	const char *refusal;
	int r, fd;

	*k = (struct kernels){ .path = must(strdup(path)), .names = must(json_object()),
			       .pid = UNKNOWN_I32, .rank = UNKNOWN_I32 };
	utf8_clean(k->path, strlen(path));
	*why = '\0';
	fd = intake_open(AT_FDCWD, path, NULL, &refusal);
	if (fd < 0)
		return kineto_fail(&f, refusal);
	f.file = must(gzdopen(fd, "r"));
	f.buffer = must(malloc(BUFFER));
	gzbuffer(f.file, BUFFER);
	r = kineto_read(&f);
	gzclose(f.file);
	free(f.buffer);
	list_deinit(&f.value);
	list_deinit(&f.launches);
	return r;
}

void kernels_deinit(struct kernels *k)
{
	list_deinit(&k->all);
	list_deinit(&k->steps);
	list_deinit(&k->units);
	json_decref(k->names);
	free(k->path);
}

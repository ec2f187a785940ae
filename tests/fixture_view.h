/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FIXTURE_VIEW_H
#define TESTS_FIXTURE_VIEW_H

/*
 * The live view over answers made here, in the form of the API: a node with one
 * communicator of eight ranks, for a test to change before it builds the frame.
 */

#include <string.h>

#include "cli/top/keys.h"
#include "cli/top/layout.h"
#include "tests/fixture.h"

#define FX_SECOND UINT64_C(1000000000)
#define FX_NOW    (1000 * FX_SECOND)
#define FX_RANKS  8

static struct {
	struct view view;
	struct view_answers answers;
	struct place place;
	struct frame frame;
} fx;

/* ---- answers -------------------------------------------------------------- */

static inline json_t *fx_make_process(int i)
{
	return json_pack("{s:i s:i s:s s:s s:s}",
			 "pid", 4000 + i, "uid", 1000, "user", "ada", "state", "live",
			 "command", "python");
}

static inline json_t *fx_make_rank(int i)
{
	char bus[16];

	snprintf(bus, sizeof(bus), "0000:%02x:00.0", 16 + i);
	return json_pack("{s:s s:s s:i s:i s:i s:i s:s s:s s:s s:i s:n s:f s:i s:i s:f s:f s:f"
			 " s:f}",
			 "comm_id", "0x01", "comm_name", "größe", "nranks", FX_RANKS, "rank", i,
			 "pid", 4000 + i, "uid", 1000, "user", "ada", "pci_bus_id", bus,
			 "state", "live", "in_flight", 1, "oldest_ns", "ops_per_s", 50.0,
			 "p50_ns", 17300 + i, "p99_ns", 99000, "busbw_gbs", 123.4,
			 "share", 0.25, "idle", 0.75, "badness", 0.0);
}

static inline json_t *fx_make_op_row(int i)
{
	return json_pack("{s:s s:s s:s s:i s:s s:s s:I s:i s:{s:i s:i s:i} s:{s:f} s:s}",
			 "comm_id", "0x01", "comm_name", "größe",
			 "func", i % 2 ? "AllGather" : "AllReduce", "size_class", 1 << (10 + i),
			 "algo", "Ring", "proto", "Simple",
			 "window_ns", (json_int_t)(10 * FX_SECOND), "ops", 1000 - i,
			 "exec", "p50_ns", 17300, "p99_ns", 99000, "max_ns", 123000,
			 "busbw_gbs", "mean", 123.4, "timing_source", "kernel_gpu");
}

static inline json_t *fx_list_of(const char *name, json_t *(*make)(int i), int n)
{
	json_t *list = json_array();

	for (int i = 0; i < n; i++)
		json_array_append_new(list, make(i));
	return json_pack("{s:o}", name, list);
}

static inline json_t *fx_add_inflight(const char *event_type, const char *process_state,
				       double age_s)
{
	json_t *row = json_pack("{s:i s:s s:s s:s s:i s:s s:s s:i s:I}",
				"pid", 4003, "process_state", process_state,
				"comm_id", "0x01", "comm_name", "größe", "rank", 3,
				"event_type", event_type, "func", "AllReduce", "seq", 12,
				"age_ns", (json_int_t)(age_s * (double)FX_SECOND));

	json_array_append_new(json_object_get(fx.answers.inflight, "inflight"), row);
	return row;
}

static inline void fx_setup(void)
{
	place_init(&fx.place, 2 * FX_SECOND, false, true);
	fx.answers.status = json_loads(
		"{\"version\": \"0.1.0\", \"host\": \"node7\", \"uptime_ns\": 7980000000000,"
		" \"loop\": \"epoll\", \"level\": null,"
		" \"ingest\": {\"records\": 1000, \"lost\": 0, \"rejected\": 0}}", 0, NULL);
	fx.answers.processes = fx_list_of("processes", fx_make_process, FX_RANKS);
	fx.answers.ranks = fx_list_of("ranks", fx_make_rank, FX_RANKS);
	json_object_update_new(fx.answers.ranks, json_pack("{s:i s:i s:i s:i}", "ranks_total",
			       FX_RANKS, "comms_total", 1, "gpus_total", FX_RANKS,
			       "in_flight_total", FX_RANKS));
	fx.answers.ops = fx_list_of("rows", fx_make_op_row, 12);
	fx.answers.inflight = json_pack("{s:[]}", "inflight");
}

static inline json_t *fx_ranks(void)
{
	return json_object_get(fx.answers.ranks, "ranks");
}

/* The row of that rank, where the daemon puts the worst: in front of all others. */
static inline json_t *fx_worst_rank(int rank)
{
	json_t *row = json_incref(json_array_get(fx_ranks(), (size_t)rank));
	double first = json_number_value(json_object_get(json_array_get(fx_ranks(), 0), "badness"));

	json_object_set_new(row, "badness", json_real(0.1 + (first < 4 ? 4 : first)));
	json_array_remove(fx_ranks(), (size_t)rank);
	json_array_insert_new(fx_ranks(), 0, row);
	return row;
}

static inline void fx_teardown(void)
{
	view_deinit(&fx.view);
	place_deinit(&fx.place);
	frame_deinit(&fx.frame);
}

static inline void fx_show(int columns, int lines)
{
	frame_deinit(&fx.frame);
	frame_init(&fx.frame, columns, lines);
	layout_frame(&fx.frame, &fx.view, &fx.place);
}

static inline void fx_build(void)
{
	view_build(&fx.view, &fx.answers, FX_NOW);
	fx_show(160, 40);
}

/* The first line that holds `text`; -1: none. */
static inline int fx_find_line(const char *text)
{
	for (int i = 0; i < fx.frame.count; i++)
		if (strstr(fx.frame.lines[i].text, text))
			return i;
	return -1;
}

static inline bool fx_shows(const char *text)
{
	return fx_find_line(text) >= 0;
}

static inline void fx_press(int key)
{
	keys_press(&fx.place, &fx.view, key);
}

static inline void fx_type(const char *text)
{
	for (; *text; text++)
		fx_press(*text);
}

static inline struct place_step *fx_step(void)
{
	return place_step(&fx.place);
}

/* One of the bodies that are due to be sent; NULL: there are not so many. */
static inline const json_t *fx_due(size_t i)
{
	return json_array_get(fx.place.wish.due, i);
}

/* Line `i` of the ranks' table. */
static inline const char *fx_row(int i)
{
	fx_show(120, 40);
	return fx.frame.lines[fx_find_line("RANK  GPU") + 1 + i].text;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_METRICS_EXPOSITION_H
#define NCCLINSPD_METRICS_EXPOSITION_H

/*
 * Writes metrics as text into the buffer of json.h: Prometheus' format 0.0.4, or
 * OpenMetrics 1.0.
 *
 *     exposition_family(e, "x_ops_total", EXPOSITION_COUNTER, "Operations.");
 *     exposition_label(e, "op", "AllReduce");
 *     exposition_sample(e, "", 17);		x_ops_total{op="AllReduce"} 17
 *     exposition_end(e);
 *
 * A counter's name ends in _total, an info's in _info, in both formats.  Running out of
 * memory (or of `max`) is remembered: later calls do nothing.
 */

#include "util/json.h"

#define EXPOSITION_TEXT_TYPE	"text/plain; version=0.0.4; charset=utf-8"
#define EXPOSITION_OPEN_TYPE	"application/openmetrics-text; version=1.0.0; charset=utf-8"

/* Bytes of one sample's: those that find no room are left out. */
#define EXPOSITION_LABELS	2048

enum exposition_type {
	EXPOSITION_COUNTER,
	EXPOSITION_GAUGE,
	EXPOSITION_HISTOGRAM,
	EXPOSITION_INFO,
};

struct exposition {
	struct json out;	/* the text, and 0, -ENOMEM or -E2BIG */
	bool open;		/* OpenMetrics */
	const char *family;
	char labels[EXPOSITION_LABELS];	/* labels of the next sample, as they are written */
	size_t label_bytes;
	uint64_t series;	/* samples written */
};

/* Nothing is allocated until something is written; `max` bounds the text, in bytes. */
void exposition_init(struct exposition *e, bool open, size_t max);
void exposition_deinit(struct exposition *e);

/* All samples of a family come in one go.  The texts are not copied. */
void exposition_family(struct exposition *e, const char *name, enum exposition_type type,
		       const char *help);

/*
 * Give a label to all samples from here on, until it is taken back.  NULL and "": none,
 * which is the same to Prometheus.
 */
void exposition_label(struct exposition *e, const char *name, const char *value);

/* Take back all labels but the first `bytes` bytes of e->labels. */
void exposition_unlabel(struct exposition *e, size_t bytes);

/* `suffix`: "_bucket" and so on of a histogram; else "".  NaN: nothing is written. */
void exposition_sample(struct exposition *e, const char *suffix, double value);

void exposition_end(struct exposition *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoder of a stream's lines: numbers, base64 and batches of records are checked here,
 * before any other file uses them.
 */
#include "cli/trace/trace_line.h"

#include "cli/base/member.h"

#define LEAST_RATE 1e-3		/* ns per tick; counters are slower than 1 THz */
#define MOST_RATE  1e4		/* counters are faster than 100 kHz */

/* ---- base64 ---------------------------------------------------------------------- */

static int base64_letter(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/*
 * Writes the bytes that `text` stands for into `to`; their number, or -1: it is none, or more
 * than `room`.
 */
static ssize_t base64_decode(const char *text, size_t n, uint8_t *to, size_t room)
{
	uint32_t bits = 0;
	size_t used = 0;
	int have = 0;

	while (n && text[n - 1] == '=')
		n--;
	for (size_t i = 0; i < n; i++) {
		int value = base64_letter(text[i]);

		if (value < 0)
			return -1;
		bits = bits << 6 | (uint32_t)value;
		have += 6;
		if (have < 8)
			continue;
		have -= 8;
		if (used == room)
			return -1;
		to[used++] = (uint8_t)(bits >> have);
	}
	return (ssize_t)used;
}

/* ---- a batch --------------------------------------------------------------------- */

bool trace_batch_read(struct trace_batch *b, const json_t *line)
{
	const json_t *data = json_object_get(line, "data");
	ssize_t n;

	b->first = member_number(line, "first", 0);
	b->n = member_number(line, "n", 0);
	b->lost = member_number(line, "lost", 0);
	b->clock = (struct tick_clock){
		.ticks = member_number(line, "ticks", UINT64_MAX),
		.mono_ns = member_number(line, "mono_ns", UINT64_MAX),
		.ns_per_tick = json_number_value(json_object_get(line, "ns_per_tick")),
	};
	b->kernels = json_object_get(line, "kernels");
	b->at = b->kernel = 0;
	if (!json_is_string(data) || b->clock.ticks == UINT64_MAX ||
	    b->clock.mono_ns == UINT64_MAX ||
	    !(b->clock.ns_per_tick > LEAST_RATE && b->clock.ns_per_tick < MOST_RATE))
		return false;
	n = base64_decode(json_string_value(data), json_string_length(data), (uint8_t *)b->line,
			  sizeof(b->line));
	if (n < 0 || n % NCI_LINE_BYTES)
		return false;
	b->bytes = (size_t)n;
	return true;
}

static struct trace_kernel line_next_kernel(struct trace_batch *b)
{
	const json_t *times = json_array_get(b->kernels, b->kernel++);
	const json_t *error = json_array_get(times, 2);
	json_int_t start = json_integer_value(json_array_get(times, 0));
	json_int_t stop = json_integer_value(json_array_get(times, 1));

	if (start <= 0 || stop < start)
		return (struct trace_kernel){ 0 };
	return (struct trace_kernel){
		.known = true, .start_ns = (uint64_t)start, .stop_ns = (uint64_t)stop,
		.error_ns = json_integer_value(error) > 0 ? (uint64_t)json_integer_value(error)
							  : UINT64_MAX,
	};
}

struct nci_record *trace_batch_next(struct trace_batch *b, struct trace_kernel *kernel)
{
	while (b->at < b->bytes / NCI_LINE_BYTES) {
		struct nci_record *rec = (struct nci_record *)&b->line[b->at];
		uint32_t lines = NCI_FORM_LINES(rec->form), left;

		left = (uint32_t)(b->bytes / NCI_LINE_BYTES - b->at);
		if (!lines || lines > left)
			return NULL;
		b->at += lines;
		*kernel = (struct trace_kernel){ 0 };
		if (rec->type == NCI_EV_KERNEL_CH)
			*kernel = line_next_kernel(b);
		return rec;
	}
	return NULL;
}

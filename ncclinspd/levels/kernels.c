/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin tells facts; what they come to is said here, for all who show it. */
#include "ncclinspd/levels/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/words.h"

#define KERNEL_CH	NCI_EVENT_BIT(NCI_EV_KERNEL_CH)
#define MOST_SECONDS	86400

static const char *const modes[NCI_MODES] = {
	[NCI_MODE_BURST] = "burst", [NCI_MODE_FIRST] = "first", [NCI_MODE_ALWAYS] = "always",
	[NCI_MODE_NEVER] = "never",
};

const char *kernels_word(enum kernels_state state)
{
	static const char *const words[] = {
		[KERNELS_NEVER] = "never", [KERNELS_ALWAYS] = "always",
		[KERNELS_OUTSIDE] = "outside", [KERNELS_INSIDE] = "inside",
		[KERNELS_SETTLING] = "settling",
	};

	return words[state];
}

const char *kernels_mode(uint32_t mode, uint32_t seconds, char text[KERNELS_MODE_BYTES])
{
	if (mode != NCI_MODE_FIRST)
		return mode < NCI_MODES ? modes[mode] : NULL;
	snprintf(text, KERNELS_MODE_BYTES, "first %us", seconds);
	return text;
}

uint32_t kernels_parse_mode(const char *text, uint32_t *seconds)
{
	unsigned long value;
	char *end;

	*seconds = 0;
	for (uint32_t i = NCI_MODE_BURST; i < NCI_MODES; i++)
		if (i != NCI_MODE_FIRST && strcmp(text, modes[i]) == 0)
			return i;
	if (strncmp(text, "first ", 6) != 0 || text[6] < '0' || text[6] > '9')
		return 0;
	value = strtoul(text + 6, &end, 10);
	if (value > MOST_SECONDS || (*end && strcmp(end, "s") != 0))
		return 0;
	*seconds = (uint32_t)value;
	return NCI_MODE_FIRST;
}

static bool level_times_kernels(const struct process *p)
{
	return p->level == NCI_LEVEL_KERNEL || p->level == NCI_LEVEL_NET ||
	       p->level == NCI_LEVEL_TRACE || p->mask & KERNEL_CH;
}

/* Something keeps its kernels from being timed any more, at any time. */
static bool process_is_barred(const struct process *p)
{
	const uint32_t for_good = NCI_SEEN_API | NCI_SEEN_GRAPHS | NCI_SEEN_SENDERS |
				  NCI_SEEN_LIBRARIES | NCI_SEEN_ALLGATHERV | NCI_SEEN_END |
				  NCI_SEEN_SELF | NCI_SEEN_PAUSE | NCI_SEEN_SCARCE |
				  NCI_SEEN_OUTSIDE;

	return p->seen & for_good || p->steering.mode == NCI_MODE_NEVER;
}

enum kernels_state kernels_state(const struct process *p)
{
	const struct steering *s = &p->steering;
	bool sampled = s->mode == NCI_MODE_BURST && s->sample == NCI_SAMPLE_BUDGET &&
		       p->level != NCI_LEVEL_TRACE;

	if (p->mask & KERNEL_CH)
		return (sampled && !process_is_barred(p)) || (s->mode == NCI_MODE_FIRST &&
			!(p->seen & (NCI_SEEN_GRAPHS | NCI_SEEN_LIBRARIES))) ?
		       KERNELS_INSIDE : KERNELS_ALWAYS;
	if (process_is_barred(p) || !level_times_kernels(p))
		return KERNELS_NEVER;
	if (s->settles_ns)
		return KERNELS_SETTLING;
	return s->mode == NCI_MODE_BURST ? KERNELS_OUTSIDE : KERNELS_NEVER;
}

/* The strongest first, as in enum reason. */
static const struct {
	uint32_t seen;
	bool keeps;		/* kernels are as they were when it was seen, also if timed */
	enum reason reason;
} reasons[] = {
	{ NCI_SEEN_OUTSIDE, true, REASON_OUTSIDE },
	{ NCI_SEEN_API, false, REASON_API },
	{ NCI_SEEN_ALLGATHERV, false, REASON_ALLGATHERV },
	{ NCI_SEEN_GRAPHS, true, REASON_GRAPHS },
	{ NCI_SEEN_LIBRARIES, true, REASON_LIBRARIES },
	{ NCI_SEEN_SENDERS, true, REASON_SENDERS },
	{ NCI_SEEN_PAUSE, false, REASON_PAUSE },
	{ NCI_SEEN_END, false, REASON_OVER },
	{ NCI_SEEN_SCARCE, false, REASON_SCARCE },
	{ NCI_SEEN_SELF, false, REASON_SELF },
};

static const char *process_seen_reason(const struct process *p)
{
	bool on = p->mask & KERNEL_CH;

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (p->seen & reasons[i].seen && (!on || reasons[i].keeps))
			return words_reason(reasons[i].reason)->name;
	return NULL;
}

const char *kernels_reason(const struct process *p)
{
	const struct steering *s = &p->steering;
	const char *seen = process_seen_reason(p);

	if (!s->known)
		return NULL;
	if (p->seen & NCI_SEEN_OUTSIDE)
		return seen;
	if (!level_times_kernels(p) || (p->mask & KERNEL_CH && s->mode == NCI_MODE_ALWAYS))
		return NULL;
	if (s->mode == NCI_MODE_NEVER && !(p->seen & NCI_SEEN_API))
		return words_reason(REASON_SETTING)->name;
	return !seen && kernels_state(p) == KERNELS_SETTLING ?
	       words_reason(REASON_SETTLING)->name : seen;
}

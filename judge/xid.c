/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers that matter to a job, from NVIDIA's list of Xid errors: whose fault each is. */
#include "judge/xid.h"

#include <inttypes.h>
#include <stddef.h>

#include "util/list.h"

enum xid_fault { FAULT_PROGRAM, FAULT_GPU, FAULT_LINK, FAULT_NONE };

static const name_t advice[] = {
	[FAULT_PROGRAM] = "Such an error comes more often from the program than from the GPU: "
			  "see its own log; run it with CUDA_LAUNCH_BLOCKING=1 or "
			  "compute-sanitizer",
	[FAULT_GPU] = "The GPU or its driver is at fault: drain the node, reset the GPU "
		      "(nvidia-smi -r), and have it tested (dcgmi diag -r 3) before "
		      "it is used again",
	[FAULT_LINK] = ("An NVLink is at fault: see nvidia-smi nvlink -e and the fabric "
			"manager's log"),
	[FAULT_NONE] = "",
};

static const struct {
	int32_t number;
	enum xid_fault fault;
	name_t text;
} xids[] = {
	{ 13, FAULT_PROGRAM, "exception in a kernel" },
	{ 31, FAULT_PROGRAM, "memory page fault" },
	{ 43, FAULT_NONE, "a channel was stopped" },
	{ 45, FAULT_NONE, "channels were cleaned up" },
	{ 46, FAULT_GPU, "GPU stopped processing" },
	{ 48, FAULT_GPU, "uncorrectable memory error" },
	{ 61, FAULT_GPU, "microcontroller breakpoint" },
	{ 62, FAULT_GPU, "microcontroller halt" },
	{ 63, FAULT_NONE, "memory rows were remapped" },
	{ 64, FAULT_GPU, "memory rows could not be remapped" },
	{ 74, FAULT_LINK, "NVLink error" },
	{ 79, FAULT_GPU, "GPU has fallen off the bus" },
	{ 92, FAULT_NONE, "many memory errors were corrected" },
	{ 94, FAULT_GPU, "contained memory error" },
	{ 95, FAULT_GPU, "uncontained memory error" },
	{ 109, FAULT_GPU, "context switch timeout" },
	{ 119, FAULT_GPU, "GSP firmware does not answer" },
	{ 120, FAULT_GPU, "GSP firmware error" },
	{ 121, FAULT_LINK, "chip-to-chip link error" },
	{ 140, FAULT_GPU, "unrecovered memory error" },
	{ 154, FAULT_NONE, "a recovery is needed" },
};

/* Its place in the table; ARRAY_LEN(xids): none. */
static size_t xid_find(int32_t number)
{
	size_t i = 0;

	while (i < ARRAY_LEN(xids) && xids[i].number != number)
		i++;
	return i;
}

name_t xid_text(int32_t number)
{
	size_t i = xid_find(number);

	return i < ARRAY_LEN(xids) ? xids[i].text : NULL;
}

bool xid_is_consequence(int32_t number)
{
	size_t i = xid_find(number);

	return i < ARRAY_LEN(xids) && xids[i].fault == FAULT_NONE;
}

void xid_say(struct phrase *text, const struct xid *x)
{
	name_t meaning = xid_text(x->number);

	phrase_add(text, "Xid %" PRId32, x->number);
	if (meaning)
		phrase_add(text, " (%s)", meaning);
}

name_t xid_advice(int32_t number)
{
	size_t i = xid_find(number);

	return i < ARRAY_LEN(xids) ? advice[xids[i].fault] :
				     "See NVIDIA's list of Xid errors for its meaning";
}

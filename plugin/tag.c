/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tags of the application's own, on every NCCL: what include/ncclinsp/tag.h calls.  They are the
 * calling thread's, and nobody else's: nothing is locked, allocated or asked of the system.
 *
 * Ranges of NVTX come as names from libncclinsp-nvtx.so (nvtx/), if the process has it.
 */
#include "plugin/tag.h"

#include "plugin/loaded.h"
#include "plugin/process.h"

#define EXPORT	__attribute__((visibility("default")))
#define DEPTH	16	/* tags that are kept below; what is deeper ends as none */

static __thread struct {
	uint64_t below[DEPTH];
	uint32_t depth;
} tags;

EXPORT void ncclinsp_tag_set(uint64_t tag);
EXPORT void ncclinsp_tag_push(uint64_t tag);
EXPORT void ncclinsp_tag_push_name(const char *name);
EXPORT void ncclinsp_tag_pop(void);

void ncclinsp_tag_set(uint64_t tag)
{
	process_thread.tag = tag;
}

void ncclinsp_tag_push(uint64_t tag)
{
	if (tags.depth < DEPTH)
		tags.below[tags.depth] = process_thread.tag;
	tags.depth += tags.depth < UINT32_MAX;
	process_thread.tag = tag;
}

/* The tag stays as it is if the name has no room. */
void ncclinsp_tag_push_name(const char *name)
{
	bool live = atomic_load_explicit(&process_self.live, memory_order_acquire);
	uint64_t tag = 0;

	if (name)
		tag = intern_tag(&process_self.names, live ? &process_self.ring : NULL, name);
	ncclinsp_tag_push(tag ? tag : process_thread.tag);
}

void ncclinsp_tag_pop(void)
{
	if (!tags.depth)
		return;
	tags.depth--;
	process_thread.tag = tags.depth < DEPTH ? tags.below[tags.depth] : 0;
}

void tag_attach(void)
{
	void *library = loaded_library("libncclinsp-nvtx.so");
	void (*attach)(void);

	if (!library)
		return;
	*(void **)&attach = loaded_symbol(library, "ncclinsp_nvtx_attach");
	if (attach)
		attach();
	loaded_close(library);
}

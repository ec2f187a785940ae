/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSP_TAG_H
#define NCCLINSP_TAG_H

/*
 * Tags of the application's own for the operations that the calling thread posts: `tag` in
 * ncclinsp, on every NCCL that has profiler plugins.  Where NCCL tells one of its own (userTag,
 * 2.31), that counts.  They do nothing where ncclinsp's plugin is not loaded, which is before
 * the first communicator.  0: no tag.
 *
 * These look the plugin up each time, which takes a microsecond; needs -ldl before glibc 2.34.
 * ctypes.CDLL("libnccl-profiler-insp.so") has these functions in Python.
 */

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

static inline void *ncclinsp_tag_find(const char *name)
{
	void *plugin = dlopen("libnccl-profiler-insp.so", RTLD_LAZY | RTLD_NOLOAD);

	return plugin ? dlsym(plugin, name) : NULL;
}

static inline void ncclinsp_tag_call(const char *name, uint64_t tag)
{
	void (*call)(uint64_t tag);

	*(void **)&call = ncclinsp_tag_find(name);
	if (call)
		call(tag);
}

/* The tag from now on; the same until it is popped; the end of the one that was pushed last. */
static inline void ncclinsp_tag_set(uint64_t tag)
{
	ncclinsp_tag_call("ncclinsp_tag_set", tag);
}

static inline void ncclinsp_tag_push(uint64_t tag)
{
	ncclinsp_tag_call("ncclinsp_tag_push", tag);
}

/* Pushes a name of at most 60 bytes, which is copied, as `tag_name`. */
static inline void ncclinsp_tag_push_name(const char *name)
{
	void (*call)(const char *name);

	*(void **)&call = ncclinsp_tag_find("ncclinsp_tag_push_name");
	if (call)
		call(name);
	else
		ncclinsp_tag_call("ncclinsp_tag_push", 0);
}

static inline void ncclinsp_tag_pop(void)
{
	ncclinsp_tag_call("ncclinsp_tag_pop", 0);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libncclinsp-nvtx.so: ranges of NVTX that a thread is in are its tags, by name (plugin/tag.c).
 *
 * NVTX loads it where NVTX_INJECTION64_PATH says so, maybe long before NCCL loads the plugin,
 * maybe after it, maybe never.  Whichever comes second looks for the other one: then, and not
 * in a push, the loader's lock is taken.  A push copies the name onto a stack of the thread and
 * calls the plugin if it is known: no lock, no system call, and no allocation but the C
 * library's of a thread's first stack.
 *
 * Each domain has a stack of its own in NVTX.  The plugin has one: a range that ends below
 * others stays there, marked, until those have ended.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "nvtx/injection.h"
#include "plugin/loaded.h"

#define EXPORT		__attribute__((visibility("default")))
#define DEPTH		16	/* the plugin's depth: names of deeper ones are not kept */
#define NAME_BYTES	64	/* more than the plugin takes */

EXPORT int InitializeInjectionNvtx2(nvtx_export_fn *export);
EXPORT void ncclinsp_nvtx_attach(void);

struct nvtx_range {
	const void *domain;
	bool ended;
	char name[NAME_BYTES];
};

static __thread struct {
	uint32_t depth, told;	/* ranges, and those of them that the plugin knows of */
	struct nvtx_range range[DEPTH];
} ranges;

/* The plugin's functions; `push` NULL: it is not there yet. */
static struct {
	void (*_Atomic push)(const char *name);
	void (*pop)(void);
} plugin;

static const char left_out;	/* the handle of domains whose ranges do not count */
static atomic_bool unnamed_is_left_out;

/* ---- the thread's ranges --------------------------------------------------------- */

static void ranges_tell(void)
{
	void (*push)(const char *name) = atomic_load_explicit(&plugin.push, memory_order_acquire);

	for (; push && ranges.told < ranges.depth; ranges.told++)
		push(ranges.told < DEPTH ? ranges.range[ranges.told].name : NULL);
}

static bool domain_is_left_out(const void *domain)
{
	return domain ? domain == &left_out :
	       atomic_load_explicit(&unnamed_is_left_out, memory_order_relaxed);
}

static int range_push(const void *domain, const char *name)
{
	if (domain_is_left_out(domain))
		return NVTX_UNTRACKED;
	if (ranges.depth < DEPTH) {
		struct nvtx_range *range = &ranges.range[ranges.depth];
		size_t bytes = name ? strnlen(name, NAME_BYTES - 1) : 0;

		range->domain = domain;
		range->ended = false;
		if (bytes)
			memcpy(range->name, name, bytes);
		range->name[bytes] = 0;
	}
	ranges.depth += ranges.depth < UINT32_MAX;
	ranges_tell();
	return NVTX_UNTRACKED;
}

static void range_drop(void)
{
	ranges.depth--;
	if (ranges.told > ranges.depth) {
		plugin.pop();
		ranges.told = ranges.depth;
	}
}

static int range_pop(const void *domain)
{
	uint32_t i = ranges.depth;

	if (domain_is_left_out(domain) || !i)
		return NVTX_UNTRACKED;
	if (i > DEPTH) {
		range_drop();
		return NVTX_UNTRACKED;
	}
	while (i && (ranges.range[i - 1].ended || ranges.range[i - 1].domain != domain))
		i--;
	if (i)
		ranges.range[i - 1].ended = true;
	while (ranges.depth && ranges.range[ranges.depth - 1].ended)
		range_drop();
	ranges_tell();
	return NVTX_UNTRACKED;
}

/*
 * A thread that has the plugin before it, maybe with a new segment: after a fork, the names
 * of its ranges are in none.  A push and a pop bring them there and leave the tags as they are.
 */
void ncclinsp_nvtx_attach(void)
{
	void *library = loaded_library("libnccl-profiler-insp.so");
	void *push, *pop;

	if (!library)
		return;
	push = loaded_symbol(library, "ncclinsp_tag_push_name");
	pop = loaded_symbol(library, "ncclinsp_tag_pop");
	if (push && pop) {
		*(void **)&plugin.pop = pop;
		atomic_store_explicit(&plugin.push, (void (*)(const char *))push,
				      memory_order_release);
		for (uint32_t i = 0; i < ranges.told && i < DEPTH; i++) {
			((void (*)(const char *))push)(ranges.range[i].name);
			plugin.pop();
		}
		ranges_tell();
	}
	loaded_close(library);
}

/* ---- names ----------------------------------------------------------------------- */

static char *utf8_put(char *to, uint32_t code)
{
	if (code < 0x80) {
		*to++ = (char)code;
	} else if (code < 0x800) {
		*to++ = (char)(0xc0 | code >> 6);
		*to++ = (char)(0x80 | (code & 0x3f));
	} else {
		if (code < 0x10000) {
			*to++ = (char)(0xe0 | code >> 12);
		} else {
			*to++ = (char)(0xf0 | (code >> 18 & 7));
			*to++ = (char)(0x80 | (code >> 12 & 0x3f));
		}
		*to++ = (char)(0x80 | (code >> 6 & 0x3f));
		*to++ = (char)(0x80 | (code & 0x3f));
	}
	return to;
}

/* Copies as much as fits, in whole characters. */
static const char *name_of_wide(const wchar_t *wide, char name[NAME_BYTES])
{
	char *to = name;

	while (wide && *wide && to - name < NAME_BYTES - 4)
		to = utf8_put(to, (uint32_t)*wide++);
	*to = 0;
	return name;
}

/* NULL: it has none. */
static const char *name_of_event(const struct nvtx_event *event, char wide[NAME_BYTES])
{
	if (!event || event->bytes < sizeof(*event))
		return NULL;
	switch (event->message_type) {
	case NVTX_MESSAGE_ASCII:
		return event->message.ascii;
	case NVTX_MESSAGE_WIDE:
		return name_of_wide(event->message.wide, wide);
	case NVTX_MESSAGE_STRING:
		return event->message.string;
	}
	return NULL;
}

/* ---- NVTX's functions ------------------------------------------------------------ */

static int nvtx_push_a(const char *name)
{
	return range_push(NULL, name);
}

static int nvtx_push_w(const wchar_t *wide)
{
	char name[NAME_BYTES];

	return range_push(NULL, name_of_wide(wide, name));
}

static int nvtx_domain_push(const void *domain, const struct nvtx_event *event)
{
	char wide[NAME_BYTES];

	return range_push(domain, name_of_event(event, wide));
}

static int nvtx_push(const struct nvtx_event *event)
{
	return nvtx_domain_push(NULL, event);
}

static int nvtx_pop(void)
{
	return range_pop(NULL);
}

/* The handle is the name, ready to be copied; it stays, as ranges may have it at any time. */
static void *nvtx_string_a(const void *domain, const char *name)
{
	(void)domain;
	return name ? strndup(name, NAME_BYTES - 1) : NULL;
}

static void *nvtx_string_w(const void *domain, const wchar_t *wide)
{
	char name[NAME_BYTES];

	return nvtx_string_a(domain, name_of_wide(wide, name));
}

/* The list is "default,name,name": "default" is the domain without a name; no list: all are. */
static bool domain_is_listed(const char *name)
{
	const char *list = getenv("NCCLINSP_NVTX_DOMAINS");
	size_t bytes = strlen(name), one;

	if (!list)
		return true;
	for (; *list; list += one + (list[one] == ',')) {
		one = strcspn(list, ",");
		if (one == bytes && !memcmp(list, name, one))
			return true;
	}
	return false;
}

/* NCCL has ranges of its own around each call, in which all operations would be. */
static void *nvtx_domain_a(const char *name)
{
	void *domain = NULL;

	if (name && strcmp(name, "NCCL") && domain_is_listed(name))
		domain = malloc(1);
	return domain ? domain : (void *)&left_out;
}

static void *nvtx_domain_w(const wchar_t *wide)
{
	char name[NAME_BYTES];

	return nvtx_domain_a(name_of_wide(wide, name));
}

static void nvtx_domain_destroy(void *domain)
{
	if (domain != &left_out)
		free(domain);
}

/* ---- the beginning --------------------------------------------------------------- */

static const struct {
	int32_t module;
	uint32_t number;
	nvtx_fn *function;
} functions[] = {
	{ NVTX_MODULE_CORE, NVTX_CORE_PUSH_EX, (nvtx_fn *)nvtx_push },
	{ NVTX_MODULE_CORE, NVTX_CORE_PUSH_A, (nvtx_fn *)nvtx_push_a },
	{ NVTX_MODULE_CORE, NVTX_CORE_PUSH_W, (nvtx_fn *)nvtx_push_w },
	{ NVTX_MODULE_CORE, NVTX_CORE_POP, (nvtx_fn *)nvtx_pop },
	{ NVTX_MODULE_CORE2, NVTX_CORE2_PUSH_EX, (nvtx_fn *)nvtx_domain_push },
	{ NVTX_MODULE_CORE2, NVTX_CORE2_POP, (nvtx_fn *)range_pop },
	{ NVTX_MODULE_CORE2, NVTX_CORE2_STRING_A, (nvtx_fn *)nvtx_string_a },
	{ NVTX_MODULE_CORE2, NVTX_CORE2_STRING_W, (nvtx_fn *)nvtx_string_w },
	{ NVTX_MODULE_CORE2, NVTX_CORE2_DOMAIN_A, (nvtx_fn *)nvtx_domain_a },
	{ NVTX_MODULE_CORE2, NVTX_CORE2_DOMAIN_W, (nvtx_fn *)nvtx_domain_w },
	{ NVTX_MODULE_CORE2, NVTX_CORE2_DESTROY, (nvtx_fn *)nvtx_domain_destroy },
};

/* Once for each library that uses NVTX, with its own tables.  0: NVTX goes on without us. */
int InitializeInjectionNvtx2(nvtx_export_fn *export)
{
	const struct nvtx_callbacks *callbacks = export(NVTX_TABLE_CALLBACKS);

	if (!callbacks || callbacks->bytes < sizeof(*callbacks) || !callbacks->functions)
		return 0;
	atomic_store_explicit(&unnamed_is_left_out, !domain_is_listed("default"),
			      memory_order_relaxed);
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		unsigned int entries = 0;
		nvtx_fn ***table = NULL;

		if (callbacks->functions(functions[i].module, &table, &entries) &&
		    functions[i].number < entries && table[functions[i].number])
			*table[functions[i].number] = functions[i].function;
	}
	ncclinsp_nvtx_attach();
	return 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of NVTX become names of tags: libncclinsp-nvtx.so and the plugin in one process, with
 * NVIDIA's header where there is one, else with NVTX's part of the interface played here.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ncclinsp/ncclinsp.h"
#include "ncclinsp/tag.h"
#include "nvtx/injection.h"
#include "plugin/intern.h"
#include "tests/fixture.h"
#include "tests/plugin_driver.h"

#if __has_include(<nvtx3/nvToolsExt.h>) && !defined(PLAY_NVTX)
#include <nvtx3/nvToolsExt.h>

static void push_in(nvtxDomainHandle_t domain, int32_t type, const void *message)
{
	nvtxEventAttributes_t event = {
		.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
		.messageType = type, .message.ascii = message,
	};

	nvtxDomainRangePushEx(domain, &event);
}
#else
typedef const void *nvtxDomainHandle_t;
typedef const void *nvtxStringHandle_t;

static nvtx_fn *core[NVTX_CORE_END], *core2[NVTX_CORE2_END];

static int played_functions(int32_t module, nvtx_fn ****table, unsigned int *entries)
{
	static nvtx_fn **core_at[NVTX_CORE_END], **core2_at[NVTX_CORE2_END];

	for (int i = 1; i < NVTX_CORE_END; i++)
		core_at[i] = &core[i];
	for (int i = 1; i < NVTX_CORE2_END; i++)
		core2_at[i] = &core2[i];
	*table = module == NVTX_MODULE_CORE ? core_at : core2_at;
	*entries = module == NVTX_MODULE_CORE ? NVTX_CORE_END : NVTX_CORE2_END;
	return module == NVTX_MODULE_CORE || module == NVTX_MODULE_CORE2;
}

static const void *played_table(uint32_t table)
{
	static const struct nvtx_callbacks callbacks = { sizeof(callbacks), played_functions };

	return table == NVTX_TABLE_CALLBACKS ? &callbacks : NULL;
}

static nvtx_fn *played(nvtx_fn **functions, int i)
{
	static bool loaded;
	int (*init)(nvtx_export_fn *);
	void *lib;

	if (!loaded) {
		lib = dlopen(getenv("NVTX_INJECTION64_PATH"), RTLD_LAZY);
		ck_assert_msg(lib != NULL, "%s", dlerror());
		*(void **)&init = dlsym(lib, "InitializeInjectionNvtx2");
		ck_assert_int_eq(init(played_table), 1);
		loaded = true;
	}
	ck_assert_ptr_nonnull(functions[i]);
	return functions[i];
}

static void nvtxRangePushA(const char *name)
{
	((int (*)(const char *))played(core, NVTX_CORE_PUSH_A))(name);
}

static void nvtxRangePushW(const wchar_t *name)
{
	((int (*)(const wchar_t *))played(core, NVTX_CORE_PUSH_W))(name);
}

static void nvtxRangePop(void)
{
	((int (*)(void))played(core, NVTX_CORE_POP))();
}

static void push_in(nvtxDomainHandle_t domain, int32_t type, const void *message)
{
	const struct nvtx_event event = {
		.bytes = sizeof(event), .message_type = type, .message.string = message,
	};

	((int (*)(const void *, const struct nvtx_event *))
	 played(core2, NVTX_CORE2_PUSH_EX))(domain, &event);
}

static void nvtxDomainRangePop(nvtxDomainHandle_t domain)
{
	((int (*)(const void *))played(core2, NVTX_CORE2_POP))(domain);
}

static nvtxDomainHandle_t nvtxDomainCreateA(const char *name)
{
	return ((const void *(*)(const char *))played(core2, NVTX_CORE2_DOMAIN_A))(name);
}

static nvtxStringHandle_t nvtxDomainRegisterStringA(nvtxDomainHandle_t domain, const char *text)
{
	return ((const void *(*)(const void *, const char *))
		played(core2, NVTX_CORE2_STRING_A))(domain, text);
}
#endif

static struct pd pd;

static void setup(void)
{
	setenv("NVTX_INJECTION64_PATH", fx_build_path("libncclinsp-nvtx.so"), 1);
	unsetenv("NCCLINSP_NVTX_DOMAINS");
}

/* NCCL's: the plugin, and a communicator.  Linked in, under a sanitizer, it is in no library. */
static bool begin(void)
{
	pd_open(&pd, "trace");
	if (!pd.lib) {
		fx_skip("the plugin is linked in");
		return false;
	}
	pd_init(&pd);
	return true;
}

static const struct nci_ev_coll *posted(void)
{
	pd_stop(&pd, PD_START(&pd, NCCL_COLL));
	pd_read(&pd);
	return (const void *)pd_record(&pd, NCI_EV_COLL, pd_count(&pd, NCI_EV_COLL) - 1);
}

/* The name that a reader finds for a tag; NULL: none. */
static const char *name_of(uint64_t tag)
{
	for (uint32_t id = 1; id <= pd.live.strings; id++) {
		const char *name = pd_string(&pd, (uint16_t)id);

		if (tag && nci_tag_of_name(name, (uint32_t)strlen(name)) == tag)
			return name;
	}
	return NULL;
}

#define posts_as(name)		ck_assert_pstr_eq(name_of(posted()->tag), (name))
#define posts_without_tag()	ck_assert_uint_eq(posted()->tag, 0)

TEST(the_innermost_range_of_the_thread_is_the_tag)
{
	char temporary[16] = "layer 3";

	if (!begin())
		return;
	posts_without_tag();
	nvtxRangePushA("forward");
	posts_as("forward");
	nvtxRangePushA(temporary);
	strcpy(temporary, "layer 4");
	posts_as("layer 3");
	nvtxRangePop();
	posts_as("forward");
	nvtxRangePushA(temporary);
	posts_as("layer 4");
	ncclinsp_tag_push(7);		/* beside the application's own */
	ck_assert_uint_eq(posted()->tag, 7);
	nvtxRangePushW(L"grö\u00dfe \U0001f600");
	posts_as("grö\u00dfe \U0001f600");
	nvtxRangePop();
	ck_assert_uint_eq(posted()->tag, 7);
	ncclinsp_tag_pop();
	nvtxRangePop();
	nvtxRangePop();
	posts_without_tag();
	nvtxRangePop();			/* of nothing */
	posts_without_tag();
}

TEST(ranges_that_began_before_the_plugin_count)
{
	nvtxRangePushA("setup");
	nvtxRangePop();
	nvtxRangePushA("training");
	if (!begin())
		return;
	posts_as("training");
	nvtxRangePushA("step");
	posts_as("step");
	nvtxRangePop();
	nvtxRangePop();
	posts_without_tag();
}

TEST(a_plugin_that_was_there_first_is_found)
{
	if (!begin())
		return;
	ncclinsp_tag_push_name("by hand");
	posts_as("by hand");
	nvtxRangePushA("forward");
	posts_as("forward");
	nvtxRangePop();
	posts_as("by hand");
	ncclinsp_tag_pop();
	posts_without_tag();
}

TEST(without_the_plugin_nothing_happens)
{
	for (int i = 0; i < 100; i++)
		nvtxRangePushA("forward");
	for (int i = 0; i < 200; i++)
		nvtxRangePop();
	ncclinsp_tag_push_name("by hand");
	ck_assert_ptr_null(dlopen("libnccl-profiler-insp.so", RTLD_LAZY | RTLD_NOLOAD));
}

TEST(each_domain_has_its_own_nesting)
{
	nvtxDomainHandle_t one = nvtxDomainCreateA("one"), nccl = nvtxDomainCreateA("NCCL");
	nvtxStringHandle_t text = nvtxDomainRegisterStringA(one, "registered");

	if (!begin())
		return;
	push_in(one, NVTX_MESSAGE_STRING, text);
	posts_as("registered");
	push_in(nccl, NVTX_MESSAGE_ASCII, "ncclAllReduce");
	posts_as("registered");
	nvtxRangePushA("default");
	posts_as("default");
	nvtxDomainRangePop(nccl);
	posts_as("default");
	nvtxDomainRangePop(one);	/* below the other one */
	posts_as("default");
	nvtxRangePop();
	posts_without_tag();
	push_in(NULL, NVTX_MESSAGE_ASCII, "outer");
	push_in(one, 0, NULL);		/* it has no name */
	posts_as("outer");
	nvtxDomainRangePop(one);
	posts_as("outer");
	nvtxRangePop();
	posts_without_tag();
}

TEST_LOOP(only_the_domains_that_are_listed_count, 0, 2)
{
	nvtxDomainHandle_t one, two;

	setenv("NCCLINSP_NVTX_DOMAINS", _i ? "two,default" : "two", 1);
	one = nvtxDomainCreateA("one");
	two = nvtxDomainCreateA("two");
	if (!begin())
		return;
	push_in(two, NVTX_MESSAGE_ASCII, "of two");
	push_in(one, NVTX_MESSAGE_ASCII, "of one");
	posts_as("of two");
	nvtxDomainRangePop(one);
	posts_as("of two");
	nvtxRangePushA("of none");
	posts_as(_i ? "of none" : "of two");
	nvtxRangePop();
	posts_as("of two");
	nvtxDomainRangePop(two);
	posts_without_tag();
}

TEST(ranges_that_are_too_deep_end_in_their_order)
{
	char name[16];

	for (int i = 0; i < 10; i++)
		nvtxRangePushA("before");
	if (!begin())
		return;
	for (int i = 0; i < 90; i++) {
		snprintf(name, sizeof(name), "%d", i);
		nvtxRangePushA(name);
	}
	for (int i = 0; i < 85; i++)
		nvtxRangePop();
	posts_as("4");
	for (int i = 0; i < 5; i++)
		nvtxRangePop();
	posts_as("before");
	for (int i = 0; i < 10; i++)
		nvtxRangePop();
	posts_without_tag();
}

/* ---- threads --------------------------------------------------------------------- */

#define THREADS 8
#define ROUNDS	150	/* the ring of a lane holds more */

/* An operation in each of the ranges, as they open and as they end. */
static void *post_in_ranges(void *arg)
{
	const char *thread = arg;
	char name[32];

	for (int i = 0; i < ROUNDS; i++) {
		snprintf(name, sizeof(name), "%s outer %d", thread, i % 3);
		nvtxRangePushA(name);
		snprintf(name, sizeof(name), "%s inner %d", thread, i % 5);
		nvtxRangePushA(name);
		pd_stop(&pd, PD_START(&pd, NCCL_COLL, .func = thread));
		nvtxRangePop();
		pd_stop(&pd, PD_START(&pd, NCCL_COLL, .func = thread));
		nvtxRangePop();
	}
	return NULL;
}

TEST(operations_have_the_names_of_their_own_thread_in_the_order_of_its_calls)
{
	static const char *const names[THREADS] = {
		"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7"
	};
	const struct nci_ev_coll *ev;
	int seen[THREADS] = { 0 };
	pthread_t thread[THREADS];
	char name[32];

	if (!begin())
		return;
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, post_in_ranges,
						(void *)names[i]), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	pd_read(&pd);
	ck_assert_uint_eq(pd_count(&pd, NCI_EV_COLL), 2 * THREADS * ROUNDS);
	for (unsigned int i = 0; i < 2 * THREADS * ROUNDS; i++) {
		ev = (const void *)pd_record(&pd, NCI_EV_COLL, i);
		int t = pd_string(&pd, ev->func)[1] - '0', k = seen[t]++;

		snprintf(name, sizeof(name), k % 2 ? "t%d outer %d" : "t%d inner %d", t,
			 k / 2 % (k % 2 ? 3 : 5));
		ck_assert_pstr_eq(name_of(ev->tag), name);
	}
}

/* ---- bounds ---------------------------------------------------------------------- */

TEST(names_without_room_leave_the_tag_around_them_which_is_told)
{
	uint32_t known, room;
	char name[16];

	if (!begin())
		return;
	pd_read(&pd);
	known = pd.live.strings;
	room = SHMRING_STRINGS - INTERN_KEPT - known;
	for (uint32_t i = 0; i < 400; i++) {
		nvtxRangePushA("around");
		snprintf(name, sizeof(name), "step %u", i);
		nvtxRangePushA(name);
		if (i < room - 1 || i > 390)
			posts_as(i < room - 1 ? name : "around");
		nvtxRangePop();
		nvtxRangePop();
	}
	pd_read(&pd);
	ck_assert_uint_eq(pd.live.no_string, 0);	/* nothing is lost but a name */
	ck_assert_uint_eq(pd.live.flags & NCI_LIVE_TAGS_FULL, NCI_LIVE_TAGS_FULL);
	pd_stop(&pd, PD_START(&pd, NCCL_COLL, .func = "NewInThisNccl"));
	pd_read(&pd);
	ck_assert_uint_eq(pd.live.strings, SHMRING_STRINGS - INTERN_KEPT + 1);
}

TEST(long_names_are_cut)
{
	char name[128] = "";

	if (!begin())
		return;
	memset(name, 'x', 100);
	nvtxRangePushA(name);
	name[60] = '\0';
	posts_as(name);
}

static void post_in_a_child(void)
{
	pd.fd = -1;
	pd_init(&pd);
	posts_as("inner");
	nvtxRangePop();
	posts_as("outer");
	nvtxRangePop();
	posts_without_tag();
}

static void in_child(void (*what)(void))
{
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		what();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

TEST(a_forked_child_s_own_segment_has_the_names_of_its_ranges)
{
	if (!begin())
		return;
	nvtxRangePushA("outer");
	nvtxRangePushA("inner");
	posts_as("inner");
	in_child(post_in_a_child);
	posts_as("inner");
}

/* ---- readers --------------------------------------------------------------------- */

static void note_operation(const struct ncclinsp_operation *op, void *seen)
{
	ck_assert_uint_ne(op->tag, 0);
	ck_assert_str_eq(op->tag_name, "forward");
	++*(int *)seen;
}

static void note_inflight(const struct ncclinsp_inflight *row, void *seen)
{
	ck_assert_str_eq(row->tag_name, "forward");
	++*(int *)seen;
}

/* Whoever opens its own segment loses its lock: a child does. */
static void read_in_a_child(void)
{
	struct ncclinsp *reader;
	int seen = 0;

	ck_assert_int_eq(ncclinsp_open(&reader, pd.path), 0);
	ncclinsp_on_operation(reader, note_operation, &seen);
	ck_assert_int_ge(ncclinsp_poll(reader), 0);
	ncclinsp_inflight(reader, note_inflight, &seen);
	ck_assert_int_ge(seen, 3);
	ck_assert_str_eq(ncclinsp_comm(reader, 0)->tag_name, "forward");
	ncclinsp_close(reader);
}

TEST(readers_are_told_the_name)
{
	if (!begin())
		return;
	nvtxRangePushA("forward");
	pd_stop(&pd, PD_START(&pd, NCCL_COLL_API));
	for (int i = 0; i < 3; i++)
		posted();
	in_child(read_in_a_child);
}

int main(void)
{
	if (access(fx_build_path("libncclinsp-nvtx.so"), R_OK) < 0) {
		puts("1..0 # SKIP a sanitizer's build has no libraries");
		return 0;
	}
	return fx_run(setup, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of the library by their names, and what they say of one GPU.  Whatever one does
 * not tell stays unknown, as does a value that cannot be true.
 */
#include "ncclinspd/around/nvml.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

#include "util/list.h"

enum { CLOCK_SM = 1, CLOCK_MEMORY = 2 };	/* nvmlClockType_t */
enum { ECC_CORRECTED, ECC_UNCORRECTED };	/* nvmlMemoryErrorType_t */
enum { ECC_VOLATILE };				/* nvmlEccCounterType_t */
enum { TEMPERATURE_GPU };			/* nvmlTemperatureSensors_t */
enum { LINK_REPLAY, LINK_RECOVERY };		/* nvmlNvLinkErrorCounter_t */
enum { LINKS = 18 };				/* NVML_NVLINK_MAX_LINKS */
enum { GPU_IS_LOST = 15 };			/* nvmlReturn_t */

#define MHZ_MOST	UINT64_C(20000)		/* a higher value is no clock ... */
#define MW_MOST		UINT64_C(100000000)
#define CELSIUS_MOST	UINT64_C(200)

static const struct {
	size_t at;		/* a pointer's place in struct nvml */
	bool needed;
	const char *names[3];	/* the first that there is; newer ones come first */
} functions[] = {
	{ offsetof(struct nvml, init), true, { "nvmlInit_v2", "nvmlInit" } },
	{ offsetof(struct nvml, shutdown), true, { "nvmlShutdown" } },
	{ offsetof(struct nvml, error_text), true, { "nvmlErrorString" } },
	{ offsetof(struct nvml, find), true,
	  { "nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByPciBusId" } },
	{ offsetof(struct nvml, reasons), false,
	  { "nvmlDeviceGetCurrentClocksEventReasons",
	    "nvmlDeviceGetCurrentClocksThrottleReasons" } },
	{ offsetof(struct nvml, clock), false, { "nvmlDeviceGetClockInfo" } },
	{ offsetof(struct nvml, most_clock), false, { "nvmlDeviceGetMaxClockInfo" } },
	{ offsetof(struct nvml, power), false, { "nvmlDeviceGetPowerUsage" } },
	{ offsetof(struct nvml, power_limit), false, { "nvmlDeviceGetEnforcedPowerLimit" } },
	{ offsetof(struct nvml, temperature), false, { "nvmlDeviceGetTemperature" } },
	{ offsetof(struct nvml, ecc), false, { "nvmlDeviceGetTotalEccErrors" } },
	{ offsetof(struct nvml, remapped), false, { "nvmlDeviceGetRemappedRows" } },
	{ offsetof(struct nvml, link_state), false, { "nvmlDeviceGetNvLinkState" } },
	{ offsetof(struct nvml, link_errors), false, { "nvmlDeviceGetNvLinkErrorCounter" } },
};

/* ---- the library ----------------------------------------------------------------------- */

static bool nvml_find_function(struct nvml *nvml, size_t i)
{
	void **place = (void **)((char *)nvml + functions[i].at);

	*place = NULL;
	for (size_t k = 0; !*place && functions[i].names[k]; k++)
		*place = dlsym(nvml->library, functions[i].names[k]);
	return *place || !functions[i].needed;
}

static bool nvml_find_functions(struct nvml *nvml, char why[NVML_WHY])
{
	for (size_t i = 0; i < ARRAY_LEN(functions); i++)
		if (!nvml_find_function(nvml, i)) {
			snprintf(why, NVML_WHY, "the library has no %s", functions[i].names[0]);
			return false;
		}
	return true;
}

/* The loader's texts begin with the name of the file. */
static bool nvml_load(struct nvml *nvml, const char *library, char why[NVML_WHY])
{
	nvml->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!nvml->library)
		snprintf(why, NVML_WHY, "%s", dlerror() ?: library);
	return nvml->library;
}

bool nvml_open(struct nvml *nvml, const char *library, char why[NVML_WHY])
{
	int error;

	*nvml = (struct nvml){ 0 };
	if (!nvml_load(nvml, library, why))
		return false;
	if (nvml_find_functions(nvml, why)) {
		error = nvml->init();
		if (!error)
			return true;
		snprintf(why, NVML_WHY, "%s", nvml->error_text(error) ?: "an unknown error");
	}
	dlclose(nvml->library);
	nvml->library = NULL;
	return false;
}

void nvml_close(struct nvml *nvml)
{
	if (!nvml->library)
		return;
	nvml->shutdown();
	dlclose(nvml->library);
	nvml->library = NULL;
}

/* ---- one GPU --------------------------------------------------------------------------- */

/* A GPU while it is read. */
struct nvml_reading {
	const struct nvml *nvml;
	struct gpu_health *g;
	void *device;
};

/* True: the call has given a value.  One that says that the GPU is lost is the last. */
static bool reading_has(struct nvml_reading *r, int error)
{
	r->g->lost |= error == GPU_IS_LOST;
	return !error;
}

/* The value, if it can be true. */
static uint64_t reading_within(uint64_t value, uint64_t most)
{
	return value <= most ? value : UNKNOWN_U64;
}

static void reading_take_clock(struct nvml_reading *r, unsigned int which, uint64_t *now,
			       uint64_t *most)
{
	const struct nvml *n = r->nvml;
	unsigned int mhz;

	if (n->clock && reading_has(r, n->clock(r->device, which, &mhz)))
		*now = reading_within(mhz, MHZ_MOST);
	if (n->most_clock && reading_has(r, n->most_clock(r->device, which, &mhz)))
		*most = reading_within(mhz, MHZ_MOST);
}

static void reading_take_clocks(struct nvml_reading *r)
{
	unsigned long long reasons;

	if (r->nvml->reasons && reading_has(r, r->nvml->reasons(r->device, &reasons)))
		r->g->reasons = reasons;
	reading_take_clock(r, CLOCK_SM, &r->g->sm_mhz, &r->g->sm_max_mhz);
	reading_take_clock(r, CLOCK_MEMORY, &r->g->memory_mhz, &r->g->memory_max_mhz);
}

static void reading_take_power(struct nvml_reading *r)
{
	const struct nvml *n = r->nvml;
	unsigned int value;

	if (n->power && reading_has(r, n->power(r->device, &value)))
		r->g->power_mw = reading_within(value, MW_MOST);
	if (n->power_limit && reading_has(r, n->power_limit(r->device, &value)))
		r->g->power_limit_mw = reading_within(value, MW_MOST);
	if (n->temperature && reading_has(r, n->temperature(r->device, TEMPERATURE_GPU, &value)))
		r->g->temperature_c = reading_within(value, CELSIUS_MOST);
}

static void reading_take_memory(struct nvml_reading *r)
{
	unsigned int corrected, uncorrected, pending, failed;
	const struct nvml *n = r->nvml;
	unsigned long long errors;

	if (n->ecc && reading_has(r, n->ecc(r->device, ECC_CORRECTED, ECC_VOLATILE, &errors)))
		r->g->ecc_corrected = errors;
	if (n->ecc && reading_has(r, n->ecc(r->device, ECC_UNCORRECTED, ECC_VOLATILE, &errors)))
		r->g->ecc_uncorrected = errors;
	if (!n->remapped || !reading_has(r, n->remapped(r->device, &corrected, &uncorrected,
							 &pending, &failed)))
		return;
	r->g->remapped_rows = (uint64_t)corrected + uncorrected;
	r->g->remap_pending = pending;
	r->g->remap_failed = failed;
}

static void reading_take_link_errors(struct nvml_reading *r, unsigned int link)
{
	unsigned long long errors;

	for (unsigned int which = LINK_REPLAY; which <= LINK_RECOVERY; which++)
		if (r->nvml->link_errors &&
		    reading_has(r, r->nvml->link_errors(r->device, link, which, &errors)))
			r->g->nvlink_errors = errors +
				(r->g->nvlink_errors == UNKNOWN_U64 ? 0 : r->g->nvlink_errors);
}

/* The first link that it does not have ends them. */
static void reading_take_links(struct nvml_reading *r)
{
	unsigned int active;

	for (unsigned int link = 0; r->nvml->link_state && link < LINKS; link++) {
		if (!reading_has(r, r->nvml->link_state(r->device, link, &active)))
			return;
		if (!link)
			r->g->nvlinks = r->g->nvlinks_down = 0;
		r->g->nvlinks++;
		r->g->nvlinks_down += !active;
		reading_take_link_errors(r, link);
	}
}

void nvml_read(const struct nvml *nvml, struct gpu_health *g, bool whole)
{
	static const struct {
		void (*take)(struct nvml_reading *r);
		bool slow;
	} parts[] = {
		{ reading_take_clocks, false }, { reading_take_power, false },
		{ reading_take_memory, true }, { reading_take_links, true },
	};
	struct nvml_reading r = { .nvml = nvml, .g = g };

	g->lost = false;
	if (!reading_has(&r, nvml->find(g->pci_bus_id, &r.device)))
		return;
	for (size_t i = 0; i < ARRAY_LEN(parts) && !g->lost; i++)
		if (whole || !parts[i].slow)
			parts[i].take(&r);
}

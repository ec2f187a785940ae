/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libnvidia-ml.so.1 whose GPUs are in the file that $PLAYED_NVML names, read anew by each call:
 *
 *     0000:01:00.0 sm_mhz 1980
 *     hang 1			no call returns while this is there
 *
 * A GPU with no line is not found; a value without a line is not supported.  With OLD it is a
 * library that lacks the newest functions, and with BARE one that has too few.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC visibility push(default)
int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int error);
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, const char **device);
int nvmlDeviceGetCurrentClocksEventReasons(const char *device, unsigned long long *reasons);
int nvmlDeviceGetCurrentClocksThrottleReasons(const char *device, unsigned long long *reasons);
int nvmlDeviceGetClockInfo(const char *device, unsigned int which, unsigned int *mhz);
int nvmlDeviceGetMaxClockInfo(const char *device, unsigned int which, unsigned int *mhz);
int nvmlDeviceGetPowerUsage(const char *device, unsigned int *mw);
int nvmlDeviceGetEnforcedPowerLimit(const char *device, unsigned int *mw);
int nvmlDeviceGetTemperature(const char *device, unsigned int which, unsigned int *celsius);
int nvmlDeviceGetTotalEccErrors(const char *device, unsigned int which, unsigned int since,
				unsigned long long *n);
int nvmlDeviceGetRemappedRows(const char *device, unsigned int *corrected,
			      unsigned int *uncorrected, unsigned int *pending,
			      unsigned int *failed);
int nvmlDeviceGetNvLinkState(const char *device, unsigned int link, unsigned int *active);
int nvmlDeviceGetNvLinkErrorCounter(const char *device, unsigned int link, unsigned int which,
				    unsigned long long *n);
#pragma GCC visibility pop

enum { OK, NOT_SUPPORTED = 3, NOT_FOUND = 6, NO_DRIVER = 9, LOST = 15 };

#define DEVICES	16

/* The last line of that GPU ("hang": of none) and name. */
static int line_find(const char *gpu, const char *name, unsigned long long *value)
{
	const char *path = getenv("PLAYED_NVML");
	FILE *in = path ? fopen(path, "re") : NULL;
	char line[128], its[32], called[32];
	unsigned long long number;
	int found = 0;

	while (in && fgets(line, sizeof(line), in)) {
		if (sscanf(line, "%31s %31s %llu", its, called, &number) == 3 &&
		    !strcmp(its, gpu) && (!name || !strcmp(called, name))) {
			*value = number;
			found = 1;
		}
		if (!strcmp(gpu, "hang") && !strncmp(line, "hang", 4))
			found = 1;
	}
	if (in)
		fclose(in);
	return found;
}

static void hang_while_told(void)
{
	const struct timespec moment = { .tv_nsec = 10000000 };
	unsigned long long value;

	while (line_find("hang", NULL, &value))
		nanosleep(&moment, NULL);
}

static int value_of(const char *device, const char *name, unsigned long long *value)
{
	hang_while_told();
	if (line_find(device, "lost", value))
		return LOST;
	return line_find(device, name, value) ? OK : NOT_SUPPORTED;
}

static int small_value_of(const char *device, const char *name, unsigned int *value)
{
	unsigned long long wide;
	int error = value_of(device, name, &wide);

	if (!error)
		*value = (unsigned int)wide;
	return error;
}

int nvmlInit_v2(void)
{
	hang_while_told();
	return getenv("PLAYED_NVML") ? OK : NO_DRIVER;
}

const char *nvmlErrorString(int error)
{
	return error == NO_DRIVER ? "Driver Not Loaded" : "Unknown Error";
}

#ifndef BARE
int nvmlShutdown(void)
{
	return OK;
}
#endif

int nvmlDeviceGetHandleByPciBusId_v2(const char *id, const char **device)
{
	static char devices[DEVICES][32];
	unsigned long long value;
	int i = 0;

	hang_while_told();
	if (!line_find(id, NULL, &value))
		return NOT_FOUND;
	while (i < DEVICES - 1 && *devices[i] && strcmp(devices[i], id))
		i++;
	snprintf(devices[i], sizeof(devices[i]), "%s", id);
	*device = devices[i];
	return OK;
}

#ifndef OLD
int nvmlDeviceGetCurrentClocksEventReasons(const char *device, unsigned long long *reasons)
{
	return value_of(device, "reasons", reasons);
}

int nvmlDeviceGetRemappedRows(const char *device, unsigned int *corrected,
			      unsigned int *uncorrected, unsigned int *pending,
			      unsigned int *failed)
{
	*uncorrected = *pending = *failed = 0;
	return small_value_of(device, "remapped_rows", corrected);
}
#endif

int nvmlDeviceGetCurrentClocksThrottleReasons(const char *device, unsigned long long *reasons)
{
	return value_of(device, "reasons", reasons);
}

int nvmlDeviceGetClockInfo(const char *device, unsigned int which, unsigned int *mhz)
{
	return small_value_of(device, which == 1 ? "sm_mhz" : "memory_mhz", mhz);
}

int nvmlDeviceGetMaxClockInfo(const char *device, unsigned int which, unsigned int *mhz)
{
	return small_value_of(device, which == 1 ? "sm_max_mhz" : "memory_max_mhz", mhz);
}

int nvmlDeviceGetPowerUsage(const char *device, unsigned int *mw)
{
	return small_value_of(device, "power_mw", mw);
}

int nvmlDeviceGetEnforcedPowerLimit(const char *device, unsigned int *mw)
{
	return small_value_of(device, "power_limit_mw", mw);
}

int nvmlDeviceGetTemperature(const char *device, unsigned int which, unsigned int *celsius)
{
	(void)which;
	return small_value_of(device, "temperature_c", celsius);
}

int nvmlDeviceGetTotalEccErrors(const char *device, unsigned int which, unsigned int since,
				unsigned long long *n)
{
	(void)since;
	return value_of(device, which ? "ecc_uncorrected" : "ecc_corrected", n);
}

/* "nvlinks" is their number; the first "nvlinks_down" of them are down. */
int nvmlDeviceGetNvLinkState(const char *device, unsigned int link, unsigned int *active)
{
	unsigned int links, down = 0;

	if (small_value_of(device, "nvlinks", &links) || link >= links)
		return NOT_SUPPORTED;
	small_value_of(device, "nvlinks_down", &down);
	*active = link >= down;
	return OK;
}

int nvmlDeviceGetNvLinkErrorCounter(const char *device, unsigned int link, unsigned int which,
				    unsigned long long *n)
{
	(void)link;
	(void)which;
	return value_of(device, "nvlink_errors", n);
}

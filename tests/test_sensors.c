/* SPDX-License-Identifier: Apache-2.0 */
/* The readings of GPUs, from a library that is played (tests/preload/nvml.c). */
#include "ncclinspd/around/sensors.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ncclinspd/around/nvml.h"
#include "shmring/clock.h"
#include "tests/fixture.h"

#define SECOND		UINT64_C(1000000000)
#define PLAYED		B "/nvml/" NVML_LIBRARY
#define OLD		B "/nvml-old/" NVML_LIBRARY
#define BARE		B "/nvml-bare/" NVML_LIBRARY
#define FIRST		"0000:01:00.0"
#define SECOND_GPU	"0000:02:00.0"

static struct sensors *sensors;
static struct comm comms[2];
static struct process job = { .state = PROCESS_LIVE, .comms = comms };
static struct process *const jobs[] = { &job };
static char path[256];

static void comm_use(uint32_t i, const char *pci_bus_id)
{
	comms[i] = (struct comm){ .ready = true, .has_gpu = true };
	snprintf(comms[i].pci_bus_id, sizeof(comms[i].pci_bus_id), "%s", pci_bus_id);
}

static void setup(void)
{
	snprintf(path, sizeof(path), "%s/gpus", fx_tmpdir());
	setenv("PLAYED_NVML", path, 1);
	comm_use(0, FIRST);
	comm_use(1, SECOND_GPU);
	job.ncomms = 2;
}

static void teardown(void)
{
	unlink(path);		/* a library that hangs goes on */
	sensors_free(sensors);
	sensors = NULL;
}

/* The lines of the file, all at once, as the library may read it at any time. */
__attribute__((format(printf, 1, 2)))
static void play(const char *format, ...)
{
	char beside[300];
	va_list args;
	FILE *out;

	snprintf(beside, sizeof(beside), "%s.new", path);
	out = fopen(beside, "w");
	ck_assert_ptr_nonnull(out);
	va_start(args, format);
	vfprintf(out, format, args);
	va_end(args);
	fclose(out);
	ck_assert_int_eq(rename(beside, path), 0);
}

static void start(const char *library)
{
	const struct sensors_config config = { .library = library, .kernel_log = "",
					       .interval_ns = 5000000 };

	ck_assert_int_eq(sensors_new(&sensors, &config), 0);
	sensors_look(sensors, jobs, 1, clock_ns(CLOCK_MONOTONIC));
}

static struct gpu_health gpu(uint32_t i)
{
	struct gpu_health all[SENSORS_GPUS];

	ck_assert_uint_gt(sensors_gpus(sensors, clock_ns(CLOCK_MONOTONIC), all), i);
	return all[i];
}

/* The source at this time from now. */
static struct sensors_source source(uint64_t in_ns)
{
	struct sensors_source found;

	ck_assert(sensors_source(sensors, 0, clock_ns(CLOCK_MONOTONIC) + in_ns, &found));
	return found;
}

static bool first_is_read(void)
{
	return gpu(0).read_ns;
}

static bool first_has_one_clock(void)
{
	struct gpu_health g = gpu(0);

	return g.read_ns && g.mean_mhz == g.sm_mhz;
}

static bool first_is_free(void)
{
	return !gpu(0).limited_ns;
}

static bool first_is_limited(void)
{
	return gpu(0).limited_ns;
}

static bool first_is_lost(void)
{
	return gpu(0).lost;
}

static bool source_is_absent(void)
{
	return source(0).state == SENSORS_ABSENT;
}

static bool source_is_unused(void)
{
	return source(0).state == SENSORS_UNUSED;
}

static void wait_for(bool (*done)(void))
{
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + 60 * SECOND;

	while (!done()) {
		ck_assert_uint_lt(clock_ns(CLOCK_MONOTONIC), end_ns);
		nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
	}
}

TEST(what_the_library_tells_of_a_gpu_is_told)
{
	struct gpu_health g;

	play(FIRST " sm_mhz 1980\n" FIRST " sm_max_mhz 1980\n" FIRST " memory_mhz 2600\n"
	     FIRST " memory_max_mhz 2619\n" FIRST " power_mw 650000\n"
	     FIRST " power_limit_mw 700000\n"
	     FIRST " temperature_c 61\n" FIRST " ecc_corrected 7\n" FIRST " ecc_uncorrected 1\n"
	     FIRST " remapped_rows 2\n" FIRST " nvlinks 18\n" FIRST " nvlinks_down 3\n"
	     FIRST " nvlink_errors 5\n" FIRST " reasons 0\n");
	start(PLAYED);
	wait_for(first_is_read);
	g = gpu(0);
	ck_assert_str_eq(g.pci_bus_id, FIRST);
	ck_assert_uint_eq(g.sm_mhz, 1980);
	ck_assert_uint_eq(g.mean_mhz, 1980);
	ck_assert_uint_eq(g.sm_max_mhz, 1980);
	ck_assert_uint_eq(g.memory_mhz, 2600);
	ck_assert_uint_eq(g.memory_max_mhz, 2619);
	ck_assert_uint_eq(g.power_mw, 650000);
	ck_assert_uint_eq(g.power_limit_mw, 700000);
	ck_assert_uint_eq(g.temperature_c, 61);
	ck_assert_uint_eq(g.ecc_corrected, 7);
	ck_assert_uint_eq(g.ecc_uncorrected, 1);
	ck_assert_uint_eq(g.remapped_rows, 2);
	ck_assert_uint_eq(g.nvlinks, 18);
	ck_assert_uint_eq(g.nvlinks_down, 3);
	ck_assert_uint_eq(g.nvlink_errors, 2 * 18 * 5);
	ck_assert_int_eq(source(0).state, SENSORS_PRESENT);
	ck_assert_str_eq(source(0).why, "");
}

TEST(what_it_does_not_tell_is_unknown)
{
	struct gpu_health g;

	play(FIRST " sm_mhz 1980\n");
	start(PLAYED);
	wait_for(first_is_read);
	g = gpu(0);
	ck_assert_uint_eq(g.sm_mhz, 1980);
	ck_assert_uint_eq(g.sm_max_mhz, UNKNOWN_U64);
	ck_assert_uint_eq(g.reasons, UNKNOWN_U64);
	ck_assert_uint_eq(g.ecc_uncorrected, UNKNOWN_U64);
	ck_assert_uint_eq(g.nvlinks, UNKNOWN_U64);
	ck_assert_uint_eq(gpu(1).sm_mhz, UNKNOWN_U64);	/* there is no line of the second */
}

TEST(what_cannot_be_true_is_unknown)
{
	struct gpu_health g;

	play(FIRST " sm_mhz 4294967295\n" FIRST " temperature_c 4294967254\n"
	     FIRST " power_mw 4294967295\n" FIRST " nvlinks 4000000000\n"
	     FIRST " nvlink_errors 1\n");
	start(PLAYED);
	wait_for(first_is_read);
	g = gpu(0);
	ck_assert_uint_eq(g.sm_mhz, UNKNOWN_U64);
	ck_assert_uint_eq(g.mean_mhz, UNKNOWN_U64);
	ck_assert_uint_eq(g.temperature_c, UNKNOWN_U64);
	ck_assert_uint_eq(g.power_mw, UNKNOWN_U64);
	ck_assert_uint_eq(g.nvlinks, 18);	/* no GPU has more */
}

TEST(a_limit_holds_until_ten_readings_are_free_of_it)
{
	uint64_t since_ns;

	play(FIRST " sm_mhz 1980\n" FIRST " reasons 0\n");
	start(PLAYED);
	wait_for(first_has_one_clock);
	ck_assert_uint_eq(gpu(0).limited_ns, 0);
	play(FIRST " sm_mhz 1095\n" FIRST " reasons 32\n");
	wait_for(first_is_limited);
	since_ns = gpu(0).limited_ns;
	wait_for(first_has_one_clock);
	ck_assert_uint_eq(gpu(0).mean_mhz, 1095);
	ck_assert_uint_eq(gpu(0).limited_ns, since_ns);
	play(FIRST " sm_mhz 1980\n" FIRST " reasons 1\n");
	wait_for(first_is_free);
	ck_assert_uint_eq(gpu(0).mean_mhz, 1980);
}

TEST(an_older_library_tells_what_it_can)
{
	play(FIRST " sm_mhz 1980\n" FIRST " reasons 4\n" FIRST " remapped_rows 2\n");
	start(OLD);
	wait_for(first_is_read);
	ck_assert_uint_eq(gpu(0).reasons, 4);
	ck_assert_uint_eq(gpu(0).remapped_rows, UNKNOWN_U64);
}

TEST(a_library_that_lacks_what_is_needed_is_told)
{
	play(FIRST " sm_mhz 1980\n");
	start(BARE);
	wait_for(source_is_absent);
	ck_assert_str_eq(source(0).why, "the library has no nvmlShutdown");
	ck_assert_uint_eq(gpu(0).sm_mhz, UNKNOWN_U64);
}

TEST(a_node_without_the_library_or_its_driver_says_so)
{
	start("libnowhere-ml.so.1");
	wait_for(source_is_absent);
	ck_assert_ptr_nonnull(strstr(source(0).why, "libnowhere-ml.so.1: cannot open"));
	sensors_free(sensors);
	unsetenv("PLAYED_NVML");
	start(PLAYED);
	wait_for(source_is_absent);
	ck_assert_str_eq(source(0).why, "Driver Not Loaded");
}

TEST(a_gpu_that_the_driver_has_lost_is_told)
{
	play(FIRST " sm_mhz 1980\n" FIRST " lost 1\n" SECOND_GPU " sm_mhz 1980\n");
	start(PLAYED);
	wait_for(first_is_lost);
	ck_assert_uint_eq(gpu(0).sm_mhz, UNKNOWN_U64);
	ck_assert(!gpu(1).lost);
	ck_assert_uint_eq(gpu(1).sm_mhz, 1980);
}

/* Every call of the loop returns at once, also the last one. */
TEST(a_library_that_hangs_holds_nobody_up)
{
	uint64_t from_ns;
	struct gpu_health all[SENSORS_GPUS];

	play(FIRST " sm_mhz 1980\n");
	start(PLAYED);
	wait_for(first_is_read);
	play("hang 1\n");
	sensors_look(sensors, jobs, 1, clock_ns(CLOCK_MONOTONIC));
	nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
	ck_assert_int_eq(source(6 * SECOND).state, SENSORS_ABSENT);
	ck_assert_ptr_nonnull(strstr(source(6 * SECOND).why, "has not answered for "));
	ck_assert_uint_eq(sensors_gpus(sensors, clock_ns(CLOCK_MONOTONIC) + 6 * SECOND, all), 2);
	ck_assert_uint_eq(all[0].sm_mhz, UNKNOWN_U64);
	from_ns = clock_ns(CLOCK_MONOTONIC);
	sensors_free(sensors);
	sensors = NULL;
	ck_assert_uint_lt(clock_ns(CLOCK_MONOTONIC) - from_ns, 20 * SECOND);
}

TEST(only_gpus_of_live_processes_are_read)
{
	struct gpu_health all[SENSORS_GPUS];

	play(FIRST " sm_mhz 1980\n" SECOND_GPU " sm_mhz 1980\n");
	start(PLAYED);
	wait_for(first_is_read);
	comms[1].finalize_ticks = 1;
	sensors_look(sensors, jobs, 1, clock_ns(CLOCK_MONOTONIC));
	ck_assert_uint_eq(sensors_gpus(sensors, clock_ns(CLOCK_MONOTONIC), all), 1);
	job.state = PROCESS_DIED;
	sensors_look(sensors, jobs, 1, clock_ns(CLOCK_MONOTONIC));
	job.state = PROCESS_LIVE;
	wait_for(source_is_unused);
	ck_assert_uint_eq(sensors_gpus(sensors, clock_ns(CLOCK_MONOTONIC), all), 0);
}

TEST(user_who_invents_gpus_leaves_places_to_others)
{
	static struct comm invented[200];
	struct process liar = { .state = PROCESS_LIVE, .account = 7, .comms = invented,
				.ncomms = FX_COUNT(invented) };
	struct process *const both[] = { &liar, &job };
	struct gpu_health all[SENSORS_GPUS];
	uint32_t n, real = 0;

	for (uint32_t i = 0; i < liar.ncomms; i++) {
		invented[i] = (struct comm){ .ready = true, .has_gpu = true };
		snprintf(invented[i].pci_bus_id, sizeof(invented[i].pci_bus_id), "0001:%02x:00.0",
			 i);
	}
	play(FIRST " sm_mhz 1980\n" SECOND_GPU " sm_mhz 1980\n");
	start(PLAYED);
	sensors_look(sensors, both, 2, clock_ns(CLOCK_MONOTONIC));
	n = sensors_gpus(sensors, clock_ns(CLOCK_MONOTONIC), all);
	for (uint32_t i = 0; i < n; i++)
		real += !strcmp(all[i].pci_bus_id, FIRST) || !strcmp(all[i].pci_bus_id, SECOND_GPU);
	ck_assert_uint_eq(real, 2);
}

TEST(nothing_is_read_where_it_is_switched_off)
{
	const struct sensors_config config = { .off = true, .library = PLAYED, .kernel_log = "" };

	ck_assert_int_eq(sensors_new(&sensors, &config), 0);
	sensors_look(sensors, jobs, 1, clock_ns(CLOCK_MONOTONIC));
	ck_assert_str_eq(source(0).why, "switched off (gpu-sensors)");
	ck_assert_uint_eq(gpu(0).read_ns, 0);
}

int main(void)
{
	return fx_run(setup, teardown);
}

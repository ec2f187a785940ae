/* SPDX-License-Identifier: Apache-2.0 */
/* nccl-replay: drive a profiler library with a recorded run of NCCL 2.28. */
#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/loader.h"
#include "tests/sim/replay.h"

#define EXIT_USAGE	2
#define RELEASE		28
#define NEWEST		5

static const char usage[] =
	"usage: nccl-replay [--plugin FILE] [--speed X] [--hold MS] RECORDING\n"
	"Makes the recorded calls to FILE or to what NCCL_PROFILER_PLUGIN means;\n"
	"--speed 0 does not wait between them, --hold stays for a while before the end.\n";

struct options {
	const char *plugin, *recording;
	double speed;
	int hold_ms;
};

static int parse_options(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "plugin", 1, NULL, 'p' }, { "speed", 1, NULL, 's' }, { "hold", 1, NULL, 'o' },
		{ "help", 0, NULL, 'h' }, { NULL, 0, NULL, 0 }
	};
	char *end = "";
	int c;

	*o = (struct options){ .speed = 1 };
	while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		switch (c) {
		case 'p': o->plugin = optarg; break;
		case 's': o->speed = strtod(optarg, &end); break;
		case 'o': o->hold_ms = strtol(optarg, &end, 10); break;
		case 'h': fputs(usage, stdout); exit(EXIT_SUCCESS);
		default: return -EINVAL;
		}
		if (*end || o->speed < 0 || o->hold_ms < 0)
			return -EINVAL;
	}
	o->recording = argv[optind];
	return optind + 1 == argc ? 0 : -EINVAL;
}

static int play(const struct options *o, const struct recording *rec)
{
	const char *value = o->plugin ? o->plugin : getenv("NCCL_PROFILER_PLUGIN");
	struct loader loader;
	struct api api;
	int r = loader_open(&loader, value, RELEASE, NEWEST, false);

	if (r) {
		const char *why = dlerror();

		fprintf(stderr, "nccl-replay: no profiler: %s\n", why ? why : strerror(-r));
		return r;
	}
	fprintf(stderr, "nccl-replay: loaded %s, ncclProfiler_v%d\n", loader.name,
		loader.version);
	api_bind(&api, loader.table, loader.version, RELEASE);
	r = replay_run(rec, &api, o->speed, o->hold_ms * 1000000LL);
	loader_close(&loader);
	if (r >= 0)
		fprintf(stderr, "nccl-replay: %d of %d events begun, %d threads\n", r,
			rec->nevents, rec->nthreads);
	return r < 0 ? r : 0;
}

int main(int argc, char **argv)
{
	struct recording *rec;
	struct options o;
	char err[512];
	int r;

	if (parse_options(argc, argv, &o)) {
		fputs(usage, stderr);
		return EXIT_USAGE;
	}
	if (recording_load(&rec, o.recording, err, sizeof(err))) {
		fprintf(stderr, "nccl-replay: %s\n", err);
		return EXIT_USAGE;
	}
	r = play(&o, rec);
	recording_free(rec);
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* nccl-replay: drive a profiler library with a recorded run of NCCL, or show it. */
#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/loader.h"
#include "tests/sim/replay.h"

#define EXIT_USAGE	2

static const char usage[] =
	"usage: nccl-replay [--plugin FILE] [--api vN] [--speed X] [--hold MS] RECORDING\n"
	"       nccl-replay --print RECORDING\n"
	"Makes the recorded calls to FILE or to what NCCL_PROFILER_PLUGIN means, in the\n"
	"interface that was recorded or, as NCCL does, in an older one; --api: in none\n"
	"newer than that.  --speed 0 does not wait between calls, --hold stays for a while\n"
	"before the end.  --print shows the calls, one per line: microseconds since the\n"
	"first, thread, what.\n";

struct replay_options {
	const char *plugin, *recording;
	double speed;
	int hold_ms, api;
	bool print;
};

static int replay_parse_number(const char *text, double *to)
{
	char *end;

	*to = strtod(text, &end);
	return *end || end == text || !(*to >= 0) ? -EINVAL : 0;
}

static int replay_parse_api(const char *text, int *to)
{
	if (text[0] != 'v' || text[1] < '1' || text[1] > '0' + NCCL_PROFILER_VERSIONS || text[2])
		return -EINVAL;
	*to = text[1] - '0';
	return 0;
}

static int replay_parse_options(int argc, char **argv, struct replay_options *o)
{
	static const struct option longs[] = {
		{ "plugin", 1, NULL, 'p' }, { "api", 1, NULL, 'a' }, { "speed", 1, NULL, 's' },
		{ "hold", 1, NULL, 'o' }, { "print", 0, NULL, 't' }, { "help", 0, NULL, 'h' },
		{ NULL, 0, NULL, 0 }
	};
	double hold = 0;
	int c, e = 0;

	*o = (struct replay_options){ .speed = 1, .api = NCCL_PROFILER_VERSIONS };
	while (!e && (c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		switch (c) {
		case 'p': o->plugin = optarg; break;
		case 'a': e = replay_parse_api(optarg, &o->api); break;
		case 's': e = replay_parse_number(optarg, &o->speed); break;
		case 'o': e = replay_parse_number(optarg, &hold); break;
		case 't': o->print = true; break;
		case 'h': fputs(usage, stdout); exit(EXIT_SUCCESS);
		default: return -EINVAL;
		}
	}
	o->hold_ms = (int)hold;
	o->recording = argv[optind];
	return e || optind + 1 != argc ? -EINVAL : 0;
}

/* The release that brought the recorded interface. */
static int recording_release(const struct recording *rec)
{
	static const int releases[] = { 0, 23, 24, 26, 27, 28, 29 };

	return releases[rec->api];
}

static int recording_play(const struct replay_options *o, const struct recording *rec)
{
	const char *value = o->plugin ? o->plugin : getenv("NCCL_PROFILER_PLUGIN");
	struct loader loader;
	struct api api;
	int version = o->api < rec->api ? o->api : rec->api;
	int r = loader_open(&loader, value, recording_release(rec), version, false);

	if (r) {
		const char *why = dlerror();

		fprintf(stderr, "nccl-replay: no profiler: %s\n", why ? why : strerror(-r));
		return r;
	}
	fprintf(stderr, "nccl-replay: loaded %s, ncclProfiler_v%d\n", loader.name,
		loader.version);
	api_bind(&api, loader.table, loader.version, recording_release(rec));
	r = replay_run(rec, &api, o->speed, o->hold_ms * 1000000LL);
	loader_close(&loader);
	if (r >= 0)
		fprintf(stderr, "nccl-replay: %d of %d events begun\n", r, rec->nevents);
	return r < 0 ? r : 0;
}

int main(int argc, char **argv)
{
	struct recording *rec;
	struct replay_options o;
	char err[512];
	int r;

	if (replay_parse_options(argc, argv, &o)) {
		fputs(usage, stderr);
		return EXIT_USAGE;
	}
	if (recording_load(&rec, o.recording, err, sizeof(err))) {
		fprintf(stderr, "nccl-replay: %s\n", err);
		return EXIT_USAGE;
	}
	if (rec->lost)
		fprintf(stderr, "nccl-replay: %llu calls were not recorded\n",
			(unsigned long long)rec->lost);
	if (o.print)
		recording_print(rec, stdout);
	r = o.print ? 0 : recording_play(&o, rec);
	recording_free(rec);
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

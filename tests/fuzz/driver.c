/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target without libFuzzer, as a test: the files of its corpus, then
 * mutations of them and pure noise from a fixed seed.  Reports in TAP; a defect
 * ends the process, which prove reports.
 *
 *     fuzz_<input> [file or directory]...    default: tests/fuzz/corpus/<input>
 *
 * FUZZ_SAVE=FILE has each input written there before it is run: the last one is the defect's.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/fixture.h"
#include "tests/fuzz/fuzz.h"

#define INPUT_MAX	(64 << 10)
#define MUTATIONS	20000
#define SECONDS		3	/* of CPU time, where an input takes long */
#define SEEDS_MAX	64
#define HANGS_S		240	/* then something does not come to an end */

struct input {
	uint8_t *data;	/* exactly `size` bytes, so that a sanitizer sees the end */
	size_t size;
};

static struct input seeds[SEEDS_MAX];
static size_t seed_count;

static struct input input_new(const uint8_t *data, size_t size)
{
	struct input in = { .data = malloc(size ? size : 1), .size = size };

	if (!in.data)
		abort();
	memcpy(in.data, data, size);
	return in;
}

static void run_file(const char *path)
{
	static uint8_t buf[INPUT_MAX];
	FILE *f = fopen(path, "rb");
	struct input in;

	if (!f) {
		printf("Bail out! %s: %s\n", path, strerror(errno));
		exit(1);
	}
	in = input_new(buf, fread(buf, 1, sizeof(buf), f));
	fclose(f);
	LLVMFuzzerTestOneInput(in.data, in.size);
	if (seed_count < SEEDS_MAX)
		seeds[seed_count++] = in;
	else
		free(in.data);
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* In the order of their names, so that one seed gives one run. */
static void run_path(const char *path)
{
	struct dirent **entries;
	char file[4096];
	int n = scandir(path, &entries, is_visible, alphasort);

	if (n < 0)
		run_file(path);
	for (int i = 0; i < n; i++) {
		snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name);
		run_file(file);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

/* Overwrites bytes, words and runs, and sometimes cuts the end off. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max)
{
	static const uint64_t words[] = { 0, 1, UINT64_MAX, INT64_MAX, 0xff, 0xfe, 64, 4096 };
	uint64_t changes = 1 + fx_random() % 8;

	(void)max;
	if (fx_random() % 8 == 0)
		size -= fx_random() % (size + 1);
	for (uint64_t i = 0; i < changes && size >= sizeof(uint64_t); i++) {
		uint8_t *at = data + fx_random() % (size - sizeof(uint64_t) + 1);
		uint64_t word = words[fx_random() % (sizeof(words) / sizeof(words[0]))];

		if (fx_random() % 2)
			*at = (uint8_t)fx_random();
		else
			memcpy(at, &word, sizeof(word));
	}
	return size;
}

/* Where the target has a mutator of its own, that one. */
#pragma weak LLVMFuzzerCustomMutator

static struct input mutate(const struct input *from)
{
	static uint8_t room[INPUT_MAX];
	size_t size = from->size;

	memcpy(room, from->data, size);
	if (LLVMFuzzerCustomMutator)
		size = LLVMFuzzerCustomMutator(room, size, sizeof(room), (unsigned)fx_random());
	else
		size = LLVMFuzzerMutate(room, size, sizeof(room));
	return input_new(room, size);
}

static void save(const struct input *in)
{
	const char *path = getenv("FUZZ_SAVE");
	FILE *f = path ? fopen(path, "wb") : NULL;

	if (!f)
		return;
	fwrite(in->data, 1, in->size, f);
	fclose(f);
}

static void run_mutation(void)
{
	static uint8_t noise[512];
	const struct input random = { noise, sizeof(noise) };
	struct input in;

	if (seed_count && fx_random() % 8) {
		in = mutate(&seeds[fx_random() % seed_count]);
	} else {
		for (size_t i = 0; i < sizeof(noise); i++)
			noise[i] = (uint8_t)fx_random();
		in = mutate(&random);
	}
	save(&in);
	LLVMFuzzerTestOneInput(in.data, in.size);
	free(in.data);
}

int main(int argc, char **argv)
{
	const char *name = strrchr(argv[0], '_');
	char corpus[256];
	int mutations = 0;

	alarm(HANGS_S);
	snprintf(corpus, sizeof(corpus), "tests/fuzz/corpus/%s", name ? name + 1 : argv[0]);
	if (argc < 2)
		run_path(corpus);
	for (int i = 1; i < argc; i++)
		run_path(argv[i]);
	printf("%s 1 - corpus of %zu inputs\n", seed_count ? "ok" : "not ok", seed_count);
	fflush(stdout);
	while (mutations < MUTATIONS && clock() < SECONDS * CLOCKS_PER_SEC) {
		run_mutation();
		mutations++;
	}
	printf("ok 2 - %d mutations of it\n1..2\n", mutations);
	while (seed_count)
		free(seeds[--seed_count].data);
	return 0;
}

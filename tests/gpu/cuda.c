/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/nccl/fake.h"

#define SKIPPED	77

static const struct {
	const char *function;		/* there already: nothing to load */
	const char *variable;
	const char *names[4];
} libraries[] = {
	{ "cudaMalloc", "CUDART_LIB", { "libcudart.so.13", "libcudart.so.12", "libcudart.so" } },
	{ "ncclGetUniqueId", "NCCL_LIB", { "libnccl.so.2", "libnccl.so" } },
};

bool cuda_finds(const char *function)
{
	return dlsym(RTLD_DEFAULT, function);
}

static bool load(const char *variable, const char *const *names)
{
	const char *named = getenv(variable);

	/* Global: that is where calls look. */
	if (named)
		return dlopen(named, RTLD_NOW | RTLD_GLOBAL);
	for (; *names; names++)
		if (dlopen(*names, RTLD_NOW | RTLD_GLOBAL))
			return true;
	return false;
}

bool cuda_has_time(void)
{
	return cuda_finds("cudaEventElapsedTime");
}

static int look_for_gpu(void)
{
	int value, result;

	result = cudaDeviceGetAttribute(&value, 16, 0);	/* multiprocessors */
	if (!result && value > 0)
		return 0;
	printf("no GPU: CUDA answers with error %d\n", result);
	return SKIPPED;
}

int cuda_find(void)
{
	for (size_t i = 0; i < sizeof(libraries) / sizeof(*libraries); i++) {
		if (cuda_finds(libraries[i].function) ||
		    load(libraries[i].variable, libraries[i].names))
			continue;
		printf("%s (%s names another)\n", dlerror(), libraries[i].variable);
		return SKIPPED;
	}
	return look_for_gpu();
}

void cuda_require(int result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "%s: CUDA error %d\n", what, result);
	exit(1);
}

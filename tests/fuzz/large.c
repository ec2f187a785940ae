/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of which a run touches a little are what a run costs under the address sanitizer:
 * it maps each anew, and marks every byte of it twice.  Linked in front of malloc() for
 * libFuzzer, this hands large blocks out again instead, empty, each with its end guarded as
 * before.  A use of one after its free is left to the same targets in `make check`.
 */
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LARGE_BYTES	(128u << 10)
#define PAGE_BYTES	4096u
#define BLOCKS		256

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_aligned_alloc(size_t by, size_t bytes);
void *__real_realloc(void *at, size_t bytes);
void __real_free(void *at);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_aligned_alloc(size_t by, size_t bytes);
void *__wrap_realloc(void *at, size_t bytes);
void __wrap_free(void *at);

static struct block {
	char *at;
	size_t bytes;	/* as asked for */
	bool used;
} blocks[BLOCKS];

static size_t whole_pages(size_t bytes)
{
	return (bytes + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1);
}

static struct block *block_find(const void *at)
{
	for (size_t i = 0; at && !((uintptr_t)at % PAGE_BYTES) && i < BLOCKS; i++)
		if (blocks[i].at == at)
			return &blocks[i];
	return NULL;
}

/* Behind it lies a page that nobody may touch. */
static bool block_make(struct block *b, size_t bytes)
{
	size_t room = whole_pages(bytes);
	char *at = mmap(NULL, room + PAGE_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return false;
	mprotect(at + room, PAGE_BYTES, PROT_NONE);
	__asan_poison_memory_region(at + bytes, room - bytes);
	__lsan_register_root_region(at, room);	/* what it points to is no leak */
	*b = (struct block){ .at = at, .bytes = bytes };
	return true;
}

static void *block_take(size_t bytes)
{
	struct block *b = blocks;

	while (b < blocks + BLOCKS && b->at && (b->used || b->bytes != bytes))
		b++;
	if (b == blocks + BLOCKS || (!b->at && !block_make(b, bytes)))
		return NULL;
	b->used = true;
	return b->at;
}

void *__wrap_malloc(size_t bytes)
{
	void *at = bytes < LARGE_BYTES ? NULL : block_take(bytes);

	return at ? at : __real_malloc(bytes);
}

void *__wrap_aligned_alloc(size_t by, size_t bytes)
{
	void *at = bytes < LARGE_BYTES || by > PAGE_BYTES ? NULL : block_take(bytes);

	return at ? at : __real_aligned_alloc(by, bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
	void *at = NULL;
	size_t all;

	if (!__builtin_mul_overflow(n, bytes, &all) && all >= LARGE_BYTES)
		at = block_take(all);
	return at ? at : __real_calloc(n, bytes);
}

void __wrap_free(void *at)
{
	struct block *b = block_find(at);

	if (!b) {
		__real_free(at);
		return;
	}
	if (!b->used)
		abort();	/* freed twice */
	b->used = false;
	madvise(b->at, whole_pages(b->bytes), MADV_DONTNEED);
}

void *__wrap_realloc(void *at, size_t bytes)
{
	const struct block *b = block_find(at);
	void *more;

	if (!b)
		return __real_realloc(at, bytes);
	more = __wrap_malloc(bytes);
	if (!more)
		return NULL;
	memcpy(more, at, bytes < b->bytes ? bytes : b->bytes);
	__wrap_free(at);
	return more;
}

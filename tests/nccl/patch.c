/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libnccl has the CUDA runtime linked into it, as local symbols.  Before the
 * program begins, a jump is written over each of its functions: to the one that
 * is played here, or to one that says which is missing.  A function of NCCL itself
 * that is played goes the same way.
 */
#include "fake.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layout.h"

#define MISSING		512
#define JUMP_BYTES	12
#define PAGE		((uintptr_t)4096)

static const struct fake_call *const tables[] = {
	fake_device_calls, fake_memory_calls, fake_stream_calls, fake_driver_calls,
};

static char *missing_name[MISSING];
static unsigned int missing_count;

int fake_missing(unsigned int which);

__attribute__((used)) int fake_missing(unsigned int which)
{
	fprintf(stderr, "fake CUDA: %s is not played\n", missing_name[which]);
	return CUDA_NOT_SUPPORTED;
}

/* As many entries as there may be of them, each telling its number. */
extern char fake_missing_entries[];
__asm__(".text\n"
	".hidden fake_missing_entries\n"
	".balign 16\n"
	"fake_missing_entries:\n"
	".set entry, 0\n"
	".rept 512\n"
	".balign 16\n"
	"	movl $entry, %edi\n"
	"	jmp fake_missing\n"
	".set entry, entry + 1\n"
	".endr\n");

static void *missing_entry(const char *name)
{
	unsigned int which = missing_count++;

	if (missing_count > MISSING)
		abort();
	missing_name[which] = strdup(name);
	return fake_missing_entries + (size_t)which * 16;
}

static void *played(const char *name)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		for (const struct fake_call *c = tables[i]; c->name; c++)
			if (strcmp(c->name, name) == 0)
				return c->function;
	return NULL;
}

/* movabs $to, %rax; jmp *%rax */
static void write_jump(char *at, void *to)
{
	char *page = (char *)((uintptr_t)at & ~(PAGE - 1));
	char code[JUMP_BYTES] = { 0x48, (char)0xb8, [10] = (char)0xff, (char)0xe0 };

	memcpy(code + 2, &to, sizeof(to));
	if (mprotect(page, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC))
		abort();
	memcpy(at, code, sizeof(code));
	mprotect(page, 2 * PAGE, PROT_READ | PROT_EXEC);
}

static void patch(const Elf64_Sym *symbol, const char *name, uintptr_t base)
{
	void *to;

	if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_size < JUMP_BYTES)
		return;
	to = played(name);
	if (!to && strncmp(name, "cuda", 4) == 0 && name[4] >= 'A' && name[4] <= 'Z')
		to = missing_entry(name);
	if (to)
		write_jump((char *)base + symbol->st_value, to);
}

static void patch_all(const char *file, uintptr_t base)
{
	const Elf64_Ehdr *elf = (const void *)file;
	const Elf64_Shdr *section = (const void *)(file + elf->e_shoff);

	for (int i = 0; i < elf->e_shnum; i++) {
		const Elf64_Sym *symbol = (const void *)(file + section[i].sh_offset);
		const char *names = file + section[section[i].sh_link].sh_offset;

		if (section[i].sh_type != SHT_SYMTAB)
			continue;
		for (size_t n = section[i].sh_size / sizeof(*symbol); n; n--, symbol++)
			patch(symbol, names + symbol->st_name, base);
	}
}

__attribute__((constructor)) static void load(void)
{
	void *nccl = dlopen(NCCL_LIBRARY, RTLD_NOW | RTLD_GLOBAL);
	struct link_map *map;
	struct stat st;
	char *file;
	int fd;

	if (!nccl || dlinfo(nccl, RTLD_DI_LINKMAP, &map)) {
		fprintf(stderr, "fake CUDA: %s\n", dlerror());
		exit(1);
	}
	fd = open(NCCL_LIBRARY, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		abort();
	file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (file == MAP_FAILED)
		abort();
	patch_all(file, map->l_addr);
	munmap(file, (size_t)st.st_size);
}

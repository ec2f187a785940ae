/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process's NCCL is looked for among all that it has mapped for execution, since a framework may
 * have it linked in.  NCCL alone defines pnccl*, whose addresses are those of nccl* too: a library
 * that stands in between defines nccl* and calls pnccl*, so that each call is counted once.
 *
 * The file is the job's, and may be anything: it is read in bounded pieces, never mapped.
 */
#include "probe/library.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/list.h"

#define SECTIONS	256
#define NAMES_MOST	(64u << 20)	/* bytes of a table of names; larger ones are skipped */
#define SYMBOLS_MOST	(8u << 20)
#define PIECE		4096		/* symbols that are read at once */
#define CODE_MOST	4096
#define WINDOW		12		/* bytes from a load to the store of what it loaded */

enum { COMM_USER_RANK = CALLS_END, COMM_COUNT, WANTED };

static const char *const wanted[WANTED] = {
#define X(name, collective, count, datatype, comm) [CALLS_##name] = #name,
	CALLS_FUNCTIONS(X)
#undef X
	[COMM_USER_RANK] = "CommUserRank",
	[COMM_COUNT] = "CommCount",
};

struct elf {
	int fd;
	const char *prefix;		/* "pnccl" or "nccl" */
	Elf64_Phdr segments[64];
	uint32_t nsegments;
	Elf64_Shdr sections[SECTIONS];
	uint32_t nsections;
	uint64_t at[WANTED], bytes[WANTED];
};

static bool read_all(int fd, void *to, size_t bytes, uint64_t at)
{
	return at < INT64_MAX && pread(fd, to, bytes, (off_t)at) == (ssize_t)bytes;
}

/* ---- symbols ---------------------------------------------------------------------- */

static bool elf_open(struct elf *e)
{
	Elf64_Ehdr head;

	if (!read_all(e->fd, &head, sizeof(head), 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) ||
	    head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(e->segments[0]) ||
	    head.e_shentsize != sizeof(e->sections[0]))
		return false;
	e->nsegments = head.e_phnum < ARRAY_LEN(e->segments) ? head.e_phnum : 0;
	e->nsections = head.e_shnum < SECTIONS ? head.e_shnum : 0;
	return read_all(e->fd, e->segments, e->nsegments * sizeof(e->segments[0]), head.e_phoff) &&
	       read_all(e->fd, e->sections, e->nsections * sizeof(e->sections[0]), head.e_shoff);
}

/* The place in the file of an address; 0: it is in none of its segments. */
static uint64_t elf_place(const struct elf *e, uint64_t address)
{
	for (uint32_t i = 0; i < e->nsegments; i++) {
		const Elf64_Phdr *s = &e->segments[i];

		if (s->p_type == PT_LOAD && s->p_flags & PF_X && address >= s->p_vaddr &&
		    address - s->p_vaddr < s->p_filesz)
			return address - s->p_vaddr + s->p_offset;
	}
	return 0;
}

static void elf_take(struct elf *e, const Elf64_Sym *symbol, const char *name)
{
	size_t prefix = strlen(e->prefix);

	if (symbol->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC ||
	    strncmp(name, e->prefix, prefix))
		return;
	for (int i = 0; i < WANTED; i++) {
		if (strcmp(name + prefix, wanted[i]))
			continue;
		e->at[i] = elf_place(e, symbol->st_value);
		e->bytes[i] = symbol->st_size;
	}
}

static void elf_read_symbols(struct elf *e, const Elf64_Shdr *table)
{
	CLEANUP(cleanup_freep) char *names = NULL;
	CLEANUP(cleanup_freep) Elf64_Sym *symbols = malloc(PIECE * sizeof(*symbols));
	uint64_t n = table->sh_size / sizeof(*symbols);
	const Elf64_Shdr *texts;

	if (table->sh_link >= e->nsections || n > SYMBOLS_MOST)
		return;
	texts = &e->sections[table->sh_link];
	if (texts->sh_size > NAMES_MOST)
		return;
	names = calloc(1, texts->sh_size + 1);
	if (!names || !symbols || !read_all(e->fd, names, texts->sh_size, texts->sh_offset))
		return;
	for (uint64_t i = 0; i < n; i += PIECE) {
		size_t piece = n - i < PIECE ? n - i : PIECE;

		if (!read_all(e->fd, symbols, piece * sizeof(*symbols),
			      table->sh_offset + i * sizeof(*symbols)))
			return;
		for (size_t k = 0; k < piece; k++)
			if (symbols[k].st_name < texts->sh_size)
				elf_take(e, &symbols[k], names + symbols[k].st_name);
	}
}

static bool elf_has_nccl(struct elf *e)
{
	static const uint32_t tables[] = { SHT_DYNSYM, SHT_SYMTAB };

	for (size_t t = 0; t < ARRAY_LEN(tables) && !e->at[CALLS_AllReduce]; t++) {
		uint32_t i = 0;

		while (i < e->nsections && e->sections[i].sh_type != tables[t])
			i++;
		if (i < e->nsections)	/* the only one of its type, by the format */
			elf_read_symbols(e, &e->sections[i]);
	}
	return e->at[CALLS_AllReduce];
}

/* ---- where a communicator has its rank ---------------------------------------------- */

#ifdef __x86_64__
/* The length of a `mov` with a ModRM byte: *displacement, *reg, and its *mod; 0: it is none. */
static size_t code_mov(const uint8_t *code, uint8_t opcode, uint32_t *displacement, uint8_t *reg,
		       uint8_t *mod)
{
	size_t n = (code[0] & 0xf8) == 0x40;	/* REX without W: 32 bits */
	uint8_t rex = n ? code[0] : 0, modrm = code[n + 1];

	if (code[n] != opcode)
		return 0;
	*mod = modrm >> 6;
	*reg = (uint8_t)((modrm >> 3 & 7) | (rex & 4) << 1);
	n += 2 + ((modrm & 7) == 4);
	memcpy(displacement, code + n, sizeof(*displacement));
	return n + (*mod == 2 ? 4 : 0);
}

/*
 * The place in struct ncclComm of what the function returns by its second argument: the one that it
 * loads from and stores without a displacement at once.  0: it cannot be told.
 */
static uint32_t code_returned_member(int fd, uint64_t at, uint64_t bytes)
{
	uint8_t code[CODE_MOST + WINDOW + 16] = { 0 }, reg, stored, mod;
	uint32_t place, ignored, found = 0;

	if (bytes > CODE_MOST || !at || !read_all(fd, code, bytes, at))
		return 0;
	for (size_t i = 0; i < bytes; i++) {
		size_t n = code_mov(code + i, 0x8b, &place, &reg, &mod);

		for (size_t k = i + n; n && mod == 2 && k < i + n + WINDOW; k++) {
			uint8_t store_mod;

			if (!code_mov(code + k, 0x89, &ignored, &stored, &store_mod) || store_mod ||
			    stored != reg)
				continue;
			if (found && found != place)
				return 0;
			found = place;
		}
	}
	return found;
}
#else
static uint32_t code_returned_member(int fd, uint64_t at, uint64_t bytes)
{
	return 0;
}
#endif

/* Both functions must agree: nRanks stands behind rank. */
static uint32_t elf_rank_at(const struct elf *e)
{
	uint32_t rank = code_returned_member(e->fd, e->at[COMM_USER_RANK],
					     e->bytes[COMM_USER_RANK]);
	uint32_t count = code_returned_member(e->fd, e->at[COMM_COUNT], e->bytes[COMM_COUNT]);

	return rank >= 8 && rank < UINT32_MAX - 4 && count == rank + 4 ? rank : 0;
}

/* ---- files of a process --------------------------------------------------------------- */

/* A line of /proc/PID/maps, of a file that is mapped for execution. */
struct mapping {
	char range[64];
	unsigned long inode;
	const char *path;
};

static bool mapping_read(char *line, struct mapping *m)
{
	char mode[8];
	int path = 0;

	line[strcspn(line, "\n")] = '\0';
	m->path = line;
	if (sscanf(line, "%63s %7s %*s %*s %lu %n", m->range, mode, &m->inode, &path) != 3 ||
	    !path || mode[2] != 'x' || !m->inode || line[path] != '/')
		return false;
	m->path = line + path;
	return true;
}

/*
 * map_files has the very file, deleted or not, for those who may; else it is found by its name, and
 * only regular files are opened: others may hang.
 */
static int mapping_open(pid_t pid, const struct mapping *m)
{
	char path[4096 + 64];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%s", (int)pid, m->range);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, m->path);
	if (stat(path, &st) || !S_ISREG(st.st_mode) || st.st_ino != m->inode)
		return -ENOENT;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static bool library_read(struct library *library, const char *prefix)
{
	CLEANUP(cleanup_freep) struct elf *e = calloc(1, sizeof(*e));

	if (!e)
		return false;
	e->fd = library->fd;
	e->prefix = prefix;
	if (!elf_open(e) || !elf_has_nccl(e))
		return false;
	memcpy(library->at, e->at, sizeof(library->at));
	library->rank_at = elf_rank_at(e);
	return true;
}

static int library_search(FILE *maps, pid_t pid, const char *prefix, struct library *library)
{
	CLEANUP(cleanup_freep) char *line = NULL;
	unsigned long last = 0;
	struct mapping m;
	size_t room = 0;

	while (getline(&line, &room, maps) > 0) {
		if (!mapping_read(line, &m) || m.inode == last)
			continue;
		last = m.inode;
		library->fd = mapping_open(pid, &m);
		if (library->fd < 0)
			continue;
		if (library_read(library, prefix)) {
			snprintf(library->path, sizeof(library->path), "%s", m.path);
			return 0;
		}
		close(library->fd);
	}
	return -ENOENT;
}

int library_find(pid_t pid, struct library *library)
{
	char path[64];
	FILE *maps;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	if (!maps)
		return errno == ENOENT ? -ESRCH : -errno;
	r = library_search(maps, pid, "pnccl", library);
	if (r) {
		rewind(maps);
		r = library_search(maps, pid, "nccl", library);
	}
	fclose(maps);
	return r;
}

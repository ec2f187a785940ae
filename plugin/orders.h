/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUGIN_ORDERS_H
#define PLUGIN_ORDERS_H

/* The control file as a process reads it: include/nci/control.h. */

#include <stdbool.h>
#include <sys/types.h>

#include "nci/control.h"

#define ORDERS_LOOK_NS		UINT64_C(100000000)	/* not read more often than that */
#define ORDERS_OPEN_NS		UINT64_C(10000000000)	/* looked for, or after, no more often */

struct orders {
	int fd;			/* -1: there is none, or none to be trusted */
	dev_t dev;		/* dev, ino: by which fd is known to be still the file's */
	ino_t ino;
	uint64_t open_ns;	/* CLOCK_MONOTONIC of the last look at the file itself */
	char path[256];		/* "": no control file for this process */
	uint8_t boot_id[16];
	struct nci_control file;	/* the last one that was read whole; zeros: none was */
};

/* The orders to be in force; a field that nobody asks for is as it was. */
struct orders_result {
	uint32_t level, sample;
	uint32_t cause;		/* NCI_CAUSE_* */
	bool asked;		/* some entry asks for a level or a sampling */
	uint64_t until_mono_ns;	/* when the first of what is in force ends; 0: nothing does */
};

/* `path`: NULL or "": NCI_CONTROL_PATH.  Opens the file if it is there already. */
void orders_init(struct orders *c, const char *path, const uint8_t *boot_id,
		 uint64_t mono_ns);
/* A descriptor that the job has closed itself, and may have opened anew, is left alone. */
void orders_close(struct orders *c);

enum orders_read {
	ORDERS_NONE,		/* there is no file */
	ORDERS_SAME,
	ORDERS_NEW,		/* c->file is new */
	ORDERS_REFUSED,		/* torn, short, or no control file of this boot */
};

/*
 * Three system calls at most where the file is as it was; more, every ORDERS_OPEN_NS,
 * to look for one that is not there.  c->file stays what it was unless it is new.
 */
enum orders_read orders_read(struct orders *c, uint64_t mono_ns);

/* Change *result as the entries say at mono_ns.  Any bytes will do as entries. */
void orders_apply(const struct nci_control *file, uint64_t instance, uint64_t mono_ns,
		  struct orders_result *result);

#endif

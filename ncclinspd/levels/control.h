/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_LEVELS_CONTROL_H
#define NCCLINSPD_LEVELS_CONTROL_H

/*
 * The control file (nci/control.h), which plugins read, and beside it
 * "<path>.wishes", for the daemon alone: from what wishes its entries follow, so that
 * the next daemon goes on with them.  A file that cannot be written is told of once,
 * tried again, and stops nothing.
 */

#include <limits.h>

#include "nci/control.h"
#include "ncclinspd/levels/burst.h"
#include "ncclinspd/levels/kept.h"
#include "ncclinspd/levels/wishes.h"

struct control {
	char path[PATH_MAX];
	int fd;			/* -1: there is none */
	ino_t ino;
	int error;		/* outcome of the last write or open: negative errno; 0: well */
	int told;		/* the error that the log was told last */
	uint8_t boot_id[16];	/* zeros: not readable */
	uint64_t writes;
	bool stale;		/* the file does not hold what was to be written */
	struct nci_control image;	/* content that was written last */
	struct kept_state kept;	/* the wishes file's */
};

/*
 * Open or make the file; its directory is made too.  A sequence that is found there
 * goes on.  Never fails: c->error says why nothing can be written.
 */
void control_open(struct control *c, const char *path);

/* The file stays: what is in force in the jobs does not change. */
void control_close(struct control *c);

/* The settings that concern all processes of the node. */
struct control_node {
	struct burst_plan plan;
	uint32_t mode, mode_s;	/* mode of processes to come: NCI_MODE_*; 0: their own choice */
};

/*
 * Write if these entries differ from what is there, or if the plan does or is about to run
 * out, or if the last attempt failed, or the file was removed or replaced.
 */
void control_publish(struct control *c, const struct nci_control_entry *entry, uint32_t n,
		     const struct control_node *node, uint64_t now_ns);

/* NULL: all is well. */
const char *control_error_text(const struct control *c);

/* Keep the wishes for the next daemon, if they are others than before. */
void control_save(struct control *c, const struct wishes *ws);

/* Fetch those of the last; none, if there are none or they make no sense. */
void control_restore(struct control *c, struct wishes *ws, uint64_t now_ns);

/*
 * The bytes of a wishes file: 0, or a negative errno: -EPROTO, -EPROTONOSUPPORT, or
 * -ESTALE: of another boot.
 */
int control_parse_wishes(const void *bytes, size_t n, const uint8_t boot_id[16],
			 struct wishes *ws);

#endif

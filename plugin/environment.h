/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUGIN_ENVIRONMENT_H
#define PLUGIN_ENVIRONMENT_H

/* The words in the environment that say what is to be recorded: libnccl-profiler-insp(7). */

#include <stdbool.h>
#include <stdint.h>

#define ENVIRONMENT_SETTLE_S	30	/* activity before kernels are timed in bursts */

struct environment {
	uint32_t level;		/* NCCLINSP_LEVEL: NCI_LEVEL_OFF to NCI_LEVEL_TRACE */
	bool has_level;
	uint32_t mask;		/* NCCL_PROFILE_EVENT_MASK, decimal or 0x... */
	bool has_mask;
	uint32_t mode, mode_s;	/* NCCLINSP_KERNELS: NCI_MODE_*; 0: it names none */
	uint32_t settle_s;	/* NCCLINSP_SETTLE */
	bool misspelt;		/* a variable is none of its words, and was ignored */
};

void environment_read(struct environment *e);

#endif

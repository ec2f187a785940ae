/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUGIN_FILL_H
#define PLUGIN_FILL_H

/* One row per event type: how its descriptor becomes a record. */

#include "nci/events.h"
#include "plugin/adapt.h"

/*
 * Writes every byte of the record behind its head (a slot holds the remains of
 * another event), and returns the head's form: lines, and the NCI_FORM_* that the
 * descriptor tells.
 */
typedef uint32_t fill_fn(struct nci_record *rec, const struct nccl_descr_v6 *d,
			 const struct adapt_extra *extra);

/* The functions by NCI_EV_*. */
extern fill_fn *const fill_events[NCI_EV_END];

#endif

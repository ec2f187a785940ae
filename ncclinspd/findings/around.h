/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FINDINGS_AROUND_H
#define NCCLINSPD_FINDINGS_AROUND_H

/* Causes of findings that lie in the machine around a rank. */

#include "judge/gpu.h"
#include "judge/nic.h"
#include "judge/resources.h"
#include "judge/xid.h"
#include "ncclinspd/findings/diagnose.h"
#include "rows/rows.h"

/* Is the GPU of this communicator's rank slow or lost?  Sets *cause only then. */
bool around_find_gpu(const struct diagnose *dg, const struct comm *c, uint64_t now_ns,
		     struct gpu_cause *cause);

extern const struct field nic_cause_fields[];	/* fields of struct nic_cause */
extern const struct field resources_fields[];	/* fields of struct resources */
extern const struct field placement_fields[];	/* fields of struct placement */

/* The network interface of this node that fails worst; NIC_WELL: none does, or nobody knows. */
void around_find_nic(const struct diagnose *dg, uint64_t now_ns, struct nic_cause *cause);

/* May its progress thread run far from its GPU, or from each network interface?  Sets *out then. */
bool around_find_placement(const struct diagnose *dg, const struct process *p,
			   const struct comm *c, uint64_t now_ns, struct placement *out);

/*
 * The first error of that GPU ("": none) since then that names this process (0: any), or none.
 * Sets *xid only where there is one.
 */
bool around_find_xid(const struct diagnose *dg, const char *pci_bus_id, uint64_t since_ns,
		     int32_t pid, struct xid *xid);

#endif

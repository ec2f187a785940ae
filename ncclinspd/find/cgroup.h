/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FIND_CGROUP_H
#define NCCLINSPD_FIND_CGROUP_H

/* The container that a process is in, by the path of its control group. */

#include "reader/base/model.h"

/*
 * Reads the text of a /proc/<pid>/cgroup: `container` is the runtime's id of 64 digits, or
 * the name of a machine of systemd's or LXC's; `pod_uid` is Kubernetes'.  "": it says
 * none.  The outermost of several counts: those further in can be made by a process inside.
 */
void cgroup_parse(const char *text, char container[65], char pod_uid[37]);

/* Fills in p->container and p->pod_uid of process `pid`, `proc` being where procfs is. */
void cgroup_identify(struct process *p, const char *proc, pid_t pid);

#endif

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Slurm's Epilog, as root on each node when a job ends: the job's black boxes are kept
# where they are not pruned.  They may tell of other jobs of the node: root's only.
# It always succeeds, and soon: a failed epilog would drain the node.
#
#   NCCLINSP_STATE_DIR  of the daemon (/var/lib/ncclinsp)
#   NCCLINSP_KEEP_DIR   where to keep them, in a folder for each job (/var/log/ncclinsp)
#   NCCLINSP_KEEP_DAYS  for how long (30)
boxes=${NCCLINSP_STATE_DIR:-/var/lib/ncclinsp}/blackbox
keep=${NCCLINSP_KEEP_DIR:-/var/log/ncclinsp}
days=${NCCLINSP_KEEP_DAYS:-30}

# It is part of a path and of a pattern.
case $SLURM_JOB_ID in
'' | *[!0-9]*) exit 0 ;;
esac
[ -d "$boxes" ] || exit 0
[ ! -d "$keep" ] || find "$keep" -mindepth 1 -maxdepth 1 -type d -name '[1-9]*' \
	-mtime "+$days" -exec rm -rf {} +

# The daemon writes a second after a death; an older file has been there for long.
sleep 2
umask 077
for box in "$boxes"/blackbox-*.json; do
	grep -Eqs "\"scheduler\":\"slurm\",\"id\":\"$SLURM_JOB_ID\"" "$box" || continue
	mkdir -p "$keep/$SLURM_JOB_ID" && cp -p "$box" "$keep/$SLURM_JOB_ID/"
done
exit 0

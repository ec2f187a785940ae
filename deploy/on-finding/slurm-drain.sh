#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A critical finding that blames the node takes the node out of Slurm, with the finding as reason;
# jobs on it go on.  Nobody but you puts it back.  Needs jq, and a user who may drain nodes.
#
#   DRAIN_FOR  the kinds of findings that blame the node, not the job (died proxy_starved)
set -e
finding=$(cat)
is() { printf '%s' "$finding" | jq -e "$1" >/dev/null; }
is '.active and .severity == "critical"' || exit 0
kind=$(printf '%s' "$finding" | jq -r .kind)
case " ${DRAIN_FOR:-died proxy_starved} " in
*" $kind "*) ;;
*) exit 0 ;;
esac
reason=$(printf '%s' "$finding" | jq -r '"ncclinsp: \(.kind) of job \(.job // "-"): \(.text[0:200])"')
scontrol update NodeName="${SLURMD_NODENAME:-$(uname -n | cut -d. -f1)}" State=DRAIN Reason="$reason"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A critical finding becomes the condition NcclFinding of the node, as the node problem detector's
# are; it is False again when that finding is over.  Needs kubectl and jq, and a service account that
# may patch nodes/status.
#
#   NODE_NAME  as Kubernetes calls the node (its host name)
set -e
patch=$(jq -c --arg now "$(date -u +%Y-%m-%dT%H:%M:%SZ)" 'select(.severity == "critical") | {
	status: { conditions: [{
		type: "NcclFinding", status: (if .active then "True" else "False" end),
		reason: ((.verdict // .kind) | gsub("[^A-Za-z0-9_]"; "_")), message: .text,
		lastHeartbeatTime: $now, lastTransitionTime: $now
	}] } }')
[ -z "$patch" ] || kubectl patch node "${NODE_NAME:-$(uname -n)}" --subresource=status --type=strategic --patch "$patch"

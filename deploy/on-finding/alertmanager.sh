#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A finding becomes an alert of an alertmanager, without Prometheus between; when it is over, so is
# the alert.  Needs curl and jq.
#
#   ALERTMANAGER  its address (http://127.0.0.1:9093)
set -e
jq --arg node "$(uname -n)" '[{
	labels: ({ alertname: "NcclFinding", node: $node, kind, verdict, severity, job_id: .job, comm: .comm_name,
		finding: (.id | tostring) } | with_entries(select(.value))),
	annotations: { description: .text },
	startsAt: .since_at
} + if .active then {} else { endsAt: .until_at } end]' |
	curl -sSf -m 20 -H 'Content-Type: application/json' --data-binary @- \
		"${ALERTMANAGER:-http://127.0.0.1:9093}/api/v2/alerts"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What communicators that do nothing cost the daemon: so many processes with so many of
# them each, one operation on every one, then nothing.
#
#   bench/idle.sh [PROCESSES [COMMUNICATORS [SECONDS]]]		B=build
. "$(dirname "$0")/flood.sh"

processes=${1:-192} comms=${2:-1000} seconds=${3:-20}

# In clock ticks, user and system.
cpu_ticks() { awk '{ print $14 + $15 }' "/proc/$DAEMON_PID/stat"; }
rss_mib() { awk '/^VmRSS/ { printf "%.0f", $2 / 1024 }' "/proc/$DAEMON_PID/status"; }

start_flood "$processes" "$comms"
sleep 10	# the rest of what is looked at once

from_ns=$(date +%s%N) from=$(cpu_ticks)
sleep "$seconds"
ticks=$(($(cpu_ticks) - from)) took_ns=$(($(date +%s%N) - from_ns))
awk -v p="$processes" -v c="$comms" -v ticks="$ticks" -v hz="$(getconf CLK_TCK)" -v ns="$took_ns" \
	-v rss="$(rss_mib)" 'BEGIN { printf "%d processes, %d idle communicators each: " \
	"%.1f %% of a core, %d MiB\n", p, c, 100 * ticks / hz / (ns / 1e9), rss }'

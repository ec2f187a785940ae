#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Slurm's TaskProlog: what it prints as "export NAME=value" is in each task's environment.
# Who has chosen a profiler, or none, keeps that.
[ -n "${NCCL_PROFILER_PLUGIN+set}" ] || echo "export NCCL_PROFILER_PLUGIN=insp"

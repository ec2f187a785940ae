# SPDX-License-Identifier: Apache-2.0
"""The always-on inspector for NCCL: its programs and its plugin, where pip has put them."""
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def plugin_path():
    """The value of NCCL_PROFILER_PLUGIN for jobs that `ncclinsp run` does not start."""
    return os.path.join(_HERE, "lib", "libnccl-profiler-insp.so")


def _become(*program):
    os.execv(os.path.join(_HERE, *program), [program[-1]] + sys.argv[1:])


def main():
    """The command ncclinsp, in place of this process."""
    _become("bin", "ncclinsp")


def daemon():
    """The daemon ncclinspd, in place of this process."""
    _become("sbin", "ncclinspd")

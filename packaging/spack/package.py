# SPDX-License-Identifier: Apache-2.0
from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *


class Ncclinsp(MakefilePackage):
    """Always-on inspector for NCCL: a profiler plugin in the jobs, a daemon that reads what it
    writes from outside, and a command line that says which rank is late and what hangs."""

    # Not tried with a real Spack yet (docs/operations.md).  Built from a checkout:
    # `spack dev-build ncclinsp@main`, in the root of the tree.
    version("main")

    license("Apache-2.0")

    variant("probe", default=False, description="Build ncclinsp-probe, a program in the kernel (BPF)")

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("scdoc", type="build")
    depends_on("curl")
    depends_on("jansson")
    depends_on("ncurses")
    depends_on("zlib-api")
    depends_on("zstd")
    depends_on("libbpf@1:", when="+probe")
    depends_on("bpftool", type="build", when="+probe")
    depends_on("llvm+clang", type="build", when="+probe")

    conflicts("platform=darwin")
    conflicts("platform=windows")

    @property
    def places(self):
        """Everything in the prefix, and no more from this machine than what is declared."""
        places = ["PREFIX=%s" % self.prefix, "CONFDIR=%s/etc/ncclinsp" % self.prefix]
        return places if self.spec.satisfies("+probe") else places + ["PROBE="]

    def build(self, spec, prefix):
        make("installables", *self.places)

    def install(self, spec, prefix):
        make("install", *self.places)

    def setup_run_environment(self, env):
        env.set("NCCL_PROFILER_PLUGIN", self.prefix.lib.join("libnccl-profiler-insp.so"))

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Spack's recipe: what it runs, run.  Where there is no Spack, its words are played: the recipe is
# Python, and of Spack it calls make() alone.
. "$(dirname "$0")/lib.sh"
cd "$TOP" || exit 1

have python3 || skip_all "needs python3"
R=$TOP/packaging/spack/package.py
P=$T/prefix
# recipe STEP...: as `spack install` calls it, of the package without variants.
recipe() {
	python3 - "$R" "$P" "$B" "$@" <<-'PY'
		import json, subprocess, sys, types
		recipe, prefix, build, *steps = sys.argv[1:]
		said = {}
		def word(name):
		    return lambda *args, **more: said.setdefault(name, []).append([args, more])
		class Prefix(str):
		    lib = property(lambda self: Prefix(self + "/lib"))
		    join = lambda self, name: Prefix(self + "/" + name)
		class Spec:
		    satisfies = lambda self, what: False
		class Package:
		    spec, prefix = Spec(), Prefix(prefix)
		class Environment:
		    set = lambda self, name, value: print("%s=%s" % (name, value))
		words = types.ModuleType("spack.package")
		for name in "version license variant depends_on conflicts".split():
		    setattr(words, name, word(name))
		words.make = lambda *args: subprocess.check_call(["make", "-s", "--no-print-directory", "B=" + build, *args])
		makefile = types.ModuleType("makefile")
		makefile.MakefilePackage = Package
		sys.modules.update({"spack": types.ModuleType("spack"), "spack.package": words,
		    "spack_repo.builtin.build_systems.makefile": makefile})
		for parent in "spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems":
		    sys.modules[parent] = types.ModuleType(parent)
		scope = {}
		exec(compile(open(recipe).read(), recipe, "exec"), scope)
		package = scope["Ncclinsp"]()
		for step in steps:
		    if step == "depends":
		        print("\n".join(args[0].split("@")[0].split("+")[0] for args, more in said["depends_on"] if "when" not in more))
		    elif step == "environment":
		        package.setup_run_environment(Environment())
		    else:
		        getattr(package, step)(package.spec, package.prefix)
	PY
}
check "its build and its install run" recipe build install
check "all of it lies in the prefix" eval '[ -x "$P/bin/ncclinsp" ] && [ -x "$P/sbin/ncclinspd" ] && [ -s "$P/etc/ncclinsp/ncclinspd.conf" ]'
check "without what a variant has to ask for" test ! -e "$P/sbin/ncclinsp-probe"
check "a loaded package gives jobs the plugin" eval '[ -s "$P/lib/libnccl-profiler-insp.so" ] &&
	[ "$(recipe environment)" = "NCCL_PROFILER_PLUGIN=$P/lib/libnccl-profiler-insp.so" ]'
check "what lies there works" "$P/bin/ncclinsp" --version
# The tree's own libraries, by Spack's names.
wanted() { sed -n 's/^\(DAEMON\|CLI\)_LIBS *:= *//p' Makefile | tr ' ' '\n' | sed -e 's/^lib//' -e 's/^ncursesw$/ncurses/' -e 's/^zlib$/zlib-api/' | sort -u; }
check "it depends on what the tree links" test -z "$(comm -23 <(wanted) <(recipe depends | sort))"
if have spack; then
	check "Spack reads it" eval 'mkdir -p "$T/repo/packages/ncclinsp" && cp "$R" "$T/repo/packages/ncclinsp" &&
		printf "repo:\n  namespace: local\n" >"$T/repo/repo.yaml" && spack -C "$T" repo add "$T/repo" && spack -C "$T" info ncclinsp'
else
	skip "Spack reads it" "there is no spack"
fi
done_testing

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the Python wheel out of what was built.

usage: wheel.py VERSION DIRECTORY ncclinsp ncclinspd PLUGIN.so... MAN-PAGE...

Libraries that the programs load, the C library's own excepted, go with them, each with its
licence.  The platform in the wheel's name is the oldest C library that has every symbol of its
that a program or a library in the wheel asks for.  To the byte the same from the same input.
"""
import base64
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
C_LIBRARY = {"libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "libresolv.so.2"}
# A version that names no release but a feature of the loader, and the release that has it.
FEATURES = {"GLIBC_ABI_DT_RELR": (2, 36)}


def output_of(*command, **options):
    return subprocess.check_output(command, universal_newlines=True, **options)


def package_of(library):
    """The package of Debian or Ubuntu that a library is from, whichever of its paths is known there."""
    real = os.path.realpath(library)
    for path in library, real, real.replace("/usr/lib/", "/lib/", 1), "/usr" + library:
        try:
            return output_of("dpkg-query", "-S", path, stderr=subprocess.DEVNULL).split(":")[0]
        except (OSError, subprocess.CalledProcessError):
            continue
    sys.exit("wheel.py: %s would go into the wheel, and its licence is not known, as no package here "
             "has it; make the wheel on Debian or Ubuntu" % library)


def libraries_of(programs):
    """Name to path of what they load beside the C library."""
    found = {}
    for program in programs:
        for name, path in re.findall(r"^\t(\S+) => (\S+|not found)", output_of("ldd", program), re.M):
            if not os.path.isabs(path):
                sys.exit("wheel.py: %s needs %s, which is not here" % (program, name))
            found[name] = path
    return {name: path for name, path in found.items() if name not in C_LIBRARY}


def glibc_of(path):
    """The C library's version that has all that a file asks for."""
    needed = (2, 0)
    for section in re.split(r"^  required from ", output_of("objdump", "-p", path), flags=re.M)[1:]:
        for version in re.findall(r" (GLIBC_\S+)$", section, re.M):
            numbers = re.match(r"GLIBC_(\d+)\.(\d+)", version)
            if not numbers and version not in FEATURES:
                sys.exit("wheel.py: %s asks for %s, which no release promises" % (path, version))
            needed = max(needed, FEATURES.get(version) or tuple(map(int, numbers.groups())))
    return needed


def content_of(path):
    with open(path, "rb") as file:
        return file.read()


def main(version, directory, cli, daemon, *others):
    plugins = [file for file in others if file.endswith(".so")]
    pages = [file for file in others if file not in plugins]
    info = "ncclinsp-%s.dist-info" % version
    data = "ncclinsp-%s.data/data/share/man" % version
    files = {}      # path in the wheel: (mode, content)
    needed = (2, 0)
    libraries = libraries_of([cli, daemon, *plugins])
    with tempfile.TemporaryDirectory() as scratch:
        for folder, program in (("bin", cli), ("sbin", daemon), *(("lib", plugin) for plugin in plugins)):
            copy = shutil.copy(program, scratch)
            subprocess.check_call(["strip", copy])
            if program not in plugins:
                # An RPATH, not a RUNPATH: it holds for libraries of libraries too, and comes before
                # a job's LD_LIBRARY_PATH.
                subprocess.check_call(["patchelf", "--force-rpath", "--set-rpath", "$ORIGIN/../lib", copy])
            needed = max(needed, glibc_of(copy))
            files["ncclinsp/%s/%s" % (folder, os.path.basename(program))] = 0o755, content_of(copy)
    for name, path in libraries.items():
        needed = max(needed, glibc_of(path))
        package = package_of(path)
        files["ncclinsp/lib/" + name] = 0o755, content_of(path)
        files["%s/licenses/%s" % (info, package)] = 0o644, content_of("/usr/share/doc/%s/copyright" % package)
    for module in "__init__.py", "__main__.py":
        files["ncclinsp/" + module] = 0o644, content_of(os.path.join(HERE, "ncclinsp", module))
    for page in pages:
        files["%s/man%s/%s" % (data, page[-1], os.path.basename(page))] = 0o644, content_of(page)
    tag = "py3-none-manylinux_%d_%d_%s" % (*needed, platform.machine())
    texts = {
        "METADATA": "Metadata-Version: 2.1\nName: ncclinsp\nVersion: %s\nSummary: The always-on inspector for "
                    "NCCL\nLicense: Apache-2.0\nPlatform: linux\nRequires-Python: >=3.6\n" % version,
        "WHEEL": "Wheel-Version: 1.0\nGenerator: ncclinsp\nRoot-Is-Purelib: false\nTag: %s\n" % tag,
        "entry_points.txt": "[console_scripts]\nncclinsp = ncclinsp:main\nncclinspd = ncclinsp:daemon\n",
    }
    for name, text in texts.items():
        files["%s/%s" % (info, name)] = 0o644, text.encode()
    files[info + "/LICENSE"] = 0o644, content_of(os.path.join(HERE, "..", "..", "LICENSE"))
    record = "".join("%s,sha256=%s,%d\n" % (
        name, base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("="), len(content))
        for name, (_, content) in sorted(files.items()))
    files[info + "/RECORD"] = 0o644, (record + info + "/RECORD,,\n").encode()

    # A zip's times begin in 1980.
    made = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), 315532800))[:6]
    path = os.path.join(directory, "ncclinsp-%s-%s.whl" % (version, tag))
    with zipfile.ZipFile(path + ".tmp", "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, (mode, content) in sorted(files.items()):
            entry = zipfile.ZipInfo(name, made)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content)
    os.rename(path + ".tmp", path)
    print(path)


main(*sys.argv[1:])

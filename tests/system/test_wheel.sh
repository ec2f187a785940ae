#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Python wheel: made, installed into an environment of its own without an index, used, and
# taken out again.  LONG=1: made for older systems too, and used in one.
. "$(dirname "$0")/lib.sh"
cd "$TOP" || exit 1

have python3 patchelf || skip_all "needs python3 and patchelf"
python3 -m venv "$T/venv" >"$T/venv.log" 2>&1 || skip_all "needs python3-venv"
mkdir "$T/runtime" "$T/tmp"
export TMPDIR=$T/tmp XDG_RUNTIME_DIR=$T/runtime HOME=$T
unset NCCLINSP_SOCKET NCCLINSP_CONTROL NCCLINSP_SHM_DIR NCCL_PROFILER_PLUGIN PYTHONPATH
V=$T/venv
V_IS() { find "$V" ! -type d ! -name '*.pyc' ! -path '*/pip/*' | sort; }
before=$(V_IS)

# Beside another test, which may make it at the same moment.
make_wheel() { flock "$B/wheel.lock" make --no-print-directory -s B="$B" "$@" wheel; }
wheel() { echo "$B"/wheel/*.whl; }
pip_install() { "$V/bin/python" -m pip --disable-pip-version-check install --no-index --no-cache-dir "$@"; }

check "it is made" make_wheel
sums() { sha256sum "$(wheel)"; }
check "... twice the same, to the byte" eval 'one=$(sums) && make_wheel && [ "$one" = "$(sums)" ]'
check "it installs without an index" pip_install "$(wheel)"
check "its version is the tree's" test "$("$V/bin/ncclinsp" --version)" = "$("$B/ncclinsp" --version)"
check "python -m ncclinsp is the same command" test "$("$V/bin/python" -m ncclinsp --version)" = "$("$B/ncclinsp" --version)"
check "so is the daemon's" test "$("$V/bin/ncclinspd" --version)" = "$("$B/ncclinspd" --version)"
check "arguments and the exit code are the command's" exits 2 'no command' "$V/bin/ncclinsp" 'no such'
plugin=$("$V/bin/python" -c 'import ncclinsp; print(ncclinsp.plugin_path())')
check "ncclinsp.plugin_path() is the plugin" cmp <(nm -D "$plugin") <(nm -D "$PLUGIN")
check "manual pages are where man looks beside the environment's bin" test -s "$V/share/man/man1/ncclinsp-run.1"

# ---- what the name of the file promises --------------------------------------------------------

site=${plugin%/lib/*}
objects() { find "$site" -name '*.so*' -o -path '*/bin/*' -type f -o -path '*/sbin/*' -type f; }
tag_is_true() {
	local want most
	want=$(wheel) want=${want##*manylinux_} want=${want%_"$(uname -m)".whl}
	most=$(for one in $(objects); do objdump -T "$one"; done | grep -o 'GLIBC_[0-9.]*' | tr -d '()' | sort -Vu | tail -n 1)
	echo "$want $most"
	[ "GLIBC_${want/_/.}" = "$most" ]
}
check "the newest symbol of the C library is of the version that is promised" tag_is_true
C_LIBRARY='^(linux-vdso|/lib.*/ld-linux-|ld-linux-|lib(c|m|dl|rt|pthread|resolv)\.so)'
carried() { for one in "$site"/*bin/*; do env LD_LIBRARY_PATH="$T/foreign" ldd "$one"; done | sed 's/^[[:space:]]*//' | grep -Ev "$C_LIBRARY"; }
mkdir "$T/foreign"
printf 'int foreign;\n' | gcc -shared -Wl,-soname,libjansson.so.4 -o "$T/foreign/libjansson.so.4" -x c -
check "all other libraries are the wheel's own, whatever LD_LIBRARY_PATH has" eval \
	'carried | grep -q . && ! carried | grep -vF "=> $site/"'
licences() { ls "${site%/*}"/ncclinsp-*.dist-info/licenses/* | wc -l; }
check "with a licence for each package that they are from" test "$(licences)" -ge 5

# ---- a job, as a user who is not root ------------------------------------------------------------

cat >"$T/job.scn" <<-'SCN'
	nodes 1
	processes 2
	comm dp ranks 0-1 channels 2
	loop 200
		compute 5ms
		AllReduce dp 64Ki float32
	end
SCN
USER_IS=()
if [ "$(id -u)" -eq 0 ]; then
	chmod 755 "$T"
	chown -R 4711 "$T/tmp" "$T/runtime"
	setpriv --reuid=4711 --clear-groups test -x "$B/nccl-sim" -a -r "$plugin" && USER_IS=(setpriv --reuid=4711 --regid=4711 --clear-groups)
fi
job() { "${USER_IS[@]}" "$@" -- "$B/nccl-sim" --plugin "$plugin" "$T/job.scn"; }
check "ncclinsp run tells of a job" exits 0 'AllReduce' job "$V/bin/ncclinsp" run
check "so does python -m ncclinsp run" exits 0 'AllReduce' job "$V/bin/python" -m ncclinsp run
inside() {
	"${USER_IS[@]}" "$V/bin/ncclinsp" run -q -- sh -c 'echo "$NCCL_PROFILER_PLUGIN"; for p in /proc/[0-9]*; do readlink "$p/exe"; done 2>/dev/null' >"$T/inside"
	grep -qx "$plugin" "$T/inside" && grep -qx "$site/sbin/ncclinspd" "$T/inside" || { cat "$T/inside"; return 1; }
}
check "with the wheel's plugin and the wheel's daemon" inside

# ---- older systems ---------------------------------------------------------------------------------

# older SUITE: in a tree of that release, installed there, as a user.
older() {
	local tree=$T/tree wheel
	wheel=$(wheel)
	mmdebstrap --quiet --variant=minbase --include=python3-venv "$1" "$tree" || return
	cp "$wheel" "$tree/root"
	unshare -m env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$tree" sh -c "python3 -m venv /venv && /venv/bin/pip install --no-index /root/${wheel##*/} &&
		mount -t proc proc /proc && mount -t tmpfs tmpfs /dev/shm && /venv/bin/ncclinsp run -- /venv/bin/ncclinsp doctor" | tee "$T/old"
	grep -q '^ok  *flow' "$T/old"
}
if [ -n "${LONG-}" ]; then
	check "for an older system it is made in one" make_wheel SUITE=bullseye
	check "it installs and records in one" older bullseye
	check "it installs here as well" pip_install --force-reinstall "$(wheel)"
	check "... and tells of a job" exits 0 'AllReduce' job "$V/bin/ncclinsp" run
	check "... by symbols as old as is promised" tag_is_true
fi

check "it is taken out" "$V/bin/python" -m pip --disable-pip-version-check uninstall -y ncclinsp
check "... and nothing is left" diff <(echo "$before") <(V_IS)
check "nor of the jobs" eval '! find "$T/tmp" "$T/runtime" -mindepth 1 -name "ncclinsp*" | grep .'
done_testing

# SPDX-License-Identifier: Apache-2.0
# Nodes on one machine, sourced behind lib.sh: each has a name and a daemon of its own, and a real
# ssh reaches a real ssh server on it by that name.

nodes_can_be() {
	[ "$(id -u)" -eq 0 ] && have ssh dropbear dropbearkey && unshare --mount --uts true 2>/dev/null
}

# nodes_start N [option...]: node00, node01, ... with these options of the daemon.
nodes_start() {
	local n=$1 i
	shift
	ssh_prepare
	for ((i = 0; i < n; i++)); do
		mkdir -p "$SHM/$i"
		node_daemon "$i" "$@"
		node_server "$i"
	done
	for ((i = 0; i < n; i++)); do
		wait_until 30 node_answers "$i" || return 1
	done
}

# How a node is called.
node() { printf 'node%02d' "$1"; }

# The server takes the key of $T alone, whatever the machine's own root has.
ssh_prepare() {
	mkdir -p "$T/home/.ssh" && chmod 700 "$T/home" "$T/home/.ssh"
	ssh-keygen -q -t ed25519 -N '' -f "$T/key"
	cp "$T/key.pub" "$T/home/.ssh/authorized_keys"
	dropbearkey -t ed25519 -f "$T/hostkey" >/dev/null 2>&1
	sed "s|^root:.*|root:x:0:0:root:$T/home:/bin/bash|" /etc/passwd >"$T/passwd"
	cat >"$T/ssh" <<-END
		Host *
			User root
			IdentityFile $T/key
			IdentitiesOnly yes
			StrictHostKeyChecking no
			UserKnownHostsFile /dev/null
			LogLevel ERROR
	END
	export NCCLINSP_SSH="ssh -F $T/ssh"
}

# node_daemon I [option...], in the clock of NODE_CLOCK (unshare's options).
node_daemon() {
	local name
	name=$(node "$1")
	shift
	NCCLINSP_CONTROL=$T/control.$name unshare --uts ${NODE_CLOCK-} sh -c 'hostname "$0"; exec "$@"' "$name" \
		"$B/ncclinspd" --foreground --socket "$T/$name.sock" --shm-dir "$SHM/$((10#${name#node}))" \
		--state-dir "$T/state.$name" --auto-thrift no --containers no --snapshot-interval 0 "$@" 2>>"$T/$name.log" &
	started+=("$!")
}

# What is run there sees its name and its daemon.
node_server() {
	local name port
	name=$(node "$1")
	until port=$(shuf -i 20000-32000 -n 1) && ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
	printf 'Host %s\n\tHostName 127.0.0.1\n\tPort %s\n' "$name" "$port" >>"$T/ssh"
	unshare --mount --uts sh -c 'mount --bind "$1" /etc/passwd; hostname "$0"; shift; exec "$@"' "$name" "$T/passwd" \
		dropbear -F -E -s -p "127.0.0.1:$port" -r "$T/hostkey" -c \
		"PATH=$B:\$PATH NCCLINSP_SOCKET=$T/$name.sock sh -c \"\$SSH_ORIGINAL_COMMAND\"" 2>>"$T/server.log" &
	started+=("$!")
}

node_answers() { curl -sf --unix-socket "$T/$(node "$1").sock" http://ncclinspd/v1/status -o /dev/null; }

#!/usr/bin/env bash
# engine.sh: throw-away Docker engines for tests and demonstrations.
#
#   engine.sh start debian|moby [--dir DIR] [-- DOCKERD-FLAG…]   prints its DOCKER_HOST
#   engine.sh restart [--dir DIR]       ends it in order, or finds it dead, and starts it on the same data
#   engine.sh kill    [--dir DIR]       SIGKILL for dockerd and containerd; containers live on, as in a crash
#   engine.sh stop    [--dir DIR]       ends it and removes every trace of it
#   engine.sh enter   [--dir DIR] CMD…  runs CMD in the engine's network, where its published ports are
#   engine.sh build   moby|cli|compose  builds into the cache; prints the folder
#
# debian  the distribution's docker.io: 20.10, overlay2
# moby    engine 29 with the containerd image store, built from Go modules
#
# DIR holds everything of an engine; without --dir it is a new temporary folder (start), or the one
# that DOCKER_HOST points into. Several engines run side by side, next to one of the machine's own:
# each has its own containerd, its own identity, and its own network namespace.
#
# In that namespace (measured with kernel 6.18, cgroup v1, iptables 1.8.9 on nf_tables, both engines) all works
# with no flag at all: none, host, container:NAME, the default bridge, user-defined bridges with aliases, the
# engine's DNS, static IPv4 and IPv6 addresses, several networks at once, published ports on 127.0.0.1, 0.0.0.0
# and [::]. The machine keeps its own interfaces and iptables, so two engines can use the same subnets and ports,
# and a crash leaves none behind. "host" is the engine's namespace: look at a published port from a container with
# --network host, or with engine.sh enter. There is no way out to the world. macvlan and ipvlan need a parent.
#
# --userns-remap default works on both (moby then falls back to overlay2). Where the machine lacks a capability
# (CAP_SYS_RESOURCE in some sandboxes), Debian's runc cannot start --privileged containers; the newer one can.
# A rootless engine runs with rootlesskit, slirp4netns, uidmap and a /dev/net/tun that its user may open; with
# cgroup v1 it has no cgroups, so it cannot pause. With cgroup v1, --blkio-weight is dropped with a warning; limits
# on memory, CPU, pids and the rate of I/O work.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

moby_dir=$cache/engine/moby-$moby_version-containerd-$containerd_version-runc-$runc_version
cli_dir=$cache/cli/$docker_cli_version
compose_dir=$cache/compose/$compose_version

build_moby() {
	[[ ! -e $moby_dir/.complete ]] || return 0
	install_packages gcc libc6-dev libseccomp-dev pkg-config
	say "building moby $moby_version, containerd $containerd_version, runc $runc_version"
	(
		cd / # away from any go.mod
		export GOBIN=$moby_dir GOFLAGS=-trimpath CGO_ENABLED=1
		go install -ldflags "-X github.com/moby/moby/v2/dockerversion.Version=${moby_version#v}" \
			"github.com/moby/moby/v2/cmd/dockerd@$moby_version" "github.com/moby/moby/v2/cmd/docker-proxy@$moby_version"
		go install github.com/containerd/containerd/v2/cmd/{containerd,containerd-shim-runc-v2}"@$containerd_version"
		go install -tags seccomp "github.com/opencontainers/runc@$runc_version"
	) >&2
	touch "$moby_dir/.complete"
}

# Docker's CLI has no go.mod: vendor.mod and vendor.sum are the same under other names.
# Engine 29 refuses the CLI of Debian 12, which speaks too old a version of the API.
build_cli() {
	[[ ! -e $cli_dir/docker ]] || return 0
	say "building Docker CLI $docker_cli_version"
	local source
	source=$(mktemp -d)
	(
		cd "$source"
		GOFLAGS='' go mod download "github.com/docker/cli@$docker_cli_version+incompatible"
		cp -r --no-preserve=mode "$(go env GOMODCACHE)/github.com/docker/cli@$docker_cli_version+incompatible/." .
		rm -rf vendor # a module that comes without go.mod may have the folder, whole or not
		mv vendor.mod go.mod
		mv vendor.sum go.sum
		CGO_ENABLED=0 GOFLAGS='-mod=readonly -trimpath' go build -o docker \
			-ldflags "-X github.com/docker/cli/cli/version.Version=${docker_cli_version#v}" ./cmd/docker
		mkdir -p "$cli_dir"
		mv docker "$cli_dir/"
	) >&2
	rm -rf "$source"
}

# Compose is a plugin of the CLI, docker-compose.
build_compose() {
	[[ ! -e $compose_dir/docker-compose ]] || return 0
	say "building Docker Compose $compose_version"
	(
		cd / # away from any go.mod
		GOBIN=$compose_dir GOFLAGS=-trimpath CGO_ENABLED=0 go install "github.com/docker/compose/v5/cmd@$compose_version"
		mv "$compose_dir/cmd" "$compose_dir/docker-compose"
	) >&2
}

# alive FILE tells whether the process that FILE names runs and is of this engine, not of a later one with its number.
alive() {
	local pid
	pid=$(cat "$dir/$1" 2>/dev/null) && grep -qzF -- "$dir/" "/proc/$pid/cmdline" 2>/dev/null
}

dead() { ! alive "$1"; }

answers() { "$docker" --host "unix://$dir/docker.sock" version >/dev/null 2>&1; }

# A process that is just being replaced by a program has no command line for a moment, and looks dead.
answers_or_dies() { answers || { dead dockerd.pid && sleep 0.2 && dead dockerd.pid; }; }

# end FILE SIGNAL… signals the process that FILE names and waits until it is gone.
end() {
	local file=$1 signal
	shift
	for signal in "$@"; do
		alive "$file" || break
		kill -s "$signal" "$(cat "$dir/$file")" 2>/dev/null || true
		poll 300 dead "$file" && break
	done
	rm -f "$dir/$file"
}

# launch PIDFILE LOG CMD… starts a daemon in the engine's network, out of reach of this terminal's Ctrl-C.
launch() {
	local pidfile=$1 log=$2
	setsid nsenter --net="$dir/net" "${@:3}" </dev/null >>"$dir/$log" 2>&1 &
	echo $! >"$dir/$pidfile"
	poll 20 alive "$pidfile" || die "$3 ended at once: $(tail -n 5 "$dir/$log")"
}

# up starts the daemons that are not running and waits until the engine answers.
up() {
	local kind flags
	kind=$(cat "$dir/kind")
	mapfile -t flags <"$dir/flags"
	prepare "$kind"
	if dead containerd.pid; then
		forget_ended
		rm -f "$dir/containerd.sock" # one that was killed has left it, and it would be taken for the next one's
		launch containerd.pid containerd.log containerd --config "$dir/containerd.toml"
		poll 300 test -S "$dir/containerd.sock" || die "containerd does not answer: $(tail -n 5 "$dir/containerd.log")"
	fi
	# Where process 1 is slow to reap, dockerd takes the zombie of its predecessor for a living engine.
	dead dockerd.pid && rm -f "$dir/docker.pid"
	launch dockerd.pid dockerd.log dockerd --host "unix://$dir/docker.sock" --containerd "$dir/containerd.sock" \
		--data-root "$dir/data" --exec-root "$dir/exec" --pidfile "$dir/docker.pid" --config-file "$dir/daemon.json" "${flags[@]}"
	poll 600 answers_or_dies || true
	answers || die "the engine does not answer: $(tail -n 5 "$dir/dockerd.log")"
}

# prepare KIND sees to the engine's programs and puts them first in PATH.
prepare() {
	case $1 in
	debian)
		install_packages docker.io iptables iproute2
		PATH=/usr/sbin:/usr/bin:/sbin:/bin
		docker=/usr/bin/docker
		;;
	moby)
		install_packages iptables iproute2 tini
		locked moby build_moby
		locked cli build_cli
		ln -sf "$(command -v tini-static)" "$moby_dir/docker-init"
		PATH=$moby_dir:/usr/sbin:/usr/bin:/sbin:/bin
		docker=$cli_dir/docker
		;;
	*) die "no such engine: $1 (debian, moby)" ;;
	esac
}

start() {
	local kind=$1
	shift
	((EUID == 0)) || die "an engine needs root"
	[[ ! -e $dir/kind ]] || die "there is an engine in $dir"
	# The longest socket path below DIR has 37 bytes more, and 107 are all the kernel takes.
	((${#dir} <= 70)) || die "too long a path for sockets: $dir"
	prepare "$kind"
	mkdir -p "$dir"
	chmod 0711 "$dir" # the root of a user namespace must get through
	printf '%s\n' "$@" >"$dir/flags"
	(($#)) || : >"$dir/flags"
	# An engine 20.10 has its identity from a key in /etc unless told otherwise.
	local config='{}'
	[[ $(dockerd --version) != *' 20.10.'* ]] || config="{\"deprecated-key-path\": \"$dir/key.json\"}"
	echo "$config" >"$dir/daemon.json"
	cat >"$dir/containerd.toml" <<-TOML
		version = 2
		root = "$dir/containerd"
		state = "$dir/exec/containerd"
		disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime"]
		[grpc]
		  address = "$dir/containerd.sock"
	TOML
	touch "$dir/net"
	unshare --net="$dir/net" ip link set lo up
	echo "$kind" >"$dir/kind"
	trap stop EXIT
	up
	trap - EXIT
	echo "unix://$dir/docker.sock"
}

# shims prints the processes that hold this engine's containers.
shims() { grep -lzxF -- "$dir/containerd.sock" /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3; }

# forget_ended ends the shims whose container has ended, as a reboot would. containerd 1.6, killed while a container ends, takes
# such an idle shim for a task that runs, and never starts the container again ("task ...: already exists").
forget_ended() {
	local shim children
	for shim in $(shims); do
		children=$(cat "/proc/$shim/task/"*/children 2>/dev/null) || true
		[[ -n ${children// /} ]] || kill -s KILL "$shim" 2>/dev/null || true
	done
}

# reap ends containers that lost their engine.
reap() {
	local shim children
	for shim in $(shims); do
		while children=$(cat "/proc/$shim/task/"*/children 2>/dev/null) && [[ -n ${children// /} ]]; do
			# shellcheck disable=SC2086 # a list of numbers
			kill -s KILL $children 2>/dev/null || true
			sleep 0.05
		done
		kill -s KILL "$shim" 2>/dev/null || true
	done
	# A shim that is killed leaves its socket in /run/containerd/s; only these files know its name.
	find "$dir/exec/containerd" \( -name address -o -name bootstrap.json \) \
		-exec grep -oh 'unix://[^"]*' {} + 2>/dev/null | cut -c 8- | xargs -r rm -f
}

stop() {
	end dockerd.pid TERM KILL
	end containerd.pid TERM KILL
	reap
	awk -v dir="$dir/" 'index($2, dir) == 1 { print $2 }' /proc/mounts | sort -r | xargs -r umount --lazy
	rm -rf "$dir"
}

# parse sets dir and arguments from what follows the verb.
parse() {
	dir=''
	arguments=()
	while (($#)); do
		case $1 in
		--dir)
			(($# > 1)) || die "--dir needs a folder"
			dir=$(realpath -m "$2")
			shift
			;;
		--)
			arguments+=("${@:2}")
			return
			;;
		*) arguments+=("$1") ;;
		esac
		shift
	done
}

usage() {
	sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2
	exit 125
}

(($#)) || usage
verb=$1
shift
parse "$@"
case $verb in
start)
	((${#arguments[@]})) || usage
	[[ -n $dir ]] || dir=$(mktemp -d "${TMPDIR:-/tmp}/engine-XXXXXX")
	start "${arguments[@]}"
	exit
	;;
build)
	case ${arguments[*]} in
	moby)
		locked moby build_moby
		echo "$moby_dir"
		;;
	cli)
		locked cli build_cli
		echo "$cli_dir"
		;;
	compose)
		locked compose build_compose
		echo "$compose_dir"
		;;
	*) usage ;;
	esac
	exit
	;;
esac

if [[ -z $dir ]]; then
	[[ ${DOCKER_HOST-} == unix://*/docker.sock ]] || die "which engine? Give --dir DIR, or set DOCKER_HOST"
	dir=$(dirname "${DOCKER_HOST#unix://}")
fi
[[ -e $dir/kind ]] || die "no engine in $dir"
case $verb in
restart)
	end dockerd.pid TERM KILL
	end containerd.pid TERM KILL
	up
	;;
kill)
	end dockerd.pid KILL
	end containerd.pid KILL
	;;
stop) stop ;;
enter) nsenter --net="$dir/net" "${arguments[@]}" ;;
*) usage ;;
esac

#!/bin/sh
# install.sh: puts the Docker CLI plugin "docker snapshot" in place. It takes the program for this system from a release,
# if it lies in one, and otherwise builds it with Go.
#
#   ./install.sh                 for you: $DOCKER_CONFIG/cli-plugins, or ~/.docker/cli-plugins
#   ./install.sh --system        for everybody: /usr/local/lib/docker/cli-plugins
#   ./install.sh --uninstall     removes it again; with --system, for everybody. What it has made on engines stays:
#                                "docker snapshot recover --purge" removes that, and must come first
#   ./install.sh --release DIR [OS/ARCHITECTURE…]
#                                makes a release there: programs for all systems, or for these, with their checksums
#   ./install.sh --workers       only makes what "go build -tags workers" builds in: workers for Linux engines
#   ./install.sh --demo          shows it at work on a container of its own, and leaves nothing behind
#
# The demonstration uses the engine that docker talks to. Where none answers, on Debian and Ubuntu as root,
# it installs the distribution's and starts a private one for as long as it takes.
set -eu

config=${DOCKER_CONFIG:-${HOME:?}/.docker}
case $config in
/*) ;;
*) config=$PWD/$config && export DOCKER_CONFIG="$config" ;; # it is meant from here
esac
here=$PWD
cd "$(dirname "$0")"
system=/usr/local/lib/docker/cli-plugins

say() { printf '%s\n' "$*" >&2; }

die() {
	say "install.sh: $*"
	exit 1
}

usage() {
	sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
	exit 125
}

need_go() {
	command -v go >/dev/null || die "Go is missing. Install Go $(sed -n 's/^go //p' go.mod) or newer and put its bin folder into PATH."
}

# build_workers builds what reads and writes volumes on engines, whose machines may be of another architecture, or
# of another system than this one.
build_workers() {
	for architecture in amd64 arm64; do
		worker=volumebackup/workers/linux-$architecture
		mkdir -p volumebackup/workers
		CGO_ENABLED=0 GOOS=linux GOARCH=$architecture go build -trimpath -ldflags '-s -w' \
			-o "$worker.$$" ./volumebackup/worker/standalone
		go run ./volumebackup/workerimage/pack "$architecture" "$worker.$$" >"$worker.tar.gz.$$"
		rm "$worker.$$"
		mv "$worker.tar.gz.$$" "$worker.tar.gz"
	done
}

# compile FILE builds the plugin there, for the system of GOOS and GOARCH, or for this one.
compile() {
	version=$(git describe --tags --always --dirty 2>/dev/null || echo unversioned)
	CGO_ENABLED=0 go build -trimpath -tags workers -o "$1" \
		-ldflags "-s -w -X github.com/cua-snapshot/docker-snapshot/plugin/metadata.version=$version" .
}

sums() { if command -v sha256sum >/dev/null; then sha256sum "$@"; else shasum -a 256 "$@"; fi; }

# release DIR [OS/ARCHITECTURE…] makes a folder that can be given to people without Go.
release() {
	case $1 in
	/*) into=$1 ;;
	*) into=$here/$1 ;;
	esac
	shift
	[ $# -gt 0 ] || set -- linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
	need_go
	build_workers
	mkdir -p "$into"
	for target; do
		os=${target%/*} architecture=${target#*/} suffix=
		[ "$os" != windows ] || suffix=.exe
		(export GOOS="$os" GOARCH="$architecture" && compile "$into/docker-snapshot-$os-$architecture$suffix")
	done
	cp install.sh install.ps1 LICENSE "$into"
	(cd "$into" && sums docker-snapshot-* >SHA256SUMS)
}

# released prints what the program for this system is called in a release.
released() {
	os=$(uname -s | tr '[:upper:]' '[:lower:]')
	case $(uname -m) in
	x86_64 | amd64) echo "docker-snapshot-$os-amd64" ;;
	aarch64 | arm64) echo "docker-snapshot-$os-arm64" ;;
	*) echo "docker-snapshot-$os-$(uname -m)" ;;
	esac
}

# make_plugin FILE puts the plugin there: the one of the release that this script lies in, or one that it builds.
make_plugin() {
	if [ -e SHA256SUMS ]; then
		program=$(released)
		[ -e "$program" ] || die "this release has no $program"
		grep " [ *]$program\$" SHA256SUMS | sums -c - >/dev/null 2>&1 || die "$program is not what SHA256SUMS says: it is damaged, or incomplete"
		cp "$program" "$1"
		chmod 755 "$1"
		return
	fi
	need_go
	build_workers
	compile "$1"
}

# install_into DIR replaces the plugin there in one step: a docker that starts meanwhile finds the old one or the new one.
install_into() {
	mkdir -p "$1"
	new=$1/.docker-snapshot.$$
	trap 'rm -f "$new"' EXIT
	make_plugin "$new"
	mv -f "$new" "$1/docker-snapshot"
}

install_plugin() {
	command -v docker >/dev/null ||
		die "the Docker CLI is missing. Install docker-ce-cli, on Debian or Ubuntu docker.io, or Docker Desktop."
	install_into "$1"
	docker snapshot version || die "docker does not find the plugin in $1"
	[ "$(docker snapshot version)" = "$("$1/docker-snapshot" version)" ] ||
		die "docker finds another docker-snapshot before $1/docker-snapshot: look into $config/cli-plugins"
	say "Installed as $1/docker-snapshot. Begin with: docker snapshot --help"
}

uninstall_plugin() {
	[ -e "$1/docker-snapshot" ] || die "there is no $1/docker-snapshot"
	rm -f "$1/docker-snapshot"
	say "Removed $1/docker-snapshot. On each engine that you used it with these stay, and your snapshots with them:"
	say "  images cua-snapshot/*, volumes cua-snapshots and cua-snapshot-key, and stores that you named yourself"
	say "\"docker snapshot recover --purge\" removes them for good: install it again to use that. Or by hand:"
	say "  docker image rm --force \$(docker image ls --quiet --filter 'reference=cua-snapshot/*')"
	say "  docker volume rm cua-snapshots cua-snapshot-key"
}

# engine_answers tells whether docker reaches an engine that understands it.
engine_answers() { command -v docker >/dev/null && docker version >/dev/null 2>&1; }

# find_engine sees that docker reaches an engine.
find_engine() {
	engine_answers && return
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		command -v docker >/dev/null || die "the Docker CLI is missing, and an engine. Install Docker; or, on Debian or Ubuntu, run this as root."
		die "no engine answers. Start Docker; or, on Debian or Ubuntu, run this as root and it will bring its own."
	fi
	unset DOCKER_CONTEXT
	say "No engine answers: starting a private one."
	DOCKER_HOST=$(e2e/engine.sh start debian)
	export DOCKER_HOST
	private=yes
}

present() { docker image inspect "$1" >/dev/null 2>&1; }

# find_image NAME sees that the engine has the image; those that this brings are removed in the end.
find_image() {
	present "$1" && return
	brought="$brought $1"
	case $1 in
	test/*) e2e/image.sh "${1#test/}" ;;
	*) docker pull --quiet "$1" >/dev/null 2>&1 ;;
	esac
}

# find_postgres finds PostgreSQL: what the engine has, what it can pull, or what can be made of Debian's package.
find_postgres() {
	for image in postgres postgres:alpine test/postgres; do present "$image" && return; done
	image=postgres:alpine
	[ -z "$private" ] && find_image "$image" && return
	image=test/postgres
	[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && [ "$(docker version --format '{{.Server.Os}}')" = linux ] || return
	say "Making an image of PostgreSQL. This takes a minute or two, the first time."
	find_image "$image"
}

find_busybox() {
	image=busybox
	present busybox || { [ -z "$private" ] && find_image busybox; } || {
		brought="$brought busybox test/app"
		e2e/image.sh busybox
	}
}

tell() { printf '\n%s\n' "$*"; }

# show prints a command as one would type it, and runs it. Some are meant to fail.
show() {
	tell "\$ $1"
	eval "$1" || true
}

# workers lists the images that the plugin makes of itself.
workers() { docker image ls --quiet --no-trunc cua-snapshot/worker 2>/dev/null; }

clean_up() {
	trap '' INT TERM
	if engine_answers; then
		volumes=$(docker inspect --format '{{range .Mounts}}{{println .Name}}{{end}}' "$name" 2>/dev/null) || true
		docker rm --force "$name" >/dev/null 2>&1 || true
		for snapshot in $(docker snapshot ls --quiet "$name" 2>/dev/null); do
			docker snapshot rm "$snapshot" >/dev/null || true
		done
		for volume in $volumes "$name-store"; do
			docker volume rm "$volume" >/dev/null 2>&1 || true
		done
		for image in $brought $(workers | grep -vxF "$known_workers"); do
			docker image rm "$image" >/dev/null 2>&1 || true
		done
	fi
	[ -z "$private" ] || e2e/engine.sh stop
	rm -rf "$scratch"
}

# wait_until COMMAND waits for a minute at most.
wait_until() {
	tries=60
	until eval "$1" >/dev/null 2>&1; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || die "this did not happen: $1"
		sleep 1
	done
}

# story RUN READY FILL LOSE LOOK is what happens to a container; each is a command, and the last one prints 42.
story() {
	tell "A container with something to lose, in a volume:"
	show "$1"
	wait_until "$2"
	show "$3"
	show "docker snapshot create --message 'before the accident' $name before"
	show "$4"
	show "$5"
	tell "And back, in place:"
	show "docker snapshot ls $name"
	show "docker snapshot restore --replace --force $name:before"
	wait_until "$2"
	show "$5"
	eval "$5" | grep -q 42 || die "the demonstration did not work"
}

demo() {
	name=demo-$$ private='' brought='' known_workers=none
	# A configuration and a store of its own: nothing is installed, and the contexts are those that you have.
	scratch=$(mktemp -d)
	export DOCKER_CONFIG="$scratch" DOCKER_SNAPSHOT_STORE="$name-store"
	for file in config.json contexts; do
		[ ! -e "$config/$file" ] || cp -R "$config/$file" "$DOCKER_CONFIG/"
	done
	trap clean_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	find_engine
	known_workers=$(workers | grep . || echo none)
	mkdir "$DOCKER_CONFIG/cli-plugins"
	make_plugin "$DOCKER_CONFIG/cli-plugins/docker-snapshot"

	if find_postgres; then
		psql="docker exec $name psql --username postgres"
		story "docker run --detach --name $name --stop-signal SIGINT --env POSTGRES_HOST_AUTH_METHOD=trust $image" \
			"docker exec $name pg_isready --host 127.0.0.1" \
			"$psql --command 'create table orders as select * from generate_series(1, 42) as id'" \
			"$psql --command 'drop table orders'" \
			"$psql --command 'select count(*) from orders'"
	else
		say "PostgreSQL is out of reach here: this will be a small demonstration."
		find_busybox
		story "docker run --detach --name $name --volume /data $image sh -c 'trap exit TERM; while :; do sleep 1; done'" true \
			"docker exec $name sh -c 'echo 42 orders >/data/orders'" \
			"docker exec $name rm /data/orders" \
			"docker exec $name cat /data/orders"
	fi
	tell "That was all, and it is cleaned up now. To install the plugin: ./install.sh"
}

if [ "${1-}" = --release ]; then
	shift
	[ $# -gt 0 ] || usage
	release "$@"
	exit
fi
verb=install_plugin target=$config/cli-plugins
for argument; do
	case $argument in
	--system) target=$system ;;
	--uninstall) verb=uninstall_plugin ;;
	--workers) verb=build_workers ;;
	--demo) verb=demo ;;
	*) usage ;;
	esac
done
"$verb" "$target"

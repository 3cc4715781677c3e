#!/usr/bin/env bash
# demo.sh: shows docker snapshot at work on a container of its own, and leaves nothing behind.
#
#   demo.sh
#
# It builds the plugin of this checkout, which needs Go, into a temporary Docker configuration: nothing is installed.
# It uses the engine that docker talks to. If none answers, on Debian and Ubuntu as root, it installs the
# distribution's Docker and starts a private engine until it is done.
set -euo pipefail
config=${DOCKER_CONFIG:-${HOME:?}/.docker}
[[ $config == /* ]] || config=$PWD/$config
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$repository"

(($# == 0)) || {
	sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
	exit 125
}

name=demo-$$   # of the container; everything else that this makes begins with it
private=''     # "yes" once the script has started an engine of its own
brought=()     # images that the engine did not have before
old_workers='' # the worker images that it did have

# engine_answers tells whether docker reaches an engine that understands it.
engine_answers() { command -v docker >/dev/null && docker version >/dev/null 2>&1; }

# find_engine makes sure that docker reaches an engine.
find_engine() {
	if engine_answers; then
		return
	fi
	if ((EUID != 0)) || ! command -v apt-get >/dev/null; then
		command -v docker >/dev/null ||
			die "the Docker CLI is missing, and an engine. Install Docker; or, on Debian or Ubuntu, run this as root."
		die "no engine answers. Start Docker; or, on Debian or Ubuntu, run this as root and it will bring its own."
	fi
	unset DOCKER_CONTEXT
	say "No engine answers: starting a private one."
	DOCKER_HOST=$(e2e/engine.sh start debian)
	export DOCKER_HOST
	private=yes
}

has_image() { docker image inspect "$1" >/dev/null 2>&1; }

# bring_image NAME pulls or makes an image that the engine does not have; clean_up removes it again.
bring_image() {
	brought+=("$1")
	case $1 in
	test/*) e2e/image.sh "${1#test/}" ;;
	*) docker pull --quiet "$1" >/dev/null 2>&1 ;;
	esac
}

# find_postgres sets image to PostgreSQL: one that the engine has, can pull, or that is made from Debian's package.
find_postgres() {
	for image in postgres postgres:alpine test/postgres; do
		if has_image "$image"; then return; fi
	done
	image=postgres:alpine
	if [[ -z $private ]] && bring_image "$image"; then return; fi
	image=test/postgres
	((EUID == 0)) || return
	command -v apt-get >/dev/null || return
	[[ $(docker version --format '{{.Server.Os}}') == linux ]] || return
	say "Making an image of PostgreSQL. This takes a minute or two, the first time."
	bring_image "$image"
}

# find_busybox sets image to busybox, likewise.
find_busybox() {
	image=busybox
	if has_image "$image"; then return; fi
	if [[ -z $private ]] && bring_image "$image"; then return; fi
	brought+=(busybox test/app)
	e2e/image.sh busybox
}

tell() { printf '\n%s\n' "$*"; }

# show prints a command as one would type it, and runs it. Some are meant to fail.
show() {
	tell "\$ $1"
	eval "$1" || true
}

# list_workers lists the worker images that the plugin makes.
list_workers() { docker image ls --quiet --no-trunc cua-snapshot/worker 2>/dev/null; }

clean_up() {
	trap '' INT TERM
	if engine_answers; then
		local volumes='' volume snapshot image
		volumes=$(docker inspect --format '{{range .Mounts}}{{println .Name}}{{end}}' "$name" 2>/dev/null) || true
		docker rm --force "$name" >/dev/null 2>&1 || true
		for snapshot in $(docker snapshot ls --quiet "$name" 2>/dev/null); do
			docker snapshot rm "$snapshot" >/dev/null || true
		done
		for volume in $volumes "$name-store"; do
			docker volume rm "$volume" >/dev/null 2>&1 || true
		done
		for image in ${brought[@]+"${brought[@]}"} $(list_workers | grep -vxF "${old_workers:-none}"); do
			docker image rm "$image" >/dev/null 2>&1 || true
		done
	fi
	[[ -z $private ]] || e2e/engine.sh stop
	rm -rf "$scratch"
}

# wait_until COMMAND waits for a minute at most.
wait_until() { poll 600 eval "$1 >/dev/null 2>&1" || die "this did not happen: $1"; }

# story RUN READY FILL LOSE LOOK tells what happens to a container. Each is a command; LOOK prints 42.
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
	[[ $(eval "$5") == *42* ]] || die "the demonstration did not work"
}

# A configuration and a store of its own, so that nothing is installed. The contexts are copied: they lead to the engine.
scratch=$(mktemp -d)
export DOCKER_CONFIG=$scratch/docker DOCKER_SNAPSHOT_STORE=$name-store
mkdir "$DOCKER_CONFIG"
for file in config.json contexts; do
	[[ ! -e $config/$file ]] || cp -R "$config/$file" "$DOCKER_CONFIG/"
done
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
find_engine
old_workers=$(list_workers)
say "Building the plugin."
./install.sh >"$scratch/log" 2>&1 || die "$(<"$scratch/log")"

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

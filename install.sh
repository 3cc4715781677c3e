#!/bin/sh
# install.sh: installs the Docker CLI plugin "docker snapshot". In the folder of a release it takes the program for this
# system from there; in a checkout it builds the program, which needs Go.
#
#   ./install.sh                 for you: into $DOCKER_CONFIG/cli-plugins, or ~/.docker/cli-plugins
#   ./install.sh --system        for everybody: into /usr/local/lib/docker/cli-plugins
#   ./install.sh --protect       also keeps docker's prune commands from removing snapshots: "docker snapshot protect"
#   ./install.sh --uninstall     removes it; with --system, for everybody. What it made on engines stays. To remove
#                                that, too, run "docker snapshot recover --purge" first
#   ./install.sh --release DIR [OS/ARCHITECTURE…]
#                                makes a release in DIR: the programs for all systems, or for these, with checksums
#   ./install.sh --workers       only builds the workers for Linux engines that "go build -tags workers" embeds
set -eu

config=${DOCKER_CONFIG:-${HOME:?}/.docker}
case $config in
/*) ;;
*) config=$PWD/$config && export DOCKER_CONFIG="$config" ;; # it is relative to where the user is
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

# build_workers builds the programs that read and write volumes on engines. An engine's machine may have another
# architecture, or another system, than this one.
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

# compile FILE builds the plugin as FILE, for GOOS and GOARCH if they are set, else for this system.
compile() {
	version=$(git describe --tags --always --dirty 2>/dev/null || echo unversioned)
	CGO_ENABLED=0 go build -trimpath -tags workers -o "$1" \
		-ldflags "-s -w -X github.com/cua-snapshot/docker-snapshot/plugin/metadata.version=$version" .
}

sums() { if command -v sha256sum >/dev/null; then sha256sum "$@"; else shasum -a 256 "$@"; fi; }

# release DIR [OS/ARCHITECTURE…] makes a folder that people without Go can install from.
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

# released prints the name of this system's program in a release.
released() {
	os=$(uname -s | tr '[:upper:]' '[:lower:]')
	case $(uname -m) in
	x86_64 | amd64) echo "docker-snapshot-$os-amd64" ;;
	aarch64 | arm64) echo "docker-snapshot-$os-arm64" ;;
	*) echo "docker-snapshot-$os-$(uname -m)" ;;
	esac
}

# make_plugin FILE writes the plugin to FILE: from the release that this script lies in, or else it builds it.
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

# install_into DIR replaces the plugin in DIR in one step: a docker that starts meanwhile finds the old one or the new one.
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
	[ -z "$protect" ] || docker snapshot protect >/dev/null || die "docker's prune commands do not leave snapshots alone"
}

uninstall_plugin() {
	[ -e "$1/docker-snapshot" ] || die "there is no $1/docker-snapshot"
	rm -f "$1/docker-snapshot"
	say "Removed $1/docker-snapshot. On each engine that you used it with, these stay, and your snapshots with them:"
	say "  images cua-snapshot/*, volumes cua-snapshots and cua-snapshot-key, and stores that you named yourself"
	say "To remove them for good, install it again and run \"docker snapshot recover --purge\". Or by hand:"
	say "  docker image rm --force \$(docker image ls --quiet --filter 'reference=cua-snapshot/*')"
	say "  docker volume rm cua-snapshots cua-snapshot-key"
}

if [ "${1-}" = --release ]; then
	shift
	[ $# -gt 0 ] || usage
	release "$@"
	exit
fi
verb=install_plugin target=$config/cli-plugins protect=
for argument; do
	case $argument in
	--system) target=$system ;;
	--protect) protect=yes ;;
	--uninstall) verb=uninstall_plugin ;;
	--workers) verb=build_workers ;;
	*) usage ;;
	esac
done
"$verb" "$target"

#!/usr/bin/env bash
# test.sh: all the tests, with everything that they need.
#
#   test.sh                                   unit tests, then the scripts on both engines
#   test.sh unit
#   test.sh e2e [debian|moby] [go test FLAG…] e.g. test.sh e2e moby -run Scripts/version
#
# On Debian, as root, it installs and builds what is missing; it needs Go. What it starts it stops.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$repository"

unset DOCKER_HOST DOCKER_CONTEXT # the machine's own engine is none of our business
engines=()

stop_engines() {
	local engine
	for engine in "${engines[@]}"; do
		DOCKER_HOST=$engine e2e/engine.sh stop || say "this engine could not be stopped: $engine"
	done
}
trap stop_engines EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

unit() {
	install_packages gcc libc6-dev # the race detector is C
	go test -race -shuffle=on ./...
}

# scripts ENGINE [FLAG…] runs the scripts on a new engine of that kind.
scripts() {
	local kind=$1 DOCKER_HOST cli
	shift
	say "e2e on the $kind engine"
	install_packages openssh-server # for the plugin over ssh://
	# One CLI for both engines; the distribution's is too old for moby.
	cli=$(e2e/engine.sh build cli)
	DOCKER_HOST=$(e2e/engine.sh start "$kind")
	engines+=("$DOCKER_HOST")
	export DOCKER_HOST
	e2e/image.sh busybox postgres redis sqlite
	# The fake engine of the unit tests and the real one keep the same contract.
	(($#)) || go test -tags e2e -count 1 -run EngineKeeps ./snapshot
	PATH=$cli:$PATH go test -tags e2e -count 1 -timeout 20m "$@" ./e2e/...
	e2e/engine.sh stop
	unset 'engines[-1]'
}

e2e() {
	case ${1-} in
	debian | moby) scripts "$@" ;;
	*)
		scripts debian "$@"
		scripts moby "$@"
		;;
	esac
}

command -v go >/dev/null || die "install Go first, $(sed -n 's/^go //p' go.mod) or newer"
case ${1-all} in
all)
	unit
	e2e
	;;
unit) unit ;;
e2e) e2e "${@:2}" ;;
*) sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2 && exit 125 ;;
esac

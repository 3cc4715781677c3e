#!/usr/bin/env bash
# test.sh: all the tests, with everything that they need.
#
#   test.sh                                   unit tests, then the scripts on both engines
#   test.sh unit
#   test.sh e2e [debian|moby] [go test FLAG…] e.g. test.sh e2e moby -run Scripts/version
#   test.sh faults [debian|moby] [FLAG…]      one request goes wrong, in every way: e2e/faults/doc.go has the flags
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
	go test -race -shuffle=on -timeout 40m ./... # the race detector makes some packages slow
}

# start_engine KIND starts an engine for the tests, and points DOCKER_HOST at it.
start_engine() {
	DOCKER_HOST=$(e2e/engine.sh start "$1")
	engines+=("$DOCKER_HOST")
	export DOCKER_HOST
}

stop_engine() {
	e2e/engine.sh stop
	unset 'engines[-1]'
}

# run_faults [FLAG…] runs cells of the fault matrix on the engine of DOCKER_HOST. Most of them wait most of the time.
run_faults() { go test -tags e2e -count 1 -timeout 60m -parallel 10 -v ./e2e/faults "$@"; }

# faults ENGINE [FLAG…] does so on a new engine of that kind.
faults() {
	local kind=$1 DOCKER_HOST
	shift
	say "faults on the $kind engine"
	start_engine "$kind"
	e2e/image.sh busybox
	run_faults "$@"
	stop_engine
}

# scripts ENGINE [FLAG…] runs the scripts on a new engine of that kind, and without a flag everything else that needs one.
scripts() {
	local kind=$1 DOCKER_HOST cli
	shift
	say "e2e on the $kind engine"
	install_packages openssh-server jq python3 # the plugin over ssh://, roots by hand, the examples
	install_packages chromium                  # looks at pages
	# One CLI for both engines; the distribution's is too old for moby.
	cli=$(e2e/engine.sh build cli)
	start_engine "$kind"
	e2e/image.sh busybox postgres redis mariadb sqlite
	# The fake engine of the unit tests and the real one keep the same contract.
	(($#)) || go test -tags e2e -count 1 -run EngineKeeps ./snapshot/enginetest
	PATH=$cli:$PATH go test -tags e2e -count 1 -timeout 60m -parallel 3 "$@" ./e2e # they wait for half of their time
	# Always the same cells: a change is judged by what it does, not by the draw. Others are run by hand.
	(($#)) || run_faults -seed 2026
	stop_engine
}

# on_engines FUNCTION VERB [ENGINE] [FLAG…] calls the function for that engine. For both it runs the verb of this script in
# a process each: that one engine's tests fail does not keep the other's from running.
on_engines() {
	local function=$1 verb=$2 kind failed=
	shift 2
	case ${1-} in
	debian | moby) "$function" "$@" ;;
	*)
		logs=$(mktemp -d)
		for kind in debian moby; do
			e2e/test.sh "$verb" "$kind" "$@" 2>&1 | tee "$logs/$kind" || failed+=" $kind"
		done
		for kind in $failed; do tell_failures "$kind"; done
		rm -r "$logs"
		[[ -z $failed ]] || die "$verb failed on:$failed"
		;;
	esac
}

# tell_failures ENGINE repeats what failed: a log of hours is often kept only in part, and that is its end.
tell_failures() {
	say "what failed on the $1 engine"
	grep -aE -B 30 'FAIL: testdata|--- FAIL|^panic: ' "$logs/$1" | tail -n 80 || tail -n 30 "$logs/$1"
}

command -v go >/dev/null || die "install Go first, $(sed -n 's/^go //p' go.mod) or newer"
case ${1-all} in
all)
	unit
	on_engines scripts e2e
	;;
unit) unit ;;
e2e) on_engines scripts e2e "${@:2}" ;;
faults) on_engines faults faults "${@:2}" ;;
*) sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2 && exit 125 ;;
esac

#!/usr/bin/env bash
# test.sh: all the tests, with everything that they need.
#
#   test.sh                                   unit tests, then the scripts and some faults on both engines
#   test.sh unit
#   test.sh e2e [debian|moby] [go test FLAG…] e.g. test.sh e2e moby -run Scripts/version
#   test.sh faults [debian|moby] [FLAG…]      something goes wrong at one request: e2e/faults/doc.go has the flags; without
#                                             one, 300 cells by the same seed, if they begin in time
#
# On Debian, as root, it installs and builds what is missing; it needs Go. What it starts it stops.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$repository"

unset DOCKER_HOST DOCKER_CONTEXT # the machine's own engine is none of our business
engines=()
runs=() # of this script, one for each engine
scratch=$(mktemp -d)

stop_engines() {
	local engine
	((${#runs[@]} == 0)) || kill "${runs[@]}" 2>/dev/null || true
	for engine in "${engines[@]}"; do
		DOCKER_HOST=$engine e2e/engine.sh stop || say "this engine could not be stopped: $engine"
	done
	rm -rf "$scratch"
}
trap stop_engines EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# unit runs all unit tests with the race detector. It makes them take seven times as long, so with it what is repeated many
# times, a fault at each call or the loss of power, is so less often; the packages that do this also run without it, whole.
unit() {
	install_packages gcc libc6-dev # the race detector is C
	# As releases are built; they wait for half of their time.
	CGO_ENABLED=0 unit_tests "./snapshot ./volumebackup/archive ./volumebackup/worker"
	DOCKER_SNAPSHOT_TEST_STRIDE=10 DOCKER_SNAPSHOT_TEST_MOMENTS=20 DOCKER_SNAPSHOT_TEST_DAMAGES=10 CGO_ENABLED=1 unit_tests ./... -race -p 4 -timeout 40m
}

# unit_tests PACKAGES [FLAG…] runs unit tests. Up to two that fail run once more, alone, and the log names them: either the machine
# was too busy, or they have found something. A data race is never passed over.
unit_tests() {
	local status=0
	go run "$gotestsum" --format standard-quiet --rerun-fails=1 --rerun-fails-max-failures=2 --rerun-fails-abort-on-data-race \
		--rerun-fails-report "$scratch/again" --packages "$1" -- -shuffle=on -parallel 8 "${@:2}" || status=$?
	[[ ! -s $scratch/again ]] || say "what failed and ran once more:" "$(<"$scratch/again")"
	return $status
}

# start_engine KIND starts an engine for the tests, and points DOCKER_HOST at it. With GOGC its daemons, and the helpers that they
# start for every container, collect less garbage.
start_engine() {
	DOCKER_HOST=$(GOGC=400 e2e/engine.sh start "$1")
	engines+=("$DOCKER_HOST")
	export DOCKER_HOST
}

# in_memory CMD… runs CMD with its temporary files in memory, where there is room for the data of an engine.
in_memory() {
	local room
	room=$(df --output=avail --type=tmpfs /dev/shm 2>/dev/null | tail -n 1) || room=0
	if ((room > 4 << 20)); then TMPDIR=/dev/shm "$@"; else "$@"; fi
}

stop_engine() {
	e2e/engine.sh stop
	unset 'engines[-1]'
}

# faults ENGINE [FLAG…] runs cells of the fault matrix on a new engine of that kind. Without a flag the seed is always the same: a
# change is judged by what it does, not by the draw. 300 on both take about seven minutes of two cores, and all take hours. An engine
# whose data is in memory needs an eighth less of them. More at once do not make it faster, but each of them slower: on a slow machine
# a command among sixteen took longer than it may wait for a lock. Up to two cells that failed run once more, alone, and the log names
# them.
faults() {
	local kind=$1 DOCKER_HOST cell again=() parallel=5 sample=176
	shift
	[[ $kind != moby ]] || parallel=4 sample=112 # a cell costs it more: so both come to their end at about the same time
	(($#)) || set -- -seed 2026 -cells $sample -ends 6 -within 7m
	say "faults on the $kind engine"
	in_memory start_engine "$kind"
	e2e/image.sh busybox
	if ! go test -tags e2e -count 1 -timeout 12h -parallel $parallel -v ./e2e/faults "$@" | tee "$scratch/cells"; then
		mapfile -t again < <(sed -nE 's|^ *--- FAIL: TestFaults(/cells)?/([a-z-]+/[a-z-]+/[0-9]+) .*|\2|p' "$scratch/cells")
		((${#again[@]} > 0 && ${#again[@]} <= 2)) || return 1
	fi
	for cell in "${again[@]}"; do
		say "failed, and runs once more: $cell"
		go test -tags e2e -count 1 -v ./e2e/faults -cell "$cell"
	done
	stop_engine
}

# scripts ENGINE [FLAG…] runs the scripts on a new engine of that kind, and without a flag everything else that needs one. If up
# to eight of them fail, they run once more, one by one: they have seconds for what a machine that does five things at once may
# do too late. The log names them, and shows why they failed: it is either a test that has to be patient, or a fault. It also
# names those that did not begin in time, if E2E_UNTIL says when that is.
scripts() {
	local kind=$1 DOCKER_HOST cli late parallel=2 # the scripts wait for half of their time
	local format=standard-quiet status=0
	shift
	[[ $kind != moby ]] || parallel=3 # which takes longer: so both come to their end at about the same time
	[[ " $* " != *" -v "* ]] || format=standard-verbose
	say "e2e on the $kind engine"
	install_packages openssh-server jq python3 # the plugin over ssh://, roots by hand, the examples
	install_packages chromium                  # looks at pages
	# One CLI for both engines; the distribution's is too old for moby.
	cli=$(e2e/engine.sh build cli)
	in_memory start_engine "$kind"
	e2e/image.sh busybox postgres redis mariadb sqlite
	# The fake engine of the unit tests and the real one keep the same contract.
	(($#)) || go test -tags e2e -count 1 -run EngineKeeps ./snapshot/enginetest
	PATH=$cli:$PATH go run "$gotestsum" --format $format --jsonfile "$scratch/events" --rerun-fails=1 --rerun-fails-max-failures=8 \
		--rerun-fails-report "$scratch/again" --packages ./e2e -- -tags e2e -count 1 -timeout 55m -parallel $parallel "$@" || status=$?
	say "what took longest:"
	go run "$gotestsum" tool slowest --num 30 --jsonfile "$scratch/events"
	[[ ! -s $scratch/again ]] || say "what failed and ran once more:" "$(<"$scratch/again")"
	late=$(jq -r 'select(.Action == "output" and (.Output | contains("not begun:"))) | .Test | sub(".*/"; "")' "$scratch/events")
	[[ -z $late ]] || say "NOT BEGUN ON THE $kind ENGINE, because the time for all scripts was over:" "$late"
	stop_engine
	return $status
}

# on_engines FUNCTION VERB [ENGINE] [FLAG…] calls the function for that engine, or for both.
on_engines() {
	local function=$1
	case ${3-} in
	debian | moby) "$function" "${@:3}" ;;
	*) on_both "${@:2}" ;;
	esac
}

# on_both VERB [FLAG…] runs the verb of this script for both engines at the same time, in a process each: what one waits for
# leaves time to the other, and that one's tests fail does not keep the other's from running.
on_both() {
	local verb=$1 kind failed=
	for kind in debian moby; do
		: >"$scratch/$kind"
		e2e/test.sh "$verb" "$kind" "${@:2}" >"$scratch/$kind" 2>&1 &
		runs+=($!)
		tail --pid=$! -n +1 -f "$scratch/$kind" | sed -u "s/^/$kind: /" &
	done
	wait "${runs[0]}" || failed+=" debian"
	wait "${runs[1]}" || failed+=" moby"
	runs=()
	wait # for what they have printed
	for kind in debian moby; do tell_failures "$kind" "$failed"; done
	[[ -z $failed ]] || die "$verb failed on:$failed"
}

# tell_failures ENGINE FAILED repeats why a test failed on an engine, also if it then passed, or how the log ends if that engine is
# among those where the verb failed: a log of hours is often kept only in part, and what this prints is its end.
tell_failures() {
	local failure='FAIL: testdata|(---|===) FAIL|^panic: '
	if grep -qaE "$failure" "$scratch/$1"; then
		say "what failed on the $1 engine"
		grep -aE -B 30 -A 15 "$failure" "$scratch/$1" | tail -n 80
	elif [[ " $2 " == *" $1 "* ]]; then
		say "how the log of the $1 engine ends"
		tail -n 30 "$scratch/$1"
	fi
}

command -v go >/dev/null || die "install Go first, $(sed -n 's/^go //p' go.mod) or newer"
case ${1-all} in
all)
	unit
	on_engines scripts e2e
	on_engines faults faults
	;;
unit) unit ;;
e2e) on_engines scripts e2e "${@:2}" ;;
faults) on_engines faults faults "${@:2}" ;;
*) sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2 && exit 125 ;;
esac

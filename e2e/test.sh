#!/usr/bin/env bash
# test.sh: the tests, with everything that they need.
#
#   test.sh                                   the quick level, which every change must pass: unit tests, each script on one engine
#                                             or on both, and a sample of faults
#   test.sh all [-within DURATION]            everything, e.g. -within 2h: the race detector, long fuzzing, a release, every script
#                                             and every fault on both engines. Parts that have passed on this commit are left out, so
#                                             a long run can be done in parts. Prints a table of results
#   test.sh unit                              the unit tests of the quick level
#   test.sh e2e [debian|moby] [go test FLAG…] every script, e.g. test.sh e2e moby -run Scripts/version
#   test.sh faults [debian|moby] [FLAG…]      something goes wrong at one request: e2e/faults/doc.go has the flags; without
#                                             one, a sample by the same seed
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

# sampled CMD… has tests repeat less often: a fault at every tenth call, 20 losses of power, 10 damages.
sampled() { DOCKER_SNAPSHOT_TEST_STRIDE=10 DOCKER_SNAPSHOT_TEST_MOMENTS=20 DOCKER_SNAPSHOT_TEST_DAMAGES=10 "$@"; }

# unit runs all unit tests, built without cgo as releases are. Those that wait leave time for others.
unit() { CGO_ENABLED=0 sampled unit_tests ./...; }

# race runs all unit tests with the race detector, and the packages that repeat a fault at each call once more without it, whole: it
# makes them take seven times as long.
race() {
	install_packages gcc libc6-dev # the race detector is C
	DOCKER_SNAPSHOT_TEST_DAMAGES=1000 CGO_ENABLED=0 unit_tests "./snapshot ./volumebackup/archive ./volumebackup/worker" -timeout 60m
	CGO_ENABLED=1 sampled unit_tests ./... -race -p 4 -timeout 40m
}

# unit_tests PACKAGES [FLAG…] runs unit tests.
unit_tests() {
	go run "$gotestsum" --format standard-quiet --packages "$1" -- -shuffle=on -parallel 8 "${@:2}"
}

# fuzz runs every fuzz target of the tree for half a minute; a tree without one has lost them. The quick level runs their seeds.
fuzz() {
	local file target count=0
	while IFS=: read -r file target; do
		say "$file $target"
		fuzz_one "./$(dirname "$file")" "$target"
		count=$((count + 1))
	done < <(git ls-files '*_test.go' | xargs -r grep -o '^func Fuzz[A-Za-z0-9_]*' | sed 's/func //')
	((count > 0)) || die "there is no fuzz target"
}

# fuzz_one PACKAGE TARGET runs one. If the time is over in the middle of a slow input, Go calls that a failure: "context
# deadline exceeded". It writes down an input that really fails.
fuzz_one() {
	if ! CGO_ENABLED=0 go test -run "^$" -fuzzminimizetime 10x -fuzz "^$2\$" -fuzztime 30s "$1" 2>&1 | tee "$scratch/fuzz"; then
		grep -q 'context deadline exceeded' "$scratch/fuzz" && ! grep -Eq 'Failing input|panic:' "$scratch/fuzz"
	fi
}

# release makes a release: programs for every system, with the workers inside.
release() {
	./install.sh --release "$scratch/release"
	go test -tags workers -run Workers ./volumebackup
}

endurance() { e2e/bench "$1" endurance; }

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
# change is judged by what it does, not by the draw. All cells take hours of two cores. An engine whose data is in memory needs an
# eighth less of them. More at once do not make it faster, but each of them slower: on a slow machine a command among sixteen took
# longer than it may wait for a lock.
faults() {
	local kind=$1 DOCKER_HOST parallel=5 sample=60
	shift
	[[ $kind != moby ]] || parallel=4 sample=40 # a cell costs it more: so both come to their end at about the same time
	(($#)) || set -- -seed 2026 -cells $sample -ends 2
	say "faults on the $kind engine"
	in_memory start_engine "$kind"
	e2e/image.sh busybox
	go test -tags e2e -count 1 -timeout 12h -parallel $parallel -v ./e2e/faults "$@"
	stop_engine
}

# quick_scripts ENGINE runs the scripts of the quick level on a new engine of that kind.
quick_scripts() { E2E_LEVEL=quick scripts "$@"; }

# scripts ENGINE [FLAG…] runs the scripts on a new engine of that kind, and without a flag everything else that needs one. If one
# of them fails, it runs once more. The log names it, and shows why it failed: it is a test that depends on the speed of the machine,
# or it has found a fault.
scripts() {
	local kind=$1 DOCKER_HOST cli parallel=2 # the scripts wait for half of their time
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
	PATH=$cli:$PATH go run "$gotestsum" --format $format --jsonfile "$scratch/events" --rerun-fails=1 --rerun-fails-max-failures=1 \
		--rerun-fails-report "$scratch/again" --packages ./e2e -- -tags e2e -count 1 -timeout 55m -parallel $parallel "$@" || status=$?
	say "what took longest:"
	go run "$gotestsum" tool slowest --num 30 --jsonfile "$scratch/events"
	[[ ! -s $scratch/again ]] || say "what failed and ran once more:" "$(<"$scratch/again")"
	stop_engine
	return $status
}

# on_engines FUNCTION [ENGINE] [FLAG…] calls the function for that engine, or for both.
on_engines() {
	case ${2-} in
	debian | moby) "$@" ;;
	*) on_both "$@" ;;
	esac
}

# on_both FUNCTION [FLAG…] runs a function of this script for both engines at the same time, in a process each: one works while the
# other waits, and failing tests on one do not keep those on the other from running.
on_both() {
	local function=$1 kind failed=
	for kind in debian moby; do
		: >"$scratch/$kind"
		e2e/test.sh part "$function" "$kind" "${@:2}" >"$scratch/$kind" 2>&1 &
		runs+=($!)
		tail --pid=$! -n +1 -f "$scratch/$kind" | sed -u "s/^/$kind: /" &
	done
	wait "${runs[0]}" || failed+=" debian"
	wait "${runs[1]}" || failed+=" moby"
	runs=()
	wait # for what they have printed
	for kind in debian moby; do tell_failures "$kind" "$failed"; done
	[[ -z $failed ]] || die "$function failed on:$failed"
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

# parts of everything, the shortest first; those of faults also get the time that is left.
parts=(race fuzz release "scripts debian" "scripts moby" "endurance debian" "endurance moby" "faults debian -all" "faults moby -all")

# all [-within DURATION] runs the parts that have not passed on this commit, as long as there is time, and prints their results.
all() {
	local until='' part
	if [[ ${1-} == -within ]]; then until=$(date -d "+$(sed -E 's/h/ hours/; s/m/ minutes/' <<<"${2:?a duration, such as 2h}")" +%s) || exit 125; fi
	[[ -z $(git status --porcelain) ]] || die "commit your changes first: results belong to a commit"
	results=$cache/results/$(git rev-parse HEAD)
	mkdir -p "$results"
	for part in "${parts[@]}"; do
		! grep -q passed "$results/$part" 2>/dev/null || continue
		[[ -z $until ]] || (($(date +%s) < until)) || break
		part_of_all "$part" "$until"
	done
	report_all
	! grep -q failed "$results"/*
}

# part_of_all PART UNTIL runs one and notes how it went, in a process of its own: what fails in it ends only that.
part_of_all() {
	local start=$SECONDS outcome=passed command
	read -ra command <<<"$1"
	[[ $1 != faults* || -z $2 ]] || command+=(-within "$(($2 - $(date +%s)))s")
	say "=== ${command[*]}"
	e2e/test.sh part "${command[@]}" || outcome=failed
	echo "$outcome $((SECONDS - start))" >"$results/$1"
}

report_all() {
	local part outcome seconds
	echo "| part, on $(git rev-parse --short HEAD) | result | seconds |"
	echo "|---|---|---|"
	for part in "${parts[@]}"; do
		outcome='not run' seconds=''
		[[ ! -e $results/$part ]] || read -r outcome seconds <"$results/$part"
		echo "| $part | $outcome | $seconds |"
	done
}

command -v go >/dev/null || die "install Go first, $(sed -n 's/^go //p' go.mod) or newer"
case ${1-quick} in
quick)
	unit
	on_both quick_scripts
	on_both faults
	;;
all) all "${@:2}" ;;
unit) unit ;;
e2e) on_engines scripts "${@:2}" ;;
faults) on_engines faults "${@:2}" ;;
part) "${@:2}" ;; # of this script's own calls
*) sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2 && exit 125 ;;
esac

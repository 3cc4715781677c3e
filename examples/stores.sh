#!/bin/sh
# stores.sh: stores for what an agent knows, on top of docker snapshot. What is stored comes from stdin, and goes to stdout.
# Each store is a line of states; BOOKMARKS, CONVERSATION and MODES name other ones. Results and errors are those of docker
# snapshot: one JSON object per line, as docs/json.md describes them. stores.py reads what this writes.
#
#   stores.sh bookmark_save NAME [--tag TAG] [--meta KEY=VALUE] [--run-id RUN] <CONTENT
#   stores.sh bookmark_load NAME >CONTENT
#   stores.sh bookmark_delete NAME
#   stores.sh bookmark_list [--filter run=RUN] [--filter tag=TAG] [--search TEXT] [--last N]
#   stores.sh conversation_step USAGE <MESSAGES
#   stores.sh conversation_risk WHAT <MESSAGES
#   stores.sh conversation_load [SNAPSHOT] >MESSAGES
#   stores.sh mode_switch FROM TO <STATE
#   stores.sh mode_last >STATE
set -eu
export LC_ALL=C

bookmarks=${BOOKMARKS:-bookmarks}
conversation=${CONVERSATION:-conversation}
modes=${MODES:-modes}

digest() { printf %s "$1" | { sha256sum 2>/dev/null || shasum -a 256; } | cut -c 1-8; }

# key makes the name of a bookmark's state: the bookmark's own if docker takes it, else a slug. That ends with a part of a
# digest, so that different names never mean the same state.
key() {
	case $1 in
	'' | latest | [.-]* | *[!A-Za-z0-9_.-]*) ;;
	[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]-*) ;; # it reads like an ID
	*) if [ ${#1} -le 128 ]; then echo "$1" && return; fi ;;
	esac
	slug=$(printf %s "$1" | tr -cs 'A-Za-z0-9_.-' '-' | sed 's/^[-.]*//; s/[-.]*$//' | cut -c 1-119)
	echo "${slug:-snapshot}-$(digest "$1")"
}

create() { docker snapshot create --format json --state-only "$@"; }

# load writes what is attached to a state: one file.
load() {
	attachment=$(docker snapshot inspect --format '{{(index .Attachments 0).Name}}' -- "$1")
	docker snapshot cat -- "$1" "$attachment"
}

bookmark_save() {
	name=$1
	shift
	key=$(key "$name")
	# An earlier bookmark of that name stays, without the name.
	earlier=$(docker snapshot inspect --format '{{.ID}}' -- "$bookmarks:$key" 2>/dev/null) || earlier=
	[ -z "$earlier" ] || docker snapshot annotate --name '' -- "$bookmarks:$earlier" >/dev/null
	create --line "$bookmarks" --message "$name" --attach content=- "$@" -- "$key" && return
	[ -z "$earlier" ] || docker snapshot annotate --name "$key" -- "$bookmarks:$earlier" >/dev/null
	return 1
}

bookmark_load() { load "$bookmarks:$(key "$1")"; }

bookmark_delete() { docker snapshot rm --format json -- "$bookmarks:$(key "$1")"; }

bookmark_list() { docker snapshot ls --format json --filter kind=state --filter "line=$bookmarks" --last 100 "$@"; }

conversation_step() {
	create --line "$conversation" --if-usage "$1" --threshold 0.85 --keep 5 --attach messages.json=-
}

conversation_risk() {
	create --line "$conversation" --trigger before_action --message "$1" --keep 5 --attach messages.json=-
}

conversation_load() { load "$conversation:${1:-latest}"; }

mode_switch() {
	create --line "$modes" --trigger event --expires 1h --keep 0 --message "$1 -> $2" --attach state.json=-
}

mode_last() {
	last=$(docker snapshot ls -q --filter kind=state --filter "line=$modes" --filter expired=false --last 1)
	if [ -z "$last" ]; then
		echo "stores.sh: no switch of modes was within the hour" >&2
		return 1
	fi
	load "$modes:$last"
}

case ${1:-} in
bookmark_save | bookmark_load | bookmark_delete | bookmark_list | conversation_step | conversation_risk | conversation_load | \
	mode_switch | mode_last) "$@" ;;
*)
	sed -n '2,14s/^# \{0,1\}//p' "$0" >&2
	exit 125
	;;
esac

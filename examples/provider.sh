#!/bin/sh
# provider.sh: the four calls of a snapshot provider, on top of docker snapshot. Each prints one JSON object per line, as
# docs/json.md describes them, also for errors, and exits as docker snapshot does.
#
#   provider.sh create_snapshot CONTAINER [NAME]
#   provider.sh restore_snapshot SNAPSHOT [in_place]
#   provider.sh list_snapshots [CONTAINER]
#   provider.sh delete_snapshot SNAPSHOT
set -eu

# slug makes a name that docker takes from any text.
slug() {
	made=$(printf %s "$1" | LC_ALL=C tr -cs 'A-Za-z0-9_.-' '-' | sed 's/^[-.]*//; s/[-.]*$//' | cut -c 1-128)
	echo "${made:-snapshot}"
}

create_snapshot() {
	if [ -n "${2:-}" ]; then
		docker snapshot create --format json --message "$2" -- "$1" "$(slug "$2")"
	else
		docker snapshot create --format json -- "$1"
	fi
}

restore_snapshot() {
	if [ "${2:-}" = in_place ]; then
		docker snapshot restore --format json --replace --force -- "$1"
	else
		docker snapshot restore --format json -- "$1"
	fi
}

list_snapshots() { docker snapshot ls --format json -- "$@"; }

delete_snapshot() { docker snapshot rm --format json -- "$1"; }

case ${1:-} in
create_snapshot | restore_snapshot | list_snapshots | delete_snapshot) "$@" ;;
*)
	sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
	exit 125
	;;
esac

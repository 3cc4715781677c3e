# lib.sh: what the scripts here share. Source it; it only defines things.
# shellcheck shell=bash disable=SC2034 # those who source it use them

# Pinned versions; nothing else in the tree names them.
moby_version=v2.0.0-beta.24
containerd_version=v2.4.2
runc_version=v1.5.2
docker_cli_version=v28.5.2
compose_version=v5.0.2
gotestsum=gotest.tools/gotestsum@v1.13.0

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/docker-snapshot

# say writes a line for people, to stderr: stdout belongs to results.
say() { printf '%s\n' "$*" >&2; }

die() {
	say "${0##*/}: $*"
	exit 1
}

# poll TENTHS CMD… runs CMD until it works, or gives up after so many tenths of a second.
poll() {
	local tenths=$1
	shift
	until "$@"; do
		((tenths-- > 0)) || return 1
		sleep 0.1
	done
}

# locked NAME CMD… lets only one of several scripts build something; the others find it done.
locked() {
	mkdir -p "$cache"
	(
		flock 9
		"${@:2}"
	) 9>"$cache/$1.lock"
}

# install_packages PACKAGE… installs what is missing of these Debian packages.
install_packages() {
	local package missing=()
	for package in "$@"; do
		[[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
	done
	((${#missing[@]})) || return 0
	command -v apt-get >/dev/null || die "install these first: ${missing[*]}"
	((EUID == 0)) || die "as root: apt-get install ${missing[*]}"
	say "installing ${missing[*]}"
	# Two scripts may want packages at once: wait for apt's locks.
	local apt=(apt-get -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0)
	export DEBIAN_FRONTEND=noninteractive
	"${apt[@]}" install --no-install-recommends "${missing[@]}" >/dev/null 2>&1 ||
		{ "${apt[@]}" update && "${apt[@]}" install --no-install-recommends "${missing[@]}"; } >&2
}

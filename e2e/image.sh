#!/usr/bin/env bash
# image.sh: makes test images in the engine of DOCKER_HOST, without a registry.
#
#   image.sh busybox    busybox, and test/app: the same with everything that an image can configure
#   image.sh postgres   test/postgres: laid out like the official image; trusts everybody; run it with --stop-signal SIGINT,
#                       which the official one has from its Dockerfile and engine 20.10 cannot import
#   image.sh redis      test/redis: likewise
#   image.sh mariadb    test/mariadb: likewise; root needs no password
#   image.sh sqlite     test/sqlite: busybox and sqlite3
#
# postgres, redis and mariadb are made with debootstrap once, on what they have in common, and kept as tarballs in the cache.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

tree=$(mktemp -d)
trap 'rm -rf "$tree" "$tree.log"' EXIT

# import_tree IMAGE CHANGE… imports the tree; the same tree is the same layer every time.
import_tree() {
	local image=$1 change changes=()
	shift
	for change in "$@"; do changes+=(--change "$change"); done
	tar -C "$tree" --sort=name --mtime=@0 --numeric-owner --owner=0 --group=0 -c . |
		docker import "${changes[@]}" - "$image" >/dev/null
}

# busybox_tree fills the tree with busybox.
busybox_tree() {
	install_packages busybox-static
	mkdir -p "$tree"/{bin,etc,proc,sys,dev,root,tmp,var,app,data}
	chmod 1777 "$tree/tmp" "$tree/data"
	cp /bin/busybox "$tree/bin/busybox"
	local applet
	for applet in $(/bin/busybox --list); do
		[[ $applet == busybox ]] || ln -s busybox "$tree/bin/$applet"
	done
	printf '%s\n' root:x:0:0:root:/root:/bin/sh app:x:1000:1000::/app:/bin/sh >"$tree/etc/passwd"
	printf '%s\n' root:x:0: app:x:1000: >"$tree/etc/group"
}

busybox() {
	busybox_tree
	import_tree busybox 'CMD ["sh"]'

	# Process 1 ignores signals that it has no handler for, so the shell waits for them.
	cat >"$tree/app/entrypoint" <<-'SCRIPT'
		#!/bin/sh
		trap 'exit 0' TERM INT
		"$@" &
		wait $!
	SCRIPT
	chmod 0755 "$tree/app/entrypoint"
	echo 'It works.' >"$tree/data/index.html"
	import_tree test/app \
		'ENV PATH=/bin GREETING=hello' 'ENTRYPOINT ["/app/entrypoint"]' 'CMD ["httpd", "-f", "-p", "8080", "-h", "/data"]' \
		'VOLUME /data' 'WORKDIR /app' 'USER app' 'EXPOSE 8080/tcp' 'LABEL test.app=yes' \
		'HEALTHCHECK --interval=1s --timeout=5s --retries=3 CMD wget -qO /dev/null http://127.0.0.1:8080/'
}

sqlite() {
	install_packages sqlite3
	busybox_tree
	# The shell and the libraries that it needs.
	cp /usr/bin/sqlite3 "$tree/bin/"
	ldd /usr/bin/sqlite3 | grep -o '/[^ ]*' | xargs cp --parents --dereference --target-directory "$tree"
	import_tree test/sqlite 'CMD ["sqlite3"]'
}

# into_archive ARCHIVE CMD… has CMD fill the tree, and keeps that as a tarball.
into_archive() {
	local archive=$1 status
	# CMD runs in a subshell that nothing follows but a look at its status: before "||" bash would go on after what failed in
	# it, and this would keep half an installation for good.
	set +e
	(
		set -e
		unset TMPDIR # the chroot has no such folder
		"${@:2}"
	) </dev/null >"$tree.log" 2>&1
	status=$?
	set -e
	((status == 0)) || die "$(tail -n 20 "$tree.log")"
	mkdir -p "$cache/image"
	tar -C "$tree" -c . | gzip -1 >"$archive.$$"
	mv "$archive.$$" "$archive"
	find "$tree" -mindepth 1 -delete
}

# base CODENAME fills the tree with a minimal Debian that starts no service.
base() {
	local mirror
	# shellcheck disable=SC2016 # apt expands these
	mirror=$(apt-get indextargets --format '$(CODENAME) $(REPO_URI)' 'Created-By: Packages' | sed -n "s/^$1 //p" | sort -u)
	debootstrap --variant=minbase "$1" "$tree" "${mirror%%$'\n'*}"
	printf '#!/bin/sh\nexit 101\n' >"$tree/usr/sbin/policy-rc.d"
	chmod 0755 "$tree/usr/sbin/policy-rc.d"
	chroot "$tree" apt-get -qq update
}

# with_package BASE PACKAGE ENTRYPOINT fills the tree with what is in the tarball BASE, the package, and the entrypoint.
with_package() {
	tar -C "$tree" -xzf "$1"
	mkdir -p "$tree/etc/postgresql-common"
	echo 'create_main_cluster = false' >"$tree/etc/postgresql-common/createcluster.conf"
	echo "$3" >"$tree/usr/local/bin/docker-entrypoint"
	chmod 0755 "$tree/usr/local/bin/docker-entrypoint"
	DEBIAN_FRONTEND=noninteractive chroot "$tree" apt-get -qq install --no-install-recommends "$2"
	chroot "$tree" sh -c 'ln -sf /usr/lib/postgresql/*/bin/* /usr/local/bin/'
	rm -rf "$tree"/var/cache/apt/* "$tree"/var/lib/apt/lists/* "$tree"/usr/share/{doc,man,locale}/* \
		"$tree"/var/lib/mysql/* "$tree"/usr/lib/*/libLLVM* "$tree"/usr/lib/postgresql/*/lib/{llvmjit*,bitcode} # PostgreSQL does without its compiler
}

# make_debian ARCHIVE CODENAME PACKAGE ENTRYPOINT makes the tarball if it is not there.
make_debian() {
	local archive=$1 codename=$2 package=$3 entrypoint=$4 minimal=$cache/image/minimal-$2.tar.gz
	[[ ! -e $archive ]] || return 0
	install_packages debootstrap
	say "building an image of Debian $codename with $package"
	[[ -e $minimal ]] || into_archive "$minimal" base "$codename"
	into_archive "$archive" with_package "$minimal" "$package" "$entrypoint"
}

# debian NAME PACKAGE prints a tarball of a minimal Debian with the package, and with an entrypoint from stdin.
debian() {
	local name=$1 package=$2 codename entrypoint archive
	codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
	entrypoint=$(cat)
	archive=$cache/image/$name-$codename-$(sha256sum <<<"$entrypoint" | cut -c 1-8).tar.gz
	locked image make_debian "$archive" "$codename" "$package" "$entrypoint"
	[[ -e $archive ]] || exit 1 # it has said why
	echo "$archive"
}

postgres() {
	local archive
	archive=$(debian postgres postgresql <<-'SCRIPT'
		#!/bin/sh
		set -e
		as_postgres() { exec setpriv --reuid postgres --regid postgres --init-groups "$@"; }
		[ "$1" = postgres ] || exec "$@"
		install -d -o postgres -g postgres -m 0700 "$PGDATA"
		install -d -o postgres -g postgres -m 2775 /var/run/postgresql
		if [ ! -s "$PGDATA/PG_VERSION" ]; then
			(as_postgres initdb --auth trust --data-checksums --no-instructions)
			echo 'host all all all trust' >>"$PGDATA/pg_hba.conf"
		fi
		as_postgres "$@"
	SCRIPT
	)
	docker import \
		--change 'ENV LANG=C.UTF-8 PGDATA=/var/lib/postgresql/data PGUSER=postgres' \
		--change 'VOLUME /var/lib/postgresql/data' --change 'EXPOSE 5432/tcp' \
		--change 'ENTRYPOINT ["docker-entrypoint"]' --change 'CMD ["postgres", "-c", "listen_addresses=*"]' \
		"$archive" test/postgres >/dev/null
}

redis() {
	local archive
	archive=$(debian redis redis-server <<-'SCRIPT'
		#!/bin/sh
		set -e
		[ "$1" = redis-server ] || exec "$@"
		chown -R redis:redis .
		exec setpriv --reuid redis --regid redis --init-groups "$@"
	SCRIPT
	)
	docker import \
		--change 'VOLUME /data' --change 'WORKDIR /data' --change 'EXPOSE 6379/tcp' \
		--change 'ENTRYPOINT ["docker-entrypoint"]' --change 'CMD ["redis-server", "--protected-mode", "no"]' \
		"$archive" test/redis >/dev/null
}

mariadb() {
	local archive
	archive=$(debian mariadb mariadb-server <<-'SCRIPT'
		#!/bin/sh
		set -e
		[ "$1" = mariadbd ] || exec "$@"
		install -d -o mysql -g mysql /var/lib/mysql /run/mysqld
		[ -d /var/lib/mysql/mysql ] || mariadb-install-db --user=mysql --auth-root-authentication-method=normal --skip-test-db >/dev/null
		exec "$@" --user=mysql
	SCRIPT
	)
	docker import \
		--change 'VOLUME /var/lib/mysql' --change 'EXPOSE 3306/tcp' \
		--change 'ENTRYPOINT ["docker-entrypoint"]' --change 'CMD ["mariadbd"]' \
		"$archive" test/mariadb >/dev/null
}

(($#)) || set -- help
for image in "$@"; do
	case $image in
	busybox | postgres | redis | mariadb | sqlite) "$image" ;;
	*) sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2 && exit 125 ;;
	esac
	rm -rf "${tree:?}"/*
done

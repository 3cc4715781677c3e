// Package e2e runs the plugin against a real engine, the one of DOCKER_HOST, as people do: docker snapshot ….
//
// Every testdata/*.txtar is a script that shows one behaviour; its language is that of
// github.com/rogpeppe/go-internal/testscript, and these commands come on top:
//
//	state CONTAINER STATE         wait up to 10 s for it to be created, running, paused, exited, dead or gone
//	labels IMAGE KEY [VALUE]      print a label, or compare it; with ! it must be absent
//	eventually [!] PROGRAM ARG…   repeat for up to 20 s until it succeeds, or fails
//	status N PROGRAM ARG…         the exit status must be N
//	same FILE1 FILE2              the same bytes, without the flood that cmp prints on large files
//	json FILE POINTER [VALUE]     print what an RFC 6901 pointer finds, or compare it; with ! it must be absent
//	stdout2env NAME               put the last command's output into a variable, trimmed
//	picture CONTAINER             print what a restore that is taken back must leave as it was: ID, state, networks, volumes
//	sshd NAME                     start an SSH server that leads to the engine; NAME becomes its ssh:// address
//	engine debian|moby NAME [FLAG…]
//	    start another engine for this script, with these options of dockerd; NAME becomes its DOCKER_HOST
//	compose                       make docker compose a command of the script's docker
//
// and these programs, which work under exec, status and eventually:
//
//	tty [-after REGEXP] [-event REGEXP] [-send TEXT] PROGRAM ARG…
//	    run it on a pseudo terminal; once its output, or a line of docker events ("container pause
//	    NAME"), matches, type the text, in which Go's escapes work: '\x03' is Ctrl-C
//	interrupt [-after REGEXP] [-event REGEXP] [-delay DURATION] [-to process|group|children|family] SIGNAL PROGRAM ARG…
//	    send it a signal at such a moment, or after a while; the exit status is the program's, 128 + N if a signal ended it
//	when REGEXP PROGRAM ARG…
//	    run it as soon as a line of docker events matches; with & after it, beside what follows
//
// FILE may be stdout or stderr, as in cmp. The environment has $P, a prefix for the names of everything that the script
// makes (what begins with it is removed in the end), $DOCKER_SNAPSHOT_STORE, a store of its own, $ENGINE, $SOCKET, the
// engine's, $REPOSITORY, where this checkout is, $USER_HOME, where Go finds its caches, and $GOARCH, what this machine is.
// Conditions: [debian], [moby], [userns], and [privileged] where the engine can start such a container.
//
// E2E_KEEP=1 leaves everything in place, E2E_UPDATE=1 rewrites the files that cmp compares with, and
// E2E_POSTGRES_ROUNDS=N says how often PostgreSQL is snapshot and restored under load, instead of 20 times.
package e2e

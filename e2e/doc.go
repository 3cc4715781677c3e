// Package e2e runs the plugin against a real engine, the one of DOCKER_HOST, as people do: by typing docker snapshot ….
//
// Every testdata/*.txtar is a script that shows one behaviour. Its language is that of
// github.com/rogpeppe/go-internal/testscript, with these commands in addition:
//
//	state CONTAINER STATE         wait for it to be created, running, paused, exited, dead or gone
//	labels IMAGE KEY [VALUE]      print a label, or compare it; with ! it must be absent
//	eventually [!] PROGRAM ARG…   repeat until it succeeds, or fails
//	status N PROGRAM ARG…         run it; its exit status must be N
//	same FILE1 FILE2              compare bytes, without the flood that cmp prints for large files
//	json FILE POINTER [VALUE]     print what an RFC 6901 pointer finds, or compare it; with ! it must be absent
//	stdout2env NAME               put the last command's output into a variable, without blanks around it
//	picture CONTAINER             print what a restore that is rolled back must leave as it was: ID, state, networks, volumes
//	sshd NAME                     start an SSH server that leads to the engine; NAME becomes its ssh:// address
//	engine [-dir FOLDER] debian|moby NAME [FLAG…]
//	    start another engine for this script, with these flags of dockerd; NAME becomes its DOCKER_HOST. Everything of it is
//	    in the folder, which may be a disk
//	certificates FOLDER           make certificates for docker with TLS: of an authority, of a server on 127.0.0.1, of a client
//	clock                         make docker snapshot's clock as far ahead of the machine's as $CLOCK_AHEAD says: 24h, -24h
//	disk FOLDER SIZE              mount a new disk of that size there
//	compose                       add docker compose to the script's docker
//
// and these programs, for exec, status and eventually:
//
//	tty [-after REGEXP] [-event REGEXP] [-send TEXT] PROGRAM ARG…
//	    run it on a pseudo terminal; type the text as soon as its output, or a line of docker events
//	    ("container pause NAME"), matches. Go's escapes work in the text: '\x03' is Ctrl-C
//	interrupt [-after REGEXP] [-event REGEXP] [-delay DURATION] [-to process|group|children|family] SIGNAL PROGRAM ARG…
//	    run it, and send it a signal at such a moment, or after a while; the exit status is the program's, or 128 + N if
//	    signal N ended it
//	when REGEXP PROGRAM ARG…
//	    run it as soon as a line of docker events matches; with & after it, the script goes on meanwhile. What must happen
//	    before the plugin goes on is made to wait: a container that stops until a file is gone, a hook until one is there
//
// FILE may be stdout or stderr, as in cmp. The environment of a script has:
//
//	$P                       a prefix for the names of everything that it makes; what begins with it is removed in the end
//	$DOCKER_SNAPSHOT_STORE   a store of its own
//	$ENGINE                  debian or moby
//	$SOCKET                  the engine's socket
//	$ROUNDS                  how often to repeat what may go wrong at one moment and not at another
//	$REPOSITORY              where this checkout is
//	$USER_HOME               where Go finds its caches
//	$GOARCH                  this machine's architecture
//
// The conditions are [debian], [moby], [userns] and, if the engine can start privileged containers, [privileged].
//
// In the quick level a script runs on both engines if its second line is "# engines: both", and otherwise on the one that a hash
// of its name picks.
//
// These variables change a run of the tests:
//
//	E2E_KEEP=1               leave everything that the scripts made
//	E2E_LEVEL=quick          run only the scripts of the quick level on this engine
//	E2E_UPDATE=1             rewrite the files that cmp compares with
//	E2E_DIFF_PAIRS=N         compare so many random pairs of trees with what diff and stat say of them, instead of $ROUNDS
//	E2E_ROUNDS=N             repeat so many times what may go wrong at one moment and not at another, instead of 6, or 2 in the
//	                         quick level
package e2e

// Package faults puts a proxy between the plugin and the engine of DOCKER_HOST, and makes something go wrong at one request of a
// command: to the request, to the client, its guard or its worker, or to the engine.
//
// A cell is a scenario (what the command does), a fault (what goes wrong; strike_test.go lists them) and the number of the
// request. Every scenario runs once without a fault, to count its requests. Each cell has containers, volumes, snapshots and a
// store of its own. After the command, and one docker snapshot ls or, if it failed or something is left over, recover, this must
// hold:
//
//   - every container is the one that it was, in the state that it was in, unless the restore was done
//   - every volume holds exactly what it held before, or exactly what the snapshot holds, as the command's exit status says. A
//     client that was killed, or has lost its engine, cannot say it: then it is what was printed had the command ended, or nothing
//   - every snapshot that ls shows verifies whole; what the command has made can be restored with exactly its content. The worker's
//     own code does both, in the test; where there is no fault, docker snapshot verify and restore do it, too,
//     but for the costly scenarios
//   - nothing that the plugin made is left without a snapshot that it belongs to: no image, no container, no volume, nothing
//     unfinished in the store. Only what a client that was killed had not published may wait until it is an hour old: the image
//     and its archives
//   - if the command failed, it succeeds when it is run again, unless it is an rm whose snapshot is gone already
//   - nothing waits for longer than --lock-timeout; what does shows its requests, and where in the kernel it waited
//
// Containers must also be back without the recover: the guard does that, unless it is killed, too.
//
// A cell does not count if its request was never made, or if there was no worker to kill: it was not reached.
//
// go test -tags e2e ./e2e/faults takes these options:
//
//	-cells N     run so many cells, chosen by the seed (default 150): every scenario meets every fault once, then the cheaper ones
//	             again; those with three containers, and promote, meet one of each kind: one of a request, one of a process
//	-ends N      and so many that end the engine: these run one after the other, at the end (default 4)
//	-seed N      choose the same cells as a run that has printed this seed; if a scenario makes other requests, nearly the same
//	-all         run every cell
//	-cell NAME   run only this one: SCENARIO/FAULT/REQUEST, as a failure names it. Each may be a pattern: fork/kill*/1?
//	-within TIME begin no cell after so long, for example 12m, or a tenth longer if it ends the engine: these are skipped
//
// At the end they print, for every scenario and fault, how many cells held, how many ran, and how many were not reached; and how
// many were not begun.
package faults

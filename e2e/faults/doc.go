// Package faults puts a proxy between the plugin and the engine of DOCKER_HOST, and makes one request of a command go wrong.
//
// A cell is a scenario (what the command does), a fault (what happens to the request) and the number of the request, in
// the order in which they come. Every scenario is run once without a fault, to count its requests. Each cell then has
// containers, volumes, snapshots and a store of its own. After the command, and after one docker snapshot recover, this must hold:
//
//   - every container is the one that it was, in the state that it was in, unless the restore was done
//   - every volume holds exactly what it held before, or exactly what the snapshot holds, as the command's exit status says
//   - every snapshot that ls shows can be restored, with exactly its content
//   - nothing of ours is left that belongs to no snapshot: no image, no container, no volume
//   - if the command failed, it succeeds when it is run again, unless it is an rm whose snapshot is gone already
//
// Containers must be back without the recover, too: a second process of the plugin sees to that.
//
// go test -tags e2e ./e2e/faults takes these options:
//
//	-cells N     run so many cells, chosen by the seed (default 150)
//	-seed N      choose the same cells as a run that has printed this seed
//	-all         run every cell
//	-cell NAME   run only this one: SCENARIO/FAULT/REQUEST, as a failure names it; each may be *
//
// In the end it prints, for every scenario and fault, how many cells were run and how many held.
package faults

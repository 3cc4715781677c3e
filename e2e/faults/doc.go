// Package faults puts a proxy between the plugin and the engine of DOCKER_HOST, and makes one request of a command go wrong.
//
// A cell is a scenario (what the command does), a fault (what happens to the request) and the number of the request. Every
// scenario runs once without a fault, to count its requests. Each cell has containers, volumes, snapshots and a store of its
// own. After the command, and one docker snapshot recover, this must hold:
//
//   - every container is the one that it was, in the state that it was in, unless the restore was done
//   - every volume holds exactly what it held before, or exactly what the snapshot holds, as the command's exit status says
//   - every snapshot that ls shows can be restored, with exactly its content
//   - nothing that the plugin made is left without a snapshot that it belongs to: no image, no container, no volume
//   - if the command failed, it succeeds when it is run again, unless it is an rm whose snapshot is gone already
//
// Containers must also be back without the recover: the guard does that.
//
// go test -tags e2e ./e2e/faults takes these options:
//
//	-cells N     run so many cells, chosen by the seed (default 150)
//	-seed N      choose the same cells as a run that has printed this seed
//	-all         run every cell
//	-cell NAME   run only this one: SCENARIO/FAULT/REQUEST, as a failure names it; each may be *
//
// At the end they print, for every scenario and fault, how many cells ran and how many held.
package faults

// Package replace restores a snapshot in place: the container becomes what it was, and so do
// its volumes. It is a transaction.
//
//	plan      observe, decide, and find everything that stands against it; nothing is touched
//	open      take the lock, with the journal on it; from here on a crash is recovered
//	quiesce   stop the container and everybody who shares its volumes, and take the safety
//	          snapshot of what is there then
//	write     make the volumes what the snapshot says
//	stand up  create the new container, start it, and wait until it is ready
//	commit    mark the journal as settled: the point of no return
//	finish    start the others, and remove the old container
//
// If anything fails before the commit, the transaction rolls back: the same container runs
// again with the data that it had. If this process dies, another one recovers: it reads the
// journal, observes what there is, and rolls back or finishes.
package replace

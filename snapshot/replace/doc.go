// Package replace restores snapshots in place: each container becomes what it was, and so do
// its volumes. It is one transaction for all of them, its members.
//
//	plan      observe, decide, and find everything that stands against it; nothing is touched
//	open      take the locks, with one journal; from here on a crash is recovered
//	quiesce   stop the containers and everybody who shares their volumes, and take the safety
//	          snapshots of what is there then
//	write     make the volumes what the snapshots say
//	stand up  create the new containers, start them, and wait until they are ready
//	commit    mark the journal as settled: the point of no return
//	finish    start the others, and remove the old containers
//
// If anything fails before the commit, the transaction rolls back: the same containers run
// again with the data that they had. If this process dies, another one recovers: it reads the
// journal, observes what there is, and rolls back or finishes.
package replace

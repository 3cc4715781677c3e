// Package volumebackup archives what is inside Docker volumes, on the engine
// that holds them: no byte of a volume passes through the client.
//
// The work is done by a worker: a short-lived container, made from an image that
// holds nothing but this program's own static binary. The volumes are mounted
// in it under /mnt/<n> and the store, a volume too, under /store. This package
// starts the worker, attaches to it and speaks to it (package protocol); what
// happens inside is in the packages worker, archive and store.
//
// The worker's container name is a lock: the engine lets a name exist once. Its
// labels are a journal: they say which containers are frozen for it. A worker
// that is dead but still there belongs to an operation that was interrupted, and
// the next operation on the same container undoes what the labels say before
// anything else.
package volumebackup

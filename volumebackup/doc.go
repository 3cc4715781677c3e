// Package volumebackup archives what is inside Docker volumes, on the engine that holds them: no byte of a volume
// passes through the client, but of files that are copied out of an archive.
//
// A worker does the work: a short-lived container, made from an image that holds nothing but this program's own static
// binary. It sees the volumes under /mnt/<n> and the store, a volume too, under /store. This package starts the
// worker, attaches to it and speaks to it (package protocol). What happens inside is in the packages worker, archive,
// store and manifest.
//
//   - The name of a worker's container can be a lock: the engine lets a name exist once. [Lock] is such a worker.
//   - Its labels are a journal: they say which containers are frozen for it, and what else there is to recover.
//   - A worker that is dead but still there belongs to an operation that was interrupted. The next operation on the
//     same container first thaws what is frozen. It removes the worker, or sets it aside if its journal says more.
package volumebackup

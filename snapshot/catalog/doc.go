// Package catalog knows which snapshots an engine has. A snapshot is an image whose labels describe
// it and whose ID tag is in the repository of its container; there is no other list. The package
// decodes, resolves, lists, filters and tags snapshots, and seals them with the engine's key.
//
// Tags are the only thing that it changes. The ID tag is set first and removed last: while an image
// has it, the snapshot is whole. A name, and the tag latest, may be moved by any client at any
// time, so whoever moves one looks afterwards whether somebody else has moved it, too.
//
// It does not know what a store holds for a snapshot, nor the run configuration.
package catalog

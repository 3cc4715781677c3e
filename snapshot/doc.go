// Package snapshot takes containers' snapshots and brings them back.
//
// A snapshot is the state of one container at one moment. Its filesystem is an
// image made with the engine's commit; everything else that is known about it,
// the whole run configuration included, stands in that image's labels (package
// labels). There is no other database: an [Engine] keeps no state.
//
// The image is tagged cua-snapshot/<container>:<id>, and also with the
// snapshot's name, if it has one, and with latest while it is the newest. The
// ID tag is what makes it a snapshot: an image with our labels but without that
// tag is either one that was built FROM a snapshot or one whose creation did
// not end, and is not listed.
//
// Data flows one way: options → observe → plan → apply. A plan is made by pure
// functions from what was observed, so that it can be shown (a dry run) and
// tested as text; applying it decides nothing.
package snapshot

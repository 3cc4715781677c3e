// Package session is the record of a run: which command ran with snapshots of which container around
// it, what was taken and restored meanwhile, and how it ended. It is pure: it knows no engine and no
// clock.
//
// An engine keeps the record as a label of an image without layers, because labels are the only
// database that this program has. [Archive] makes that image, [Encode] and [Decode] the label.
package session

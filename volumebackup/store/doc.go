// Package store keeps volume archives on disk: packs, publishing, sweeping, checking. It knows no Docker and no
// volumes. Package manifest defines the lists of entries that a store holds; package archive fills a store and reads
// it.
//
// # Layout, version 1
//
//	format                         "cua-store 1\n"; also the file that locks are taken on
//	snapshots/<id>/<n>.tar         pack: the bytes that this snapshot added for its archive n
//	snapshots/<id>/9999.tar …      packs with what was damaged elsewhere, counted from the end
//	snapshots/<id>/<n>.man         manifest: every entry, and where each of its bytes is; see package manifest
//	snapshots/<id>/attachments/<name>  a file of the client that was stored along, as it is
//	snapshots/<id>/origin          where the snapshot is from, in JSON: engine, image_store, container,
//	                               container_name, published; readers skip what they do not know
//	snapshots/<id>/record          the labels of its image, in JSON: an object of strings. annotate replaces it
//	snapshots/<id>/missed          when its image was first found to be gone (RFC 3339)
//	looked                         when the store was last compared with the images of an engine (RFC 3339)
//	volumes/<key>/head             manifest that the live volume last matched, under the key of its mount; keys that a
//	                               directory cannot have are ~<SHA-256>
//	volumes/<key>/unchecked        how many automatic snapshots were taken since one compared volume and head
//	images/<key>.man               manifest of the root filesystem of an image, without places of pieces; the key is a
//	                               SHA-256 over the digests of its layers. The last 64 are kept
//	tmp/<operation>/               unfinished work
//	sweep                          packs that an interrupted removal has still to look at
//	operations/<worker>            HMAC-SHA-256, under the key, of the ID of an operation's worker and its journal:
//	                               who rolls an operation back believes no other journal
//	key                            32 random bytes, the key of fingerprints and of operations
//
// An id is 1 to 128 characters of A-Z a-z 0-9 _ . - and does not begin with a dot. A pack is known by "<id>/<n>". It
// stays where it is for as long as anything in it is needed, also after its own snapshot is gone.
//
// # Pack
//
// A pack is a tar in GNU's format that standard tools list and extract, so the data can be found even without a
// manifest.
//
//   - Its first 1024 bytes are a comment to those tools (a global header of pax, "g"):
//     "comment=cua-pack <id>/<n> <length of the file, 20 digits>".
//   - Then comes one regular member for each piece of content. It is named after its file, with "@<offset>" if it is
//     a block of a larger file and ".zst" if it is compressed.
//   - A name of 100 bytes or more has an "L" member before it, whose time is the CRC-32 of the name.
//   - What was freed reads as zeros, headers included; tar --ignore-zeros skips it. Name and length of the pack stay.
//
// Name and length tell a backup that a pack of an earlier snapshot is there, whole and the one that is meant. It need
// not read what is in the pack. It checks when it opens a head, and again before it publishes.
//
// Nothing counts as stored in a pack that is missing, of another length, or another file. The backup reads those files
// again, so the new snapshot does not need that pack. Older snapshots that do are damaged, and the backup says so.
//
// # Heads
//
// A head is a link to the manifest that it was published with, or a copy where the filesystem has no links. The next
// backup uses it as a stat cache.
//
// # Trust
//
// A store is not believed. Package manifest refuses hostile records. No symlink in a store is followed, and only
// regular files are opened.
//
// An ID is only what an image claims. So a removal has to say of which container the archives are and what roots they
// have. It is refused if the store knows better.
//
// Archives without an image go after a while (a week, unless the client says otherwise), and only if the engine and image store that had the image say that it is
// gone: the images of another image store are hidden, not gone.
//
// # Decided because
//
// Publishing is one rename of a directory, so a snapshot is whole or not there.
//
// Removal drops manifests, then trims heads, then frees: a head may be stale, but it never names bytes that are gone.
//
//   - So that this holds after a crash, too, the heads' directories are synced before anything is freed.
//   - In a full store removal goes on without the note in sweep, and drops the heads that it has no room to trim. If a
//     crash follows, all that is lost is space.
//   - If a manifest that goes cannot be opened, removal looks at all packs.
//
// Everything that writes shares a lock on the format file; removal takes it alone. To take it alone on NFS, the file
// has to be open for writing. A kernel lock cannot outlive its process, so while the lock is held alone, whatever is
// in tmp is nobody's.
package store

// Package store is the format on disk of volume archives, and everything that
// is done to it: packs, manifests, publishing, sweeping, checking. It knows
// no Docker and no volumes; package archive fills it and reads it.
//
// # Layout, version 1
//
//	format                         "cua-store 1\n"; also the file that locks are taken on
//	snapshots/<id>/<n>.tar         pack: the bytes that this snapshot added for its archive n
//	snapshots/<id>/9999.tar …      packs with what was damaged elsewhere, counted from the end
//	snapshots/<id>/<n>.man         manifest: every entry, and where each of its bytes is
//	snapshots/<id>/origin          where the snapshot is from, in JSON: engine, image_store, container,
//	                               container_name, published; readers skip what they do not know
//	snapshots/<id>/missed          when its image was first found to be gone (RFC 3339)
//	looked                         when it was last compared with the images of an engine (RFC 3339)
//	volumes/<volume>/head          manifest that the live volume last matched; names that a
//	                               directory cannot have are ~<SHA-256>
//	tmp/<operation>/               unfinished work
//	sweep                          packs that an interrupted removal has still to look at
//	operations/<worker>            HMAC-SHA-256, under the key, of the ID of an operation's worker and its journal:
//	                               who rolls an operation back believes no other journal
//	key                            32 random bytes, with which prints are taken and operations recorded
//
// An id is 1 to 128 characters of A-Z a-z 0-9 _ . - and does not begin with a
// dot. A pack is known by "<id>/<n>", and stays where it is for as long as anything in it is
// needed, also after its own snapshot is gone.
//
// # Pack
//
// A tar in GNU's format that standard tools list and extract. Its first 1024 bytes are a comment to those
// (a global header of pax, "g"): "comment=cua-pack <id>/<n> <length of the file, 20 digits>". Then comes one regular
// member for each piece of content, named after its file, with "@<offset>" if
// it is a block of a larger file and ".zst" if it is compressed. So the data can be found
// even without a manifest. Names longer than 100 bytes have a "L" member before them. What was freed
// reads as zeros, headers included; tar --ignore-zeros skips it. Name and length stay.
//
// By them a backup sees that a pack of an earlier snapshot is there, whole and the one that is meant, without
// reading what is in it. It looks when it opens a head, and once more before it publishes. What is in a pack that is
// missing, of another length, another file, or none at all counts as not stored: the files are read again, so the
// new snapshot does not need it. Older ones that do are damaged, which is said.
//
// # Manifest
//
//	"cua-manifest 1\n"
//	body, compressed with zstd: records
//	packs: for each pack that the body refers to: uvarint length, "<id>/<n>"
//	footer, 100 bytes, big endian:
//	  32 root        Merkle root over the records' contents
//	  32 checksum    SHA-256 of the body, uncompressed, and the packs
//	   8 entries     8 bytes     8 length of the body, uncompressed
//	   4 length of packs         8 "cuaman1\n"
//
// A record is: uvarint length of content, content, uvarint length of locator, locator. The
// content is what the root commits to; the locator is where things lie here
// and now, and every piece is checked against the content when it is read. So
// equal volumes have equal roots, wherever and however they are stored. Numbers are uvarints, those
// marked ± zigzag; text is uvarint length and bytes.
//
//	content  kind (1 byte), path, then unless kind is h:
//	         mode, uid, gid, seconds±, nanoseconds, flags (1: has further names), count of xattrs, name and value each
//	  f      size, count of holes, gap and length each, count of pieces, gap, length and SHA-256 (32 bytes) each
//	  l      target
//	  b c    major, minor
//	  h      path of the file's first name
//	locator  f: for each piece: pack (its place in packs, from 1; 0 if it is stored no more, which only a
//	         head says), codec (0 as is, 1 zstd), offset, stored length
//	         unless kind is h: inode, change time seconds±, nanoseconds, flags (1: unsettled, 2: prints follow),
//	         for each piece its print (8 bytes, big endian; 0: not known)
//
// Kinds: d directory, f regular file, l symlink, p FIFO, s socket, b block device, c
// character device, h further name of a file. The first record is the root, whose
// path is empty. Records are sorted by path, component by component, so a directory comes right before what is in
// it; a parent always comes before its children, and the first name of a file before the further ones. The Merkle tree is that of
// RFC 6962: a leaf is SHA-256(0, content), a node SHA-256(1, left, right).
//
// Inode and change time make every manifest a stat cache as well, and a head
// is simply a link to the manifest that it was published with, or a copy where there are no links. Unsettled means: read this file again next time,
// whatever its times say. A print is the HighwayHash-64 of a block of a larger file, under the store's key. When
// the file has changed, the blocks whose prints are the same are taken to be the same.
//
// # Limits
//
// A path 65,535 bytes, a component 255; 16,384 xattrs, a value 64 KiB, all values of an entry 16 MiB; a
// piece 16 MiB; a file of n bytes n/65,536 + 2 pieces and n/512 + 2 holes, and 1,048,576 of either at most; a
// record 96 MiB, the names of packs 4 MiB, 8,388,608 files with several names. Two holes are never
// adjacent. A decoder refuses what is out of bounds, out of order, or leads outside. An encoder does the
// same checks, so that everything that was written can be read, and its caller reports what does not fit.
//
// A store is not believed in other ways either: no symlink in it is followed, and only regular files are opened.
//
// # Decided because
//
// An ID is only what an image claims, so who wants archives removed says of which container they are and what
// roots they have, and is refused if the store knows better. Archives without an image go after a week, and only
// when who looks is on the engine and image store that had it: the images of another image store are hidden, not gone.
//
// Publishing is one rename of a directory, so a snapshot is whole or not there.
// Removal drops manifests, then trims heads, then frees: a head may be stale, but it never names bytes that are
// gone. So that this holds after a crash, too, the heads' directories are synced before anything is
// freed. In a full store removal goes on without the note in sweep, and drops the heads that it has no
// room to trim: all that is lost is, if a crash follows, space. If a manifest that goes cannot be
// opened, all packs are looked at. Everything that writes shares a lock on the format file, removal takes
// it alone, which on NFS needs a descriptor that is open for writing; a kernel lock cannot outlive its process, so what is in tmp while the lock is held alone is nobody's.
package store

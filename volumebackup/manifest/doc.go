// Package manifest is the format of a manifest: the list of the entries of one archived volume, and of where the
// bytes of each are stored. It encodes, decodes, hashes and bounds that list. It opens no files, and runs on every
// system; package store keeps manifests on disk.
//
// # Format
//
//	"cua-manifest 1\n"
//	body, compressed with zstd: records
//	packs: for each pack that the body refers to: uvarint length, "<id>/<n>"
//	footer, 100 bytes, big endian:
//	  32 root        Merkle root over the records' contents
//	  32 checksum    SHA-256 of the body, as it stands in the file, and the packs
//	   8 entries     8 bytes     8 length of the body, uncompressed
//	   4 length of packs         8 "cuaman1\n"
//
// A record is: uvarint length of content, content, uvarint length of locator, locator.
//
//   - The content is what the root commits to.
//   - The locator says where things are stored now. Every piece is checked against the content when it is read.
//
// So equal volumes have equal roots, wherever and however they are stored.
//
// Numbers are uvarints, those marked ± zigzag varints. Text is uvarint length and bytes.
//
//	content  kind (1 byte), path, then unless kind is h:
//	         mode, uid, gid, seconds±, nanoseconds, flags (1: has further names), count of xattrs, name and value each
//	  f      size, count of holes, gap and length each, count of pieces, gap, length and SHA-256 (32 bytes) each
//	  l      target
//	  b c    major, minor
//	  h      path of the file's first name
//	locator  f: for each piece: pack (its place in packs, from 1; 0 if it is not stored any more, which only a
//	         head says), codec (0 as is, 1 zstd), offset, stored length
//	         unless kind is h: inode, change time seconds±, nanoseconds, flags (1: unsettled, 2: fingerprints follow),
//	         for each piece its fingerprint (8 bytes, big endian; 0: not known)
//
// Kinds: d directory, f regular file, l symlink, p FIFO, s socket, b block device, c character device, h further
// name of a file.
//
// # Order
//
//   - The first record is the root of the volume, whose path is empty.
//   - Records are sorted by path, component by component, so that a directory comes right before what is in it.
//   - A parent always comes before its children, and the first name of a file before the further ones.
//   - The Merkle tree is that of RFC 6962: a leaf is SHA-256(0, content), a node SHA-256(1, left, right).
//
// # A manifest is a stat cache, too
//
// The next backup compares inode and change time with those of the volume, and reads only files where they differ.
//
//   - Unsettled means: read this file again next time, whatever its times say.
//   - A fingerprint is the HighwayHash-64 of a block of a larger file, under the store's key. When the file has
//     changed, a block with the same fingerprint is taken to be the same block.
//
// # Limits
//
//   - A path has at most 65,535 bytes, a component of it 255.
//   - An entry has at most 16,384 xattrs. A value has at most 64 KiB, all values of an entry together 16 MiB.
//   - A piece has at most 16 MiB.
//   - A file of n bytes has at most n/65,536 + 2 pieces and n/512 + 2 holes, and at most 1,048,576 of either.
//   - Two holes are never adjacent.
//   - A record has at most 96 MiB, the names of packs 4 MiB.
//   - At most 8,388,608 files have several names.
//   - A pack's name is "<id>/<n>". An id is 1 to 128 characters of A-Z a-z 0-9 _ . - and does not begin with a dot;
//     n is at most 9999.
//
// [Reader] refuses what is out of bounds, out of order, or leads outside of the volume. [Writer] makes the same
// checks, so that everything that was written can be read; its caller reports what does not fit.
package manifest

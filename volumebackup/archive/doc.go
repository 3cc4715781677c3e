// Package archive copies volumes into a store and back. It knows two directories and no Docker; it runs inside the
// worker container, on Linux.
//
// # Backup
//
// A pass walks the volume in the order of the manifest, in step with the manifest of the pass before or, for the first
// pass, the head of the volume. It copies the entries of clean files from there. It reads everything else, cuts it into
// pieces, hashes them, looks them up, compresses and stores those that are new. One goroutine walks, several read, one
// writes, so packs and manifests are the same whatever the timing.
//
// A file is clean if type, size, mtime, ctime and inode are as recorded, and the record is settled. The record is
// unsettled if
//   - its ctime was no older than the clock's granularity: a further write might not have moved it; or
//   - it is a file whose ctime was no older than a minute when it was read. Times move when a write begins, but the
//     bytes land later: those of a direct write (InnoDB, QEMU) on a slow disk after seconds, those of a large buffered
//     write when memory becomes free for them. A minute is longer than any write is in flight; or
//   - it was read while its writers were frozen: a page that was dirty and mapped then can be written again without any
//     new time; or
//   - it changed while it was read; or
//   - it is not on a filesystem that is known to notice writes through a mapping: ext2, ext3, ext4, XFS, Btrfs, F2FS,
//     bcachefs, JFS, NILFS2 and ReiserFS do. Files on others, such as tmpfs, NFS, CIFS, FUSE, ZFS and overlayfs, are
//     read every time.
//
// A live pass reads what changed within the minute, and the frozen pass after it reads that again; of large files it
// only takes the fingerprints.
//
// After a frozen or an idle pass, a file that nobody has open for writing is settled all the same: it can have neither
// a write in flight nor a mapping. The kernel tells: only then it grants a read lease. A live pass does not ask, because
// a lease holds up whoever opens the file at that moment. What a restore makes is settled at once: nobody else has had
// it, and it is synced.
//
// The clock that file times come from tells ages. After it was set back, files that have changed are unsettled until it
// has caught up. If it is set forward by a minute while a write is in flight, we miss that write.
//
// A live pass syncs a file before it records the attributes and reads the content. The sync takes the write permission
// from mapped pages, so the next write must move the ctime. A page that is written to during the sync stays writable,
// which is why ages count from the beginning of the sync. Where that is known to suffice, sync_file_range does it: it
// writes pages back without waiting for a journal or for the cache of the disk. Extended attributes are read after the
// attributes that the file is recorded with, so that a later change of theirs moves its change time.
//
// What vanishes, may not be read, or does not fit into the format is left out and reported; of a directory that may not
// be listed, what is in it. The rest goes on. A tree may be as deep as the format allows paths to be long; what is in a
// directory with a longer path is left out with it. Memory grows with the names of the entries that have to be kept, not
// with their paths, and a walk keeps no more than 100 directories open.
//
// # Restore
//
//  1. Walk the manifest, the head and the volume in step to make a plan.
//  2. Read and check every piece that the plan needs.
//  3. Drop the head.
//  4. Carry out the plan.
//  5. Sync everything, walk the volume once more, and write its new head.
//
// A volume that is empty is filled without step 2: there is nothing in it to harm. If a piece turns out to be damaged,
// what was made is removed again. To recover from a restore that was cut short, do it again: without the head it finds
// what differs.
//
// # The way back
//
// Before a volume is changed that an archive has been made of, Secure walks that archive and the one to be restored in
// step. It reads those pieces of the former that the latter does not have at the same place: these are what rolling
// back takes. Of a file with several names it reads all of them if any name comes or goes. It stores a damaged piece
// again from the volume, in one more pack of the snapshot, and replaces the manifest by one that differs only in where
// things are.
//
// # What is not kept
//
//   - access and change times, inode numbers and flags (immutable, append only), SELinux labels
//   - space that is allocated but was never written (fallocate); it comes back as a hole
//   - a filesystem that is mounted inside the volume; it comes back as an empty directory
package archive

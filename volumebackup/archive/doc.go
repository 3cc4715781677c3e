// Package archive copies volumes into a store and back. It knows two
// directories and no Docker; it runs inside the worker container, on Linux.
//
// # Backup
//
// A pass walks the volume in the order of the manifest, in step with the
// manifest of the pass before or, for the first pass, the head of the volume. What is clean is copied from
// there; everything else is read, cut into pieces, hashed, looked up, compressed and stored. One
// goroutine walks, several read, one writes, so packs and manifests are the same whatever the timing.
//
// A file is clean if type, size, mtime, ctime and inode are as recorded, and
// what was recorded is settled. It is unsettled if
//   - its ctime was no older than the clock's granularity, as a further write might not have moved it; or
//   - it is a file whose ctime was no older than a minute when it was read. Times move when a write begins. The bytes
//     land later: those of a direct write (InnoDB, QEMU) on a slow disk after seconds, those of a large buffered
//     write when memory becomes free for them. A minute is longer than any write is in flight; or
//   - it was read while its writers were frozen: a page that was dirty and mapped then can be written again
//     without any new time; or
//   - it changed while it was read; or
//   - it is not on a filesystem that is known to notice writes through a mapping: ext2, ext3, ext4, XFS,
//     Btrfs, F2FS, bcachefs, JFS, NILFS2 and ReiserFS do. Files on others, such as tmpfs, NFS, CIFS, FUSE,
//     ZFS and overlayfs, are read every time.
//
// A live pass reads what changed within the minute, and the frozen pass after it reads that again; of large files it
// only takes the prints. A file that nobody has open for writing can have neither a write in flight nor a mapping, so
// after a frozen or an idle pass it is settled all the same. The kernel tells: it grants a read lease only then. In
// a live pass it is not asked, because a lease holds up whoever opens the file at that moment. What a restore makes is
// settled at once: nobody else has had it, and it is synced.
//
// Ages are told by the clock that file times come from. After it was set back, files that have changed are unsettled until it
// has caught up. If it is set forward by a minute while a write is in flight, that write is missed.
//
// In a live pass a file is synced before its attributes are recorded and it is
// read. That takes the write permission from mapped pages, and the next write must move its ctime. A
// page that is written to while the sync is still under way stays writable, which is why ages
// count from the beginning of the sync.
// Where that is known to suffice, sync_file_range does it: it writes pages back without waiting
// for a journal or for the cache of the disk.
// Extended attributes are read after the attributes that the file is recorded with, so that a later
// change of theirs moves its change time.
//
// What vanishes, may not be read, or does not fit into the format is left out and reported; of a
// directory that may not be listed, what is in it. That is no failure of the others. A tree may be as deep as the format
// allows paths to be long; what is in a directory with a longer path is left out with it. Memory grows with the names of what
// is kept in mind, not with their paths, and a walk keeps no more than 100 directories open.
//
// # Restore
//
// The manifest, the head and the volume are walked in step to make a plan; then
// every piece that the plan needs is read and checked; then the head is dropped and the plan is carried out; then everything is
// synced, the volume is walked once more, and its new head is written. A volume that is empty is filled without
// the check in advance, as there is nothing in it to harm; if a piece turns out to be damaged what was
// made is removed again. A restore that is cut short is repaired by doing it again: what differs is found without the head.
//
// # The way back
//
// Before a volume is changed that an archive has been made of, Secure walks that archive and the one to be restored
// in step. It reads the pieces of the former that the latter does not have at the same place: these are what going back takes. Of a
// file with several names it reads all of them if any name comes or goes. What is damaged it stores again from the
// volume, in one more pack of the snapshot, and puts a manifest in the place of the old one that differs only in where things are.
//
// # What is not kept
//
// Access and change times, inode numbers and flags (immutable, append only), SELinux labels, and space that is
// allocated but was never written (fallocate), which comes back as a hole. A
// filesystem that is mounted inside the volume is an empty directory.
package archive

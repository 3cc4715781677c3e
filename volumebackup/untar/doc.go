// Package untar unpacks a tar onto this machine, as docker cp does: under a new name, in place of a file, or into a
// directory.
//
// # Trust
//
// Nothing in the tar is believed. All files are made through an [os.Root], so that no name and no symlink leads out of the
// destination, whoever changes something there meanwhile. A tar holds one entry and what is below it; the names of all others
// begin with that of the first.
//
// # What is kept
//
// Content, times and symlinks; modes; further names of files; holes of files that are sparse in the tar. Root also gets owners,
// devices and all extended attributes. For others the files are their own, and lose the setuid and setgid bits if they were
// somebody else's. What the system does not allow is reported, and the rest goes on.
//
// A file that is there is replaced in one step, by one that is whole. A directory that is there keeps what is in it.
package untar

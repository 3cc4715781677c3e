// Package archives reaches what stores hold for snapshots: it finds the store of a snapshot, reads
// an archive's entries, and frees what no snapshot needs any more. [Service] is what the rooms
// above need of package volumebackup.
//
// Each snapshot names its store itself, by the volume's name and the ID on it. A volume of that
// name with another ID is another store, so the snapshot's archives are gone.
package archives

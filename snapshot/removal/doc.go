// Package removal removes snapshots: their tags, then what stores hold for them. It also sweeps
// what interrupted commands and removed images have left, and purges everything that this program
// has made on an engine.
//
// It never removes containers or volumes of users, nor what somebody else has built FROM a
// snapshot. A failure with one snapshot does not stop it from removing the others.
package removal

// Package verify finds out whether snapshots are whole: their labels, their images, their records, and every byte that the
// store keeps for them. It changes nothing, except that it writes a damaged record anew from the labels.
package verify

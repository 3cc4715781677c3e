// Package verify finds out whether snapshots are whole: their labels, their images, and every byte
// that the store keeps for them. It changes nothing.
package verify

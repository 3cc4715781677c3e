// Package history puts snapshots and restores in the order in which they followed each other: a tree, whose branches are
// what was done after something was restored. It is pure.
package history

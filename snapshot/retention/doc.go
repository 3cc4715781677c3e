// Package retention decides which snapshots are kept and which are removed, with a reason for each.
// It is pure: it knows no engine and no clock, and removes nothing. Package removal does.
//
// A [Policy] holds the limits. The user's settings make one, and the labels of a container change
// it for that container.
package retention

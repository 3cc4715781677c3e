// Package watch decides when containers that are watched are captured. It is pure: policies, events
// and times go in, decisions come out.
//
// For each container at most one snapshot is under way, and at most one more is due: whatever
// happens meanwhile adds nothing to that.
package watch

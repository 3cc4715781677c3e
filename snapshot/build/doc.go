// Package build has what both kinds of restore need to make a container: observing what it depends
// on, creating it in its networks, and restoring its volumes. It decides nothing; packages copies
// and replace do.
package build

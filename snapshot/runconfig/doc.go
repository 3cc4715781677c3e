// Package runconfig knows the run configuration of a container: what capturing keeps of it, and
// what a restore makes of it for a copy beside the original, or for the same container again. It
// finds what stands against a restore: networks, ports, paths and volumes that are missing or
// taken, and, for a snapshot of another engine, access to the host that nobody allowed.
//
// The package is pure. It calls no engine: what it has to know of one comes in [Surroundings]. Its
// input is not trusted, because an image from elsewhere can say anything.
package runconfig

// Package enginetest is a Docker engine in memory, for tests. It can fail, lose an answer, or
// cancel or kill its client at any call.
//
// It behaves as the tests in this package find real engines to behave: they run against both, so
// that the fake cannot lie. [FakeVolumes] stands for the workers and the store; what a volume holds
// is a text.
package enginetest

// Package hooks says which commands run in a container around the freeze of its snapshot: from
// the container's labels, and from what the user asks for. It is pure.
package hooks

package catalog

// ListOptions says which snapshots to list.
type ListOptions struct {
	Container string // exact container name; empty: all
	Filter    Filter
	Search    string // part of name or description, in any case
	Sort      Sort
	Reverse   bool
	Last      int // at most so many; 0: all
}

// Sort is the order of a list.
type Sort string

// The orders. Each begins with what people look for: newest, largest, first name.
const (
	SortCreated Sort = "created"
	SortSize    Sort = "size"
	SortName    Sort = "name"
)

package manifest

import "math"

// The limits of the format.
const (
	MaxPath      = 65535
	maxComponent = 255
	maxNsec      = 999_999_999
	maxTarget    = 65535

	// A list of names is up to 64 KiB long in the kernel. How long the values of all of
	// them may be together is the filesystem's affair.
	maxXattrs     = 16384
	maxXattr      = 64 << 10
	maxXattrBytes = 16 << 20

	// MaxPieces and MaxHoles are how many of them a file can have.
	MaxPieces = 1 << 20
	MaxHoles  = 1 << 20

	// MaxPiece is the longest piece. On an average the pieces of a file are at least minPiece
	// long, and a hole and what comes before it minHole.
	MaxPiece = 16 << 20
	minPiece = 64 << 10
	minHole  = 512

	// What a reader has to keep in memory at a time: a record, the names of packs, and
	// hashes of the paths of files with several names.
	maxRecord    = 96 << 20
	maxPackNames = 4 << 20
	maxShared    = 8 << 20

	maxOffset = math.MaxInt64
)

// pieceLimit and holeLimit are how many of them a file of that size can have.
func pieceLimit(size int64) int { return limit(size, minPiece, MaxPieces) }
func holeLimit(size int64) int  { return limit(size, minHole, MaxHoles) }

func limit(size, each int64, most int) int { return int(min(size/each+2, int64(most))) }

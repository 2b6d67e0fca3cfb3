// Package files has what the files of a database of Pebble need beyond what Pebble does
// for them.
//
// It notices that they are not all there, or not whole. Pebble takes damage at the end of
// a log or of its manifest for the end, and replays only the logs that it finds, so it
// would go on with an older state without a word. Beside its files stand two of this
// package: FormatFile says what is to be there, and MarkFile how much of it was synced.
// File systems around another keep both files in step with what Pebble does.
//
// PrivateFS keeps others from reading them.
//
// It imports package store and nothing else of the project.
package files

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/coditect/mapreduce/store"
)

// Owns reports whether a file has a name as this package gives.
func Owns(name string) bool {
	return slices.Contains([]string{FormatFile, FormatFile + newSuffix, MarkFile}, name)
}

// OfStore reports whether a file has a name as this package or Pebble gives.
// "lost+found" is in the root of every disk.
func OfStore(name string) bool {
	return OfPebble(name) || Owns(name) || name == "LOCK" || name == "lost+found"
}

// OfPebble reports whether a file has a name as Pebble gives.
func OfPebble(name string) bool {
	for _, pattern := range []string{
		"MANIFEST-[0-9]*", "OPTIONS-[0-9]*", "marker.*", "[0-9]*.log", "[0-9]*.sst", "[0-9]*.blob", "[0-9]*.dbtmp",
		"temporary.[0-9]*.dbtmp",
	} {
		if ok, _ := filepath.Match(pattern, name); ok { // the patterns are well formed
			return true
		}
	}
	return false
}

// Damaged returns an error that names the damage and the remedy.
func Damaged(what string) error {
	return fmt.Errorf("%w: %s; restore the folder from a backup, or run coditect mapreduce doctor on a copy of it",
		store.ErrCorrupt, what)
}

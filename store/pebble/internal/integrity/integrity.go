// Package integrity notices that the files of a database of Pebble are not all there, or
// not whole. Pebble takes damage at the end of a log or of its manifest for the end, and
// replays only the logs that it finds, so it would go on with an older state without a
// word. Beside its files stand two of this package: FormatFile says what is to be there,
// and MarkFile how much of it was synced. File systems around another keep both files in
// step with what Pebble does.
//
// It imports package store and nothing else of the project.
package integrity

import (
	"fmt"
	"slices"

	"github.com/coditect/mapreduce/store"
)

// Owns reports whether a file has a name as this package gives.
func Owns(name string) bool {
	return slices.Contains([]string{FormatFile, FormatFile + newSuffix, MarkFile}, name)
}

// Damaged returns an error that names the damage and the remedy.
func Damaged(what string) error {
	return fmt.Errorf("%w: %s; restore the folder from a backup, or run coditect mapreduce doctor on a copy of it",
		store.ErrCorrupt, what)
}

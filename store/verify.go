package store

import "context"

// A Damage is a file of a store that cannot be read, or not all of it.
type Damage struct {
	File string
	// Keys are what is affected: each of them may be in the file. Keys that
	// the store uses for itself may be among them.
	Keys Range
	Err  error
}

// A Verifier is a Store that can check the files in which it keeps its keys.
type Verifier interface {
	// Verify reads all files, changes nothing, and calls found with each
	// that is damaged. It returns how many it has read. An error of found
	// ends it.
	Verify(ctx context.Context, found func(Damage) error) (files int, err error)
}

//go:build fdb

package fdb

// Mapped is how errors of the client are told to callers.
var Mapped = mapError

// Unanswered opens a store without an answer of its cluster.
func Unanswered(clusterFile string) (*Store, error) {
	db, err := handles.acquire(clusterFile)
	return newStore(db, clusterFile, Config{}), err
}

package audit

import (
	"github.com/coditect/mapreduce/store/jobs/records"
)

// reader reads seals inside a transaction of its caller.
type reader struct{ *records.Records }

// A Store chains the checkpoints of jobs by hashes, and lists and verifies them.
type Store struct {
	db *records.DB
	reader
}

// New returns the operations on the records of db.
func New(db *records.DB, r *records.Records) *Store { return &Store{db, reader{r}} }

package queue

import (
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Records reads and writes the queues of a job inside a transaction of its caller.
type Records struct{ *records.Records }

// A Store reads the queues of jobs, and wakes units that sleep.
type Store struct {
	db *records.DB
	Records
}

// New returns the operations on the records of db.
func New(db *records.DB, r *records.Records) *Store { return &Store{db, Records{r}} }

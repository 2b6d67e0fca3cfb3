package lifecycle

import (
	"github.com/coditect/mapreduce/store/jobs/records"
)

// writer reads and writes what a change of a job takes inside a transaction of its caller.
type writer struct{ *records.Records }

// A Store pauses, fails, cancels, deletes and resumes jobs.
type Store struct {
	db *records.DB
	writer
}

// New returns the operations on the records of db.
func New(db *records.DB, r *records.Records) *Store { return &Store{db, writer{r}} }

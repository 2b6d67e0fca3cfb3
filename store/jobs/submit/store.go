package submit

import (
	"github.com/coditect/mapreduce/store/jobs/records"
)

// writer reads and writes submissions inside a transaction of its caller.
type writer struct{ *records.Records }

// A Store stores submissions, and makes each a job when it is whole.
type Store struct {
	db *records.DB
	writer
}

// New returns the operations on the records of db.
func New(db *records.DB, r *records.Records) *Store { return &Store{db, writer{r}} }

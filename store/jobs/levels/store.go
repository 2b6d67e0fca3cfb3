package levels

import (
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Records reads and writes what is planned of a level inside a transaction of its caller.
type Records struct{ *records.Records }

// A Store plans the levels of jobs, and says how far they are.
type Store struct {
	db *records.DB
	Records
}

// New returns the operations on the records of db.
func New(db *records.DB, r *records.Records) *Store { return &Store{db, Records{r}} }

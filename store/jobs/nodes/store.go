package nodes

import (
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Records reads and writes signs of life and doubts inside a transaction of its caller.
type Records struct{ *records.Records }

// A Store keeps which orchestrators live, and which sessions they hold.
type Store struct {
	db *records.DB
	Records
}

// New returns the operations on the records of db.
func New(db *records.DB, r *records.Records) *Store { return &Store{db, Records{r}} }

package content

import (
	"github.com/coditect/mapreduce/store/jobs/records"
)

// reader reads units inside a transaction of its caller.
type reader struct{ *records.Records }

// A Store stores and reads outputs, journals and texts: all that is kept in chunks.
type Store struct {
	db *records.DB
	reader
}

// New returns the operations on the records of db.
func New(db *records.DB, r *records.Records) *Store { return &Store{db, reader{r}} }

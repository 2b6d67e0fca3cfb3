package content

import (
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Records reads units, and reads and writes answers, inside a transaction of its caller.
type Records struct{ *records.Records }

// A Store stores and reads outputs, journals and texts: all that is kept in chunks.
type Store struct {
	db *records.DB
	Records
}

// New returns the operations on the records of db.
func New(db *records.DB) *Store { return &Store{db, Records{db.Records()}} }

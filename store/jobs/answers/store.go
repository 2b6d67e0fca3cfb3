package answers

import (
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Records reads and writes answers inside a transaction of its caller.
type Records struct{ *records.Records }

// A Store keeps what models answered, for other jobs of the same tenant.
type Store struct {
	db *records.DB
	Records
}

// New returns the operations on the records of db.
func New(db *records.DB, r *records.Records) *Store { return &Store{db, Records{r}} }

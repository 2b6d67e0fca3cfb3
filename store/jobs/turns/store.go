package turns

import (
	"github.com/coditect/mapreduce/store/jobs/grants"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// reader reads what reduces wait for inside a transaction of its caller.
type reader struct{ *records.Records }

// A Store takes reports of ended attempts and claims units, and lets go reduces whose inputs have ended.
type Store struct {
	db *records.DB
	reader
	grants grants.Records
}

// New returns the operations on the records of db.
func New(db *records.DB, r *records.Records) *Store {
	return &Store{db, reader{r}, grants.NewRecords(r)}
}

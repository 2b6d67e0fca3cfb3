package sessions

import (
	"github.com/coditect/mapreduce/store/jobs/grants"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A Store binds sessions of workers to orchestrators, and takes back what lost sessions held.
type Store struct {
	db *records.DB
	*records.Records
	grants grants.Records
	nodes  nodes.Records
}

// New returns the operations on the records of db.
func New(db *records.DB, r *records.Records) *Store {
	return &Store{db, r, grants.NewRecords(r), nodes.Records{Records: r}}
}

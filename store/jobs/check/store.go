package check

import (
	"github.com/coditect/mapreduce/store/jobs/content"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/jobs/view"
)

// A Store finds what in a store does not agree.
type Store struct {
	db *records.DB
	*records.Records
	content *content.Store
	audit   *view.Audit
}

// New returns the operations on the records of db.
func New(db *records.DB) *Store {
	return &Store{db, db.Records(), content.New(db), view.NewAudit(db)}
}

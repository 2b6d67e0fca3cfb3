package check

import (
	"github.com/coditect/mapreduce/store/jobs/check/tenants"
	"github.com/coditect/mapreduce/store/jobs/content"
	"github.com/coditect/mapreduce/store/jobs/lifecycle"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/jobs/view"
)

// A Store finds what in a store does not agree.
type Store struct {
	db      *records.DB
	content *content.Store
	tenants *tenants.Store
	levels  lifecycle.LevelRecords
	audit   *view.Audit
}

// New returns the operations on the records of db.
func New(db *records.DB) *Store {
	return &Store{db, content.New(db), tenants.New(db), lifecycle.LevelRecords{Records: db.Records()}, view.NewAudit(db)}
}

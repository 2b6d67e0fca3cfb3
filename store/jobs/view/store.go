package view

import (
	"github.com/coditect/mapreduce/store/jobs/levels"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// reader reads jobs inside a transaction of its caller.
type reader struct{ *records.Records }

// A Store reads jobs and units.
type Store struct {
	db *records.DB
	reader
	levels levels.Records
	queues queue.Records
}

// New returns the operations on the records of db.
func New(db *records.DB, r *records.Records) *Store {
	return &Store{db, reader{r}, levels.Records{Records: r}, queue.Records{Records: r}}
}

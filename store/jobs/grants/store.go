package grants

import (
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Records reads and writes grants inside a transaction of its caller.
type Records struct {
	*records.Records
	nodes nodes.Records
}

// A Store divides budgets, slots and rates among orchestrators.
type Store struct {
	db *records.DB
	Records
}

// New returns the operations on the records of db.
func New(db *records.DB, r *records.Records) *Store { return &Store{db, NewRecords(r)} }

// NewRecords returns the grants among r.
func NewRecords(r *records.Records) Records { return Records{r, nodes.Records{Records: r}} }

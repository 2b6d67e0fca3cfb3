// Package tenants checks what tenants have beside their jobs, or of all of them together: answers that
// jobs share, certificates of cascades, lists of jobs that have ended, logs, and the counters of what they
// use and have spent. These counters it also corrects.
//
// What tenants use is counted anew from their jobs while the service goes on, so that a difference counts
// only if it stands still. The package must not import the check of a job, which is above it.
package tenants

import (
	"github.com/coditect/mapreduce/store/jobs/check/walk"
	"github.com/coditect/mapreduce/store/jobs/content"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/jobs/view"
)

// A Store finds what of tenants does not agree.
type Store struct {
	db      *records.DB
	answers content.Records
	audit   *view.Audit
}

// New returns the operations on the records of db.
func New(db *records.DB) *Store {
	return &Store{db, content.Records{Records: db.Records()}, view.NewAudit(db)}
}

// A checker is one run of a check.
type checker struct {
	*Store
	*walk.Walker
}

// Steps returns the steps of a check of what tenants have, which w walks over.
func (st *Store) Steps(w *walk.Walker) []walk.Step {
	c := &checker{st, w}
	return []walk.Step{
		{What: "answers of models", Check: c.checkAnswers},
		{What: "certificates of cascades", Check: c.checkCertificates},
		{What: "lists of jobs that have ended", Check: c.checkEnded},
		{What: "logs of tenants", Check: c.checkLogs},
		{What: "what tenants use", Check: c.checkUses},
		{What: "what tenants have spent", Check: c.checkCosts},
	}
}

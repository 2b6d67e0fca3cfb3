package review

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/merge"
)

// An Applier applies decisions to a result as it goes by. Both come in the order of the records, so it
// holds the decisions about one record. It is for one goroutine.
type Applier struct {
	schema *schema.Schema
	sink   func(*mapreduce.ResultPart) error
	next   func() (*mapreduce.Decision, error, bool)
	stop   func()
	ahead  *mapreduce.Decision // that was read and is of no record yet

	count      mapreduce.ReviewCount
	statistics *merge.Statistics
	broken     map[mapreduce.BrokenConstraint]int64 // what decisions changed
}

// NewApplier returns what applies decisions, in the order of mapreduce.DecisionPage, to a result of
// records of a schema, and passes the parts on to sink. Without a decision it changes nothing. It must
// be closed.
func NewApplier(s *schema.Schema, decisions iter.Seq2[*mapreduce.Decision, error], sink func(*mapreduce.ResultPart) error) (*Applier, error) {
	a := &Applier{schema: s, sink: sink, statistics: merge.NewStatistics(s), broken: make(map[mapreduce.BrokenConstraint]int64)}
	a.next, a.stop = iter.Pull2(decisions)
	if err := a.read(); err != nil {
		a.stop()
		return nil, err
	}

	if a.ahead == nil {
		a.statistics = nil // all that the result says stays as it is
	}
	return a, nil
}

// Close lets go of the decisions.
func (a *Applier) Close() { a.stop() }

// read reads the next decision, but for those that the result has already.
func (a *Applier) read() error {
	for {
		d, err, ok := a.next()
		if !ok {
			d, err = nil, nil
		}
		if d == nil || !d.Waited {
			a.ahead = d
			return err
		}
	}
}

// Take takes the next part of the result.
func (a *Applier) Take(p *mapreduce.ResultPart) error {
	switch {
	case a.statistics == nil:
		return a.sink(p)
	case p.Record != nil:
		return a.takeRecord(p)
	case p.Summary != nil:
		return a.takeSummary(p.Summary)
	}
	return a.sink(p)
}

// compareRecords orders ids as their records stand in the result.
func compareRecords(a, b mapreduce.RecordID) int {
	u1, r1, _ := a.Parse()
	u2, r2, _ := b.Parse()
	return cmp.Or(cmp.Compare(u1, u2), cmp.Compare(r1, r2))
}

// decisionsOf reads the decisions about a record. Those about records before it have none.
func (a *Applier) decisionsOf(id mapreduce.RecordID) ([]*mapreduce.Decision, error) {
	var own, gone []*mapreduce.Decision
	for a.ahead != nil {
		order := compareRecords(a.ahead.Record, id)
		if order > 0 {
			break
		}

		if order == 0 {
			own = append(own, a.ahead)
		} else {
			if len(gone) > 0 && gone[0].Record != a.ahead.Record {
				a.count.Unfitting += int64(len(latest(gone)))
				gone = nil
			}
			gone = append(gone, a.ahead)
		}
		if err := a.read(); err != nil {
			return nil, err
		}
	}

	a.count.Unfitting += int64(len(latest(gone)))
	return latest(own), nil
}

func (a *Applier) takeRecord(p *mapreduce.ResultPart) error {
	var decisions []*mapreduce.Decision
	if p.RecordID != "" {
		var err error
		if decisions, err = a.decisionsOf(p.RecordID); err != nil {
			return err
		}
	}

	if len(decisions) == 0 {
		values, err := decodeValues(a.schema, p.Record)
		if err != nil {
			return errs.New(errs.DataLoss, "a record of the result cannot be read: %v", err)
		}
		a.statistics.Add(values)
		return a.sink(p)
	}

	before, err := newView(a.schema, p.Record)
	if err != nil {
		return errs.New(errs.DataLoss, "record %s of the result cannot be read: %v", p.RecordID, err)
	}
	after, refused, err := apply(a.schema, p.Record, decisions)
	if err != nil {
		return errs.New(errs.DataLoss, "record %s of the result cannot be read: %v", p.RecordID, err)
	}

	if len(after.reviewed) == 0 { // none of them fits
		a.count.Unfitting += int64(len(refused))
		a.statistics.Add(before.values)
		return a.sink(p)
	}
	return a.pass(p.RecordID, before, after, decisions, refused)
}

// pass passes a record on to which decisions were applied, with the passages that they rest on.
func (a *Applier) pass(id mapreduce.RecordID, before, after *view, decisions []*mapreduce.Decision, refused map[string]string) error {
	a.statistics.Add(after.values)
	for b, n := range before.broken() {
		a.broken[b] -= n
	}
	for b, n := range after.broken() {
		a.broken[b] += n
	}

	record, err := after.encode()
	if err != nil {
		return err
	}
	if err := a.sink(&mapreduce.ResultPart{Record: record, RecordID: id}); err != nil {
		return err
	}

	for _, d := range decisions {
		if _, unfit := refused[d.Field]; unfit {
			a.count.Unfitting++
			continue
		}
		a.countOf(d.Verdict, 1)
		if e, waited := before.waited[d.Field]; waited { // the result has counted it
			a.countOf(mapreduce.ReviewVerdictOf(e.Verdict), -1)
		}
		if d.Passage == nil {
			continue
		}
		if err := a.sink(&mapreduce.ResultPart{Citation: d.Passage}); err != nil {
			return err
		}
	}
	return nil
}

func (a *Applier) countOf(v mapreduce.ReviewVerdict, n int64) { Count(&a.count, v, n) }

// Count adds n to how often something was decided.
func Count(c *mapreduce.ReviewCount, v mapreduce.ReviewVerdict, n int64) {
	switch v {
	case mapreduce.ReviewAccept:
		c.Accepted += n
	case mapreduce.ReviewCorrect:
		c.Corrected += n
	case mapreduce.ReviewReject:
		c.Rejected += n
	case mapreduce.ReviewAbsent:
		c.Absent += n
	}
}

// takeSummary makes the sums those of the records as they were passed on.
func (a *Applier) takeSummary(s *mapreduce.Summary) error {
	// What is left is of records that the result does not have.
	if _, err := a.decisionsOf(mapreduce.NewRecordID(1<<62, 0)); err != nil {
		return err
	}

	shown := *s
	count := a.count
	if had := s.Reviewed; had != nil {
		count.Accepted += had.Accepted
		count.Corrected += had.Corrected
		count.Rejected += had.Rejected
		count.Absent += had.Absent
	}
	if shown.Reviewed = nil; count != (mapreduce.ReviewCount{}) {
		shown.Reviewed = &count
	}

	shown.Statistics = encode(a.statistics.Fields())
	shown.Broken = a.brokenOf(s.Broken)
	return a.sink(&mapreduce.ResultPart{Summary: &shown})
}

// brokenOf returns what records break, given what they broke before decisions were applied.
func (a *Applier) brokenOf(found []mapreduce.BrokenConstraint) []mapreduce.BrokenConstraint {
	sums := maps.Clone(a.broken)
	for _, b := range found {
		n := b.Records
		b.Records = 0
		sums[b] += n
	}

	var all []mapreduce.BrokenConstraint
	for b, n := range sums {
		if n > 0 {
			b.Records = n
			all = append(all, b)
		}
	}
	slices.SortFunc(all, func(a, b mapreduce.BrokenConstraint) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.Constraint, b.Constraint))
	})
	return all
}

package results

import (
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/dashboard/jobs"
	"github.com/coditect/mapreduce/api/dashboard/visit"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// A comparison is the page of two jobs side by side.
type comparison struct {
	A, B    *jobs.JobView
	First   string // ids as they were asked for
	Second  string
	Fields  []fieldDifference
	Rows    []recordDifference
	Records [2]int
	Alone   [2]int // records whose document the other job has not
	More    bool   // more records differ than are shown
}

// A fieldDifference counts how the two jobs agree on a field.
type fieldDifference struct {
	Name                string
	Same, Different     int
	OnlyFirst, OnlyLast int // a value in one of them alone
}

// A recordDifference is a record of which the two jobs say different things.
type recordDifference struct {
	Source string
	Cells  []difference
}

// A difference is a field with both values.
type difference struct{ Field, First, Second string }

const (
	maxCompared    = 20_000 // records of each job
	maxDifferences = 200    // that are shown
)

// LoadComparison makes the page of two jobs, field by field, whose records are put together by their
// documents, and by their order where a document has several.
func LoadComparison(v *visit.Visit) (any, error) {
	c := &comparison{First: strings.TrimSpace(v.Query.Get("a")), Second: strings.TrimSpace(v.Query.Get("b"))}
	if c.First == "" || c.Second == "" {
		return c, nil
	}

	var sides [2]*side
	for i, name := range []string{c.First, c.Second} {
		s, err := readSide(v, mapreduce.JobID(name))
		if err != nil {
			return nil, err
		}
		sides[i] = s
		c.Records[i] = len(s.records)
	}

	c.A, c.B = sides[0].job, sides[1].job
	c.compare(sides[0], sides[1])
	return c, nil
}

// A side is one of two jobs.
type side struct {
	job     *jobs.JobView
	fields  []string
	keys    []string // of records, in their order
	records map[string]*record
}

func readSide(v *visit.Visit, id mapreduce.JobID) (*side, error) {
	if !id.Valid() {
		return nil, errs.New(errs.NotFound, "%q is no id of a job; these look like mr_20260131_1a2b3c", id)
	}
	j, err := v.Jobs.GetJob(v, id)
	if err != nil {
		return nil, err
	}

	s := &side{job: jobs.ViewJob(j, v.Now), records: make(map[string]*record)}
	if s.job.IsUnmerged() {
		return nil, errs.New(errs.Precondition, "job %s has not ended, and is too large for a page to merge what it has found so far; compare it when it is complete", id)
	}
	seen := make(map[string]int)
	err = v.Jobs.GetResult(v, id, j.State != mapreduce.JobComplete, func(part *mapreduce.ResultPart) error {
		if part.Record == nil {
			return nil
		}
		if len(s.records) == maxCompared {
			return errs.New(errs.Exhausted, "job %s has more than the %d records that a page compares; coditect mapreduce eval --baseline compares them", id, maxCompared)
		}
		r, fields, err := readRecord(len(s.records)+1, part.Record)
		if err != nil {
			return errs.New(errs.DataLoss, "the result cannot be shown: %w", err)
		}
		for _, f := range fields {
			if !slices.Contains(s.fields, f) {
				s.fields = append(s.fields, f)
			}
		}

		source := strings.Join(r.marks.Sources, ", ")
		seen[source]++
		key := source
		if n := seen[source]; n > 1 {
			key += " #" + visit.Count(n)
		}
		s.keys = append(s.keys, key)
		s.records[key] = r
		return nil
	})
	return s, err
}

// compare fills the comparison of two sides.
func (c *comparison) compare(a, b *side) {
	fields := slices.Clone(a.fields)
	for _, f := range b.fields {
		if !slices.Contains(fields, f) {
			fields = append(fields, f)
		}
	}
	c.Fields = make([]fieldDifference, len(fields))
	for i, f := range fields {
		c.Fields[i].Name = f
	}

	for _, key := range a.keys {
		first, second := a.records[key], b.records[key]
		if second == nil {
			c.Alone[0]++
			continue
		}
		row := recordDifference{Source: key}
		for i, f := range fields {
			x, y := first.text(f), second.text(f)
			if c.Fields[i].add(x, y) {
				row.Cells = append(row.Cells, difference{f, x, y})
			}
		}
		if len(row.Cells) > 0 {
			if c.More = len(c.Rows) == maxDifferences; !c.More {
				c.Rows = append(c.Rows, row)
			}
		}
	}
	for _, key := range b.keys {
		if a.records[key] == nil {
			c.Alone[1]++
		}
	}
}

// add counts the values of a record, and reports whether they differ.
func (f *fieldDifference) add(x, y string) bool {
	switch {
	case x == y:
		if x != "" {
			f.Same++
		}
		return false
	case y == "":
		f.OnlyFirst++
	case x == "":
		f.OnlyLast++
	default:
		f.Different++
	}
	return true
}

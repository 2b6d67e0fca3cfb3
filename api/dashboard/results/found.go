package results

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/coditect/mapreduce/api/dashboard/jobs"
	"github.com/coditect/mapreduce/api/dashboard/visit"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// unitsForRecords is how many units one page of records looks at, of a job that goes on.
const unitsForRecords = 5_000

// A foundScan makes a page of the records of a large job that goes on: as its units found them, before they are merged,
// and of no more units than the page needs.
type foundScan struct {
	recordScan // of which it uses the fields, and what it keeps
	decode     func(*mapreduce.Job, *mapreduce.Unit) (*jobs.Output, error)
	job        *mapreduce.Job
	prefix     string
	passages   []map[string]string // addresses of those of each record that was kept, by reference
}

// loadFound makes the page of the records that units of a large job have found.
func (c *Contents) loadFound(v *visit.Visit, p *jobs.JobPage, filter recordFilter) (*recordList, error) {
	before, err := v.Number("before", 0)
	if err != nil {
		return nil, err
	}
	filter.Page, filter.Sort, filter.Is = 0, "", ""
	s := &foundScan{recordScan: recordScan{filter: filter, total: before}, decode: c.Decode, job: p.Job, prefix: v.Prefix}

	query := mapreduce.ListUnitsQuery{Job: p.ID, Outputs: true, PageSize: recordsOnPage, PageToken: v.Query.Get("from")}
	if query.PageToken == "" {
		query.PageToken = "0:0:0" // records are of documents, and level 0 reads these
	}

	for looked := 0; ; {
		page, err := v.Jobs.ListUnits(v, query)
		if err != nil {
			return nil, err
		}

		query.PageToken = page.NextPageToken
		if err := s.takeUnits(page.Units, &query.PageToken); err != nil {
			return nil, err
		}
		looked += len(page.Units)
		if query.PageToken == "" || len(s.kept) >= recordsOnPage || looked >= unitsForRecords {
			break
		}
	}

	list := &recordList{Filter: filter, Matches: len(s.kept), Total: s.total - before, Partial: true, Found: true, Rows: s.kept}
	// Which fields there are is known now.
	for i, r := range list.Rows {
		r.fill(s.fields, func(ref string) string { return s.passages[i][ref] })
	}
	for _, f := range s.fields {
		list.Fields = append(list.Fields, column{Name: f})
	}

	if query.PageToken != "" {
		list.After = v.With("from", query.PageToken, "before", strconv.Itoa(s.total))
	}
	if v.Query.Get("from") != "" {
		list.Before = v.With()
	}
	return list, nil
}

// takeUnits takes the records of units, until the page is full: next is where the page after it begins then. Units of later
// levels merge what those of level 0 found.
func (s *foundScan) takeUnits(units []*mapreduce.Unit, next *string) error {
	for _, u := range units {
		if u.Level > 0 {
			*next = ""
			return nil
		}
		if len(s.kept) >= recordsOnPage {
			*next = strconv.Itoa(u.Level) + ":" + strconv.FormatInt(u.Index, 10) + ":0"
			return nil
		}
		if u.State != mapreduce.UnitComplete || len(u.Output) == 0 {
			continue
		}
		if err := s.takeUnit(u); err != nil {
			return err
		}
	}
	return nil
}

// takeUnit takes the records that a unit found, with the passages that they rest on.
func (s *foundScan) takeUnit(u *mapreduce.Unit) error {
	out, err := s.decode(s.job, u)
	if err != nil {
		return err
	}

	passages := make(map[string]string, len(out.Citations)) // units may have references in common
	for _, c := range out.Citations {
		passages[c.Ref] = visit.DocumentPath(s.prefix, u.Job, c.Unit, c.Document, c.Start, c.End)
	}

	records, err := recordsOf(out.Records)
	if err != nil {
		return errs.New(errs.DataLoss, "the output of unit %s cannot be shown: %w", u.ID, err)
	}

	for _, data := range records {
		r, fields, err := readRecord(s.total+1, data)
		if err != nil {
			return errs.New(errs.DataLoss, "the output of unit %s cannot be shown: %w", u.ID, err)
		}
		if r.marks.Sources == nil {
			continue // it is a value of a stage, and no record
		}

		s.total++
		s.addFields(fields)
		if r.has(s.filter.Text, s.filter.In) && r.isOf(s.filter.Show) {
			s.kept, s.passages = append(s.kept, r), append(s.passages, passages)
		}
	}
	return nil
}

// recordsOf returns the records of an output: one, a list, or none.
func recordsOf(text string) ([]json.RawMessage, error) {
	data := bytes.TrimSpace([]byte(text))
	if len(data) == 0 {
		return nil, nil
	}
	if data[0] == '{' {
		return []json.RawMessage{data}, nil
	}
	if data[0] != '[' {
		return nil, nil // a value of a stage
	}

	var all []json.RawMessage
	err := json.Unmarshal(data, &all)
	return slices.DeleteFunc(all, func(one json.RawMessage) bool { return one[0] != '{' }), err
}

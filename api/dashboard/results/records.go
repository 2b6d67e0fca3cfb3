// Package results makes what pages show of what jobs came to: records with the passages that they rest on, documents with
// all that was found in them, and two jobs side by side.
//
// It asks the service and answers no request, as package jobs, of which it has the head of its pages.
package results

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/dashboard/jobs"
	"github.com/coditect/mapreduce/api/dashboard/visit"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// A recordList is the page of a job's records.
type recordList struct {
	Fields    []column
	Rows      []*record
	Filter    recordFilter
	Matches   int
	Total     int
	Partial   bool   // the job has not ended: there may be more
	Before    string // addresses of other pages; empty where there is none
	After     string
	Unordered bool // too many records match for the order that was asked for
	Facets    []facet
	Facet     string // field of which the values are counted
	Files     []string
	Report    bool   // the job wrote a report, and no records
	More      bool   // the result was not read to its end: more records may match than are counted
	Count     string // address of the page with all of them counted; empty if they are
	Found     bool   // these are records as units found them, of a job that goes on
}

// A column is a field of the records.
type column struct {
	Name  string
	Sort  string // address of the page sorted by it
	Order string // ascending or descending; empty if the page is not sorted by it
	Facet string // address that counts its values
}

// A facet is a value of a field and how many records have it.
type facet struct {
	Value, Path string
	Records     int
}

// A recordFilter is what somebody looks for among records.
type recordFilter struct {
	Text, In   string
	Show       string // unverified, missing, unsure or warned
	Is         string // of the facet: the value
	Sort       string
	Descending bool
	Page       int
}

const (
	recordsOnPage = 100
	maxSorted     = 50_000 // records that are sorted for one page
	maxFacets     = 30
	maxCounted    = 5_000 // values that are told apart for facets
)

// QuickRecords reports whether a page shows the first records of a job: no more of it is read than these.
func QuickRecords(v *visit.Visit) bool {
	for _, name := range []string{"q", "show", "sort", "facet", "page", "count"} {
		if v.Query.Get(name) != "" {
			return false
		}
	}
	return true
}

// EarlyRecords makes the page of records without any.
func EarlyRecords(v *visit.Visit) (*jobs.JobPage, error) {
	filter, err := readRecordFilter(v)
	if err != nil {
		return nil, err
	}
	p, err := jobs.OpenJob(v, "records")
	if err != nil {
		return nil, err
	}
	p.Content = &recordList{Filter: filter}
	return p, nil
}

// ErrEnough ends the reading of a result of which no more is needed.
var ErrEnough = errors.New("no more is needed")

// Contents make the pages of what jobs came to.
type Contents struct {
	Decode  func(*mapreduce.Job, *mapreduce.Unit) (*jobs.Output, error) // reads outputs of units; nil if nothing does
	Endings []string                                                    // of the files that records can be downloaded as
	Draws   bool                                                        // pages of PDF and TIFF files are drawn
}

// LoadRecords makes the page of a job's records. Sorting and counting read the whole result,
// record by record, and keep of it what the page needs.
func (c *Contents) LoadRecords(v *visit.Visit) (any, error) {
	p, err := jobs.OpenJob(v, "records")
	if err != nil {
		return nil, err
	}

	filter, err := readRecordFilter(v)
	if err != nil {
		return nil, err
	}

	s := &recordScan{filter: filter, facet: v.Query.Get("facet"), counts: make(map[string]int), places: make(map[string]string)}
	s.passage = func(c *mapreduce.Citation) string {
		return visit.DocumentPath(v.Prefix, p.ID, c.Unit, c.Document, c.Start, c.End)
	}

	partial := p.Job.State != mapreduce.JobComplete
	if p.IsUnmerged() && c.Decode != nil {
		if p.Content, err = c.loadFound(v, p, filter); err != nil {
			return nil, err
		}
		return p, nil
	}

	s.enough = p.TotalUnits >= jobs.ManyUnits && !v.Query.Has("count")
	if err := v.Jobs.GetResult(v, p.ID, partial, s.take); err != nil && !errors.Is(err, ErrEnough) {
		return nil, err
	}

	list := s.list(v)
	list.Partial = partial
	if list.More {
		list.Count = v.With("page", pageName(filter.Page), "count", "1")
	}
	list.Files = c.filesOf(v, p.ID)
	p.Content = list
	return p, nil
}

func (c *Contents) filesOf(v *visit.Visit, id mapreduce.JobID) []string {
	files := []string{v.JobPath(id, "files", "result.json")}
	for _, ending := range c.Endings {
		files = append(files, v.JobPath(id, "files", "records."+ending))
	}
	slices.Sort(files)
	return files
}

func readRecordFilter(v *visit.Visit) (recordFilter, error) {
	page, err := v.Number("page", 0)
	if err != nil {
		return recordFilter{}, err
	}

	f := recordFilter{
		Text: strings.TrimSpace(v.Query.Get("q")), In: v.Query.Get("in"), Show: v.Query.Get("show"), Is: v.Query.Get("is"),
		Sort: v.Query.Get("sort"), Descending: v.Query.Get("order") == "descending", Page: page,
	}
	if !slices.Contains([]string{"", "unverified", "missing", "unsure", "warned"}, f.Show) {
		return f, errs.Field("show", "%q is none of unverified, missing, unsure and warned", f.Show)
	}
	return f, nil
}

// A recordScan reads a result and keeps what a page shows.
type recordScan struct {
	filter  recordFilter
	facet   string
	passage func(*mapreduce.Citation) string
	enough  bool // no more is read than the page needs
	more    bool // so it was

	total, matches int
	fields         []string
	kept           []*record // that match: all of them if they are sorted, else those of the page
	last           *record   // whose citations come next
	counts         map[string]int
	places         map[string]string // of passages, by reference
	report         bool
}

// take takes the next part of the result.
func (s *recordScan) take(part *mapreduce.ResultPart) error {
	switch {
	case part.Record != nil:
		if s.full() {
			s.more = true
			return ErrEnough
		}
		s.total++
		r, fields, err := readRecord(s.total, part.Record)
		if err != nil {
			return errs.New(errs.DataLoss, "the result cannot be shown: %w", err)
		}
		s.addFields(fields)
		s.consider(r)
	case part.Citation != nil:
		if s.last != nil {
			s.places[part.Citation.Ref] = s.passage(part.Citation)
		}
	case part.Report != nil:
		s.report = true
	}
	return nil
}

// full reports whether all is there that the page shows: the records of another page tell that there is one. To sort and
// to count, all have to be read.
func (s *recordScan) full() bool {
	return s.enough && s.filter.Sort == "" && s.facet == "" && s.matches > (s.filter.Page+1)*recordsOnPage
}

// addFields adds fields that no record before had.
func (s *recordScan) addFields(fields []string) {
	for _, f := range fields {
		if !slices.Contains(s.fields, f) {
			s.fields = append(s.fields, f)
		}
	}
}

// consider keeps a record if it is looked for and belongs on the page.
func (s *recordScan) consider(r *record) {
	s.last = nil
	if !r.has(s.filter.Text, s.filter.In) || !r.isOf(s.filter.Show) {
		return
	}

	if s.facet != "" {
		value := r.text(s.facet)
		if _, known := s.counts[value]; known || len(s.counts) < maxCounted {
			s.counts[value]++
		}
		if s.filter.Is != "" && value != s.filter.Is {
			return
		}
	}

	s.matches++
	first := s.filter.Page * recordsOnPage
	onPage := s.matches > first && s.matches <= first+recordsOnPage
	if s.sorts() || onPage {
		s.kept = append(s.kept, r)
		s.last = r
	}
}

// sorts reports whether the records are sorted: not if they are too many.
func (s *recordScan) sorts() bool { return s.filter.Sort != "" && s.matches <= maxSorted }

// list makes the page of what was kept.
func (s *recordScan) list(v *visit.Visit) *recordList {
	list := &recordList{
		Filter: s.filter, Matches: s.matches, Total: s.total, Facet: s.facet, Report: s.report, More: s.more,
		Unordered: s.filter.Sort != "" && s.matches > maxSorted,
	}

	rows := s.kept
	if s.filter.Sort != "" {
		slices.SortStableFunc(rows, s.compare)
		first := min(s.filter.Page*recordsOnPage, len(rows))
		rows = rows[first:min(first+recordsOnPage, len(rows))]
	}
	for _, r := range rows {
		r.fill(s.fields, func(ref string) string { return s.places[ref] })
	}
	list.Rows = rows

	for _, f := range s.fields {
		list.Fields = append(list.Fields, s.column(v, f))
	}
	list.Facets = s.facets(v)
	if s.filter.Page > 0 {
		list.Before = v.With("page", pageName(s.filter.Page-1))
	}
	if (s.filter.Page+1)*recordsOnPage < s.matches {
		list.After = v.With("page", pageName(s.filter.Page+1))
	}
	return list
}

// pageName writes the number of a page; the first needs none.
func pageName(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func (s *recordScan) column(v *visit.Visit, field string) column {
	c := column{Name: field, Sort: v.With("sort", field, "order", ""), Facet: v.With("facet", field, "is", "")}
	if s.filter.Sort == field {
		c.Order = "ascending"
		c.Sort = v.With("sort", field, "order", "descending")
		if s.filter.Descending {
			c.Order, c.Sort = "descending", v.With("sort", "", "order", "")
		}
	}
	return c
}

// compare orders records by the field that they are sorted by: numbers before texts, and what is
// missing last in both directions.
func (s *recordScan) compare(a, b *record) int {
	x, y := a.text(s.filter.Sort), b.text(s.filter.Sort)
	if x == "" || y == "" {
		return cmp.Compare(visit.Btoi(x == ""), visit.Btoi(y == ""))
	}

	order := 0
	n, errX := strconv.ParseFloat(x, 64)
	m, errY := strconv.ParseFloat(y, 64)
	switch {
	case errX == nil && errY == nil:
		order = cmp.Compare(n, m)
	case errX == nil || errY == nil:
		order = cmp.Compare(visit.Btoi(errX != nil), visit.Btoi(errY != nil))
	default:
		order = cmp.Or(cmp.Compare(strings.ToLower(x), strings.ToLower(y)), cmp.Compare(x, y))
	}
	if s.filter.Descending {
		order = -order
	}
	return order
}

// facets are the values that most records have.
func (s *recordScan) facets(v *visit.Visit) []facet {
	all := make([]facet, 0, len(s.counts))
	for value, n := range s.counts {
		all = append(all, facet{value, v.With("is", value), n})
	}
	slices.SortFunc(all, func(a, b facet) int {
		return cmp.Or(cmp.Compare(b.Records, a.Records), cmp.Compare(a.Value, b.Value))
	})
	return all[:min(len(all), maxFacets)]
}

package results

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A citationJSON is an entry of result.json's citations.
type citationJSON struct {
	Document  mapreduce.DocumentID `json:"document_id"`
	Start     int64                `json:"start"` // code points, half-open
	End       int64                `json:"end"`
	ByteStart int64                `json:"byte_start"`
	ByteEnd   int64                `json:"byte_end"`
	Quote     string               `json:"quote"`
	Grade     string               `json:"grade"`
	Unit      mapreduce.UnitID     `json:"unit_id"`
	Outside   bool                 `json:"outside,omitempty"`      // of what the unit read
	Others    int                  `json:"other_places,omitempty"` // that are as good
	Coverage  float64              `json:"coverage,omitempty"`     // of fuzzy ones
	Density   float64              `json:"density,omitempty"`
}

// A failedUnit is an entry of failed_units.
type failedUnit struct {
	Unit   mapreduce.UnitID `json:"unit_id"`
	Errors []string         `json:"errors"`
}

// result writes result.json. Which of its sections a part goes into is known at
// once, but whether the records are a list only at the end, so each section has
// a file of its own until then.
func (w *writer) result(ctx context.Context) error {
	s, err := newSections(w)
	if err != nil {
		return err
	}
	w.report.begin(w.job, w.config.ReportRecords)
	if err := w.service.GetResult(ctx, w.config.Job, w.config.Partial, s.take); err != nil {
		return err
	}
	if s.summary == nil {
		return errors.New("the result is incomplete: the service ended it early")
	}
	w.report.summary = s.summary
	return w.dir.fill("result.json", s.assemble)
}

// sections are the parts of result.json that may be large.
type sections struct {
	w         *writer
	records   list
	citations list
	sources   list
	failed    list
	conflicts list
	dropped   list
	removed   list
	cited     map[string]bool // refs in citations
	summary   *mapreduce.Summary
}

func newSections(w *writer) (*sections, error) {
	s := &sections{w: w, cited: make(map[string]bool)}
	for _, l := range []struct {
		name   string
		prefix string
		list   *list
	}{
		{".records", "    ", &s.records},
		{".citations", "    ", &s.citations},
		{".sources", "    ", &s.sources},
		{".failed", "    ", &s.failed},
		{".conflicts", "    ", &s.conflicts},
		{".dropped", "    ", &s.dropped},
		{".removed", "    ", &s.removed},
	} {
		f, err := w.dir.scratch(l.name)
		if err != nil {
			return nil, err
		}
		*l.list = list{out: f, prefix: l.prefix}
	}
	return s, nil
}

// take writes one part of the result.
func (s *sections) take(p *mapreduce.ResultPart) error {
	switch {
	case p.Job != nil:
		return nil // known
	case p.Citation != nil:
		return s.citation(p.Citation)
	case p.Source != nil:
		return s.source(p.Source)
	case p.Summary != nil:
		s.summary = p.Summary
		return nil
	case p.Conflict != nil:
		return errors.Join(s.conflicts.add("", p.Conflict), s.w.report.conflicts.take(p.Conflict))
	case p.Dropped != nil:
		return errors.Join(s.dropped.add("", p.Dropped), s.w.report.dropped.take(p.Dropped))
	case p.Removed != nil:
		return errors.Join(s.removed.add("", p.Removed), s.w.report.removed.take(p.Removed))
	}
	if err := s.records.add("", p.Record); err != nil {
		return fmt.Errorf("record %d: %w", s.records.n, err)
	}
	return s.w.report.record(p.Record)
}

func (s *sections) citation(c *mapreduce.Citation) error {
	if s.cited[c.Ref] {
		return nil // by another record
	}
	s.cited[c.Ref] = true
	s.w.report.citation(c)
	return s.citations.addValue(c.Ref, citationJSON{
		Document: c.Document, Start: c.Start, End: c.End, ByteStart: c.ByteStart, ByteEnd: c.ByteEnd,
		Quote: c.Quote, Grade: c.Grade, Unit: c.Unit,
		Outside: c.Outside, Others: c.Others, Coverage: c.Coverage, Density: c.Density,
	})
}

func (s *sections) source(src *mapreduce.Source) error {
	if len(src.Errors) == 0 {
		return s.sources.addValue("", src.Unit)
	}
	s.w.report.failure(src)
	return s.failed.addValue("", failedUnit{src.Unit, src.Errors})
}

// assemble puts result.json together.
func (s *sections) assemble(out *file) error {
	job := s.w.job
	id, tokens := job.ID, job.TotalTokens
	if as := s.w.config.As; as != nil {
		id, tokens = as.ID, as.TotalTokens
	}
	members := []func() error{
		func() error { return member(out, "job_id", id) },
		func() error { return member(out, "status", job.State.String()) },
		func() error { return s.aggregated(out) },
		func() error { return section(out, "citations", "{", &s.citations, "}") },
		func() error { return section(out, "source_units", "[", &s.sources, "]") },
		func() error { return section(out, "failed_units", "[", &s.failed, "]") },
		func() error { return member(out, "deduplication_stats", orEmpty(s.summary.Deduplication, "{}")) },
		func() error { return section(out, "conflict_resolutions", "[", &s.conflicts, "]") },
		func() error { return section(out, "dropped_citations", "[", &s.dropped, "]") },
		func() error { return section(out, "removed_references", "[", &s.removed, "]") },
		func() error { return member(out, "statistics", orEmpty(s.summary.Statistics, "{}")) },
		func() error { return member(out, "total_tokens", tokens.Total()) },
		func() error { return member(out, "skipped_documents", skippedOf(s.summary)) },
		func() error { return member(out, "coverage", CoverageOf(job.Coverage)) },
	}
	return object(out, members)
}

// object writes an object of members, each of which writes itself.
func object(out *file, members []func() error) error {
	for i, m := range members {
		before := "{\n"
		if i > 0 {
			before = ",\n"
		}
		if _, err := out.WriteString(before); err != nil {
			return err
		}
		if err := m(); err != nil {
			return err
		}
	}
	_, err := out.WriteString("\n}\n")
	return err
}

// aggregated writes the records: a list, or one object if the schema asks for
// one summary over all documents.
func (s *sections) aggregated(out *file) error {
	if !s.summary.Single {
		return section(out, "aggregated_data", "[", &s.records, "]")
	}
	if s.records.n > 1 {
		return fmt.Errorf("one summary was asked for, and there are %d records", s.records.n)
	}
	if s.records.n == 0 {
		return member(out, "aggregated_data", nil)
	}
	return section(out, "aggregated_data", "", &s.records, "")
}

// section writes a member whose elements are in a file of their own.
func section(out *file, name, open string, l *list, end string) error {
	if _, err := fmt.Fprintf(out, "  %q: %s", name, open); err != nil {
		return err
	}
	if err := l.out.into(out); err != nil {
		return err
	}
	if l.n > 0 && end != "" {
		end = "\n  " + end
	}
	_, err := out.WriteString(end)
	return err
}

// member writes a member of the outermost object.
func member(out *file, name string, v any) error {
	data, err := encode(v)
	if err == nil {
		data, err = indented(data, "  ")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	_, err = fmt.Fprintf(out, "  %q: %s", name, data)
	return err
}

// A skippedDocument is an entry of skipped_documents.
type skippedDocument struct {
	Document mapreduce.DocumentID `json:"document_id"`
	Reason   string               `json:"reason"`
}

func skippedOf(s *mapreduce.Summary) []skippedDocument {
	list := make([]skippedDocument, len(s.Skipped))
	for i, d := range s.Skipped {
		list[i] = skippedDocument{d.Document, d.Reason}
	}
	return list
}

// A report is what the reports for people show; only so much of a result as
// somebody may read is kept.
type report struct {
	job       *mapreduce.Job
	limit     int
	records   []record
	more      int // records that are not shown
	wanted    map[string]bool
	citations map[string]*mapreduce.Citation
	failures  []failedUnit
	moreFails int
	conflicts shownList[conflictLine]
	dropped   shownList[droppedView]
	removed   shownList[removedView]
	summary   *mapreduce.Summary
}

// A shownList is the first entries of one of the result's lists.
type shownList[T any] struct {
	limit   int
	entries []T
	more    int // that are not among entries
}

// take reads an entry, if it is to be shown.
func (l *shownList[T]) take(data []byte) error {
	if len(l.entries) == l.limit {
		l.more++
		return nil
	}
	var entry T
	if err := json.Unmarshal(data, &entry); err != nil {
		return err
	}
	l.entries = append(l.entries, entry)
	return nil
}

func (r *report) begin(job *mapreduce.Job, limit int) {
	r.job, r.limit = job, limit
	r.conflicts.limit, r.dropped.limit, r.removed.limit = limit, limit, limit
	r.wanted, r.citations = make(map[string]bool), make(map[string]*mapreduce.Citation)
}

func (r *report) record(data []byte) error {
	if len(r.records) == r.limit {
		r.more++
		return nil
	}
	rec, err := parseRecord(data)
	if err != nil {
		return err
	}
	r.records = append(r.records, rec)
	for _, refs := range rec.citations {
		for _, ref := range refs {
			r.wanted[ref] = true
		}
	}
	return nil
}

func (r *report) citation(c *mapreduce.Citation) {
	if r.wanted[c.Ref] {
		r.citations[c.Ref] = c
	}
}

func (r *report) failure(s *mapreduce.Source) {
	if len(r.failures) == r.limit {
		r.moreFails++
		return
	}
	r.failures = append(r.failures, failedUnit{s.Unit, s.Errors})
}

// A record is one of aggregated_data, taken apart.
type record struct {
	names      []string // of values, sorted
	values     map[string]json.RawMessage
	sources    []string
	citations  map[string][]string
	confidence map[string]float64
	said       map[string]float64
	missing    map[string]string
	unverified map[string]json.RawMessage
}

func parseRecord(data []byte) (record, error) {
	r := record{values: make(map[string]json.RawMessage)}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return r, err
	}
	for name, into := range map[string]any{
		"_sources": &r.sources, "_citations": &r.citations, "_confidence": &r.confidence, "_said": &r.said,
		"_missing": &r.missing, "_unverified": &r.unverified,
	} {
		if m, ok := members[name]; ok {
			if err := json.Unmarshal(m, into); err != nil {
				return r, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	for name, v := range members {
		if name[:min(1, len(name))] != "_" {
			r.names = append(r.names, name)
			r.values[name] = v
		}
	}
	slices.Sort(r.names)
	return r, nil
}

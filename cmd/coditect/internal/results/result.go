package results

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/lineage"
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
	Outside   bool                 `json:"outside,omitempty"`      // outside of the chunk that the unit read
	Others    int                  `json:"other_places,omitempty"` // other places that match as well
	Coverage  float64              `json:"coverage,omitempty"`     // for fuzzy citations
	Density   float64              `json:"density,omitempty"`
	Via       *lineage.Via         `json:"via,omitempty"` // if the document is a record of another job
	Location  *locationJSON        `json:"location,omitempty"`
	Label     string               `json:"label,omitempty"`
}

// A locationJSON is the location of a citation.
type locationJSON struct {
	Place     string    `json:"place"`
	Page      int       `json:"page,omitempty"`
	Boxes     []boxJSON `json:"boxes,omitempty"`
	Sheet     string    `json:"sheet,omitempty"`
	Cell      string    `json:"cell,omitempty"`
	Slide     int       `json:"slide,omitempty"`
	Paragraph int       `json:"paragraph,omitempty"`
	Part      string    `json:"part,omitempty"`
	Header    string    `json:"header,omitempty"`
	Chapter   string    `json:"chapter,omitempty"`
}

// A boxJSON is a box of a location, in points from the top left corner of its page.
type boxJSON struct {
	Page   int     `json:"page"`
	Left   float64 `json:"left"`
	Top    float64 `json:"top"`
	Right  float64 `json:"right"`
	Bottom float64 `json:"bottom"`
}

// locationOf returns a location as it is written; nil of none.
func locationOf(l *mapreduce.Location) *locationJSON {
	if l == nil {
		return nil
	}
	out := &locationJSON{
		Place: l.String(), Page: l.Page, Sheet: l.Sheet, Cell: l.Cell, Slide: l.Slide, Paragraph: l.Paragraph,
		Part: l.Part, Header: l.Header, Chapter: l.Chapter,
	}
	for _, b := range l.Boxes {
		out.Boxes = append(out.Boxes, boxJSON(b))
	}
	return out
}

// A failedUnit is an entry of failed_units.
type failedUnit struct {
	Unit   mapreduce.UnitID `json:"unit_id"`
	Errors []string         `json:"errors"`
}

// writeResult writes result.json. Only the end of the stream tells whether the
// records are a list or one object, so each section has a scratch file until then.
func (w *writer) writeResult(ctx context.Context) error {
	s, err := newSections(w)
	if err != nil {
		return err
	}
	w.report.startReport(w.job, w.config.ReportRecords, w.config.PageRecords)
	also, err := w.newRecordFiles()
	if err != nil {
		return err
	}
	add := func(p *mapreduce.ResultPart) error { return errors.Join(s.addPart(p), also.addPart(p)) }
	if err := w.service.GetResult(ctx, w.config.Job, w.config.Partial, add); err != nil {
		return err
	}
	if s.summary == nil {
		return errEndedEarly
	}
	w.report.summary = s.summary
	if err := also.close(); err != nil {
		return err
	}
	close(w.read)
	return w.dir.writeFile("result.json", s.writeAll)
}

// errEndedEarly is the error for a result without its last part.
var errEndedEarly = errors.New("the result is incomplete: the service ended it early")

// resultSections are the sections of result.json that may be large.
type resultSections struct {
	w         *writer
	records   listWriter
	citations listWriter
	sources   listWriter
	failed    listWriter
	conflicts listWriter
	dropped   listWriter
	removed   listWriter
	cited     map[string]bool // refs in citations
	summary   *mapreduce.Summary
}

func newSections(w *writer) (*resultSections, error) {
	s := &resultSections{w: w, cited: make(map[string]bool)}
	for _, l := range []struct {
		name string
		list *listWriter
	}{
		{".records", &s.records},
		{".citations", &s.citations},
		{".sources", &s.sources},
		{".failed", &s.failed},
		{".conflicts", &s.conflicts},
		{".dropped", &s.dropped},
		{".removed", &s.removed},
	} {
		f, err := w.dir.createScratch(l.name)
		if err != nil {
			return nil, err
		}
		*l.list = listWriter{out: f}
	}
	return s, nil
}

// addPart writes one part of the result into its section.
func (s *resultSections) addPart(p *mapreduce.ResultPart) error {
	switch {
	case p.Job != nil:
		return nil // already known
	case p.Citation != nil:
		return s.addCitation(p.Citation)
	case p.Source != nil:
		return s.addSource(p.Source)
	case p.Summary != nil:
		s.summary = p.Summary
		return nil
	case p.Conflict != nil:
		return errors.Join(s.conflicts.add("", p.Conflict), s.w.report.conflicts.addEntry(p.Conflict), s.w.report.page.addConflict(p.Conflict))
	case p.Dropped != nil:
		return errors.Join(s.dropped.add("", p.Dropped), s.w.report.dropped.addEntry(p.Dropped))
	case p.Report != nil:
		return s.w.report.setWritten(p.Report)
	case p.Removed != nil:
		return errors.Join(s.removed.add("", p.Removed), s.w.report.removed.addEntry(p.Removed))
	}
	s.w.countRecord()
	if err := s.records.add("", p.Record); err != nil {
		return fmt.Errorf("record %d: %w", s.records.n, err)
	}
	return s.w.report.addRecord(p.Record)
}

func (s *resultSections) addCitation(c *mapreduce.Citation) error {
	if s.cited[c.Ref] {
		return nil // another record cites it too
	}
	s.cited[c.Ref] = true
	s.w.report.addCitation(c)
	return s.citations.addValue(c.Ref, citationJSON{
		Document: c.Document, Start: c.Start, End: c.End, ByteStart: c.ByteStart, ByteEnd: c.ByteEnd,
		Quote: c.Quote, Grade: c.Grade, Unit: c.Unit,
		Outside: c.Outside, Others: c.Others, Coverage: c.Coverage, Density: c.Density,
		Via: lineage.Of(c), Location: locationOf(c.Location), Label: c.Label,
	})
}

func (s *resultSections) addSource(src *mapreduce.Source) error {
	if len(src.Errors) == 0 {
		return s.sources.addValue("", src.Unit)
	}
	s.w.report.addFailure(src)
	return s.failed.addValue("", failedUnit{src.Unit, src.Errors})
}

// writeAll assembles result.json from its sections.
func (s *resultSections) writeAll(out *file) error {
	job := s.w.job
	id, tokens := job.ID, job.TotalTokens
	if as := s.w.config.As; as != nil {
		id, tokens = as.ID, as.TotalTokens
	}
	members := []func() error{
		func() error { return writeMember(out, "job_id", id) },
		func() error { return writeMember(out, "status", job.State.String()) },
		func() error { return s.writeRecords(out) },
		func() error { return writeSection(out, "citations", "{", &s.citations, "}") },
		func() error { return writeSection(out, "source_units", "[", &s.sources, "]") },
		func() error { return writeSection(out, "failed_units", "[", &s.failed, "]") },
		func() error { return writeMember(out, "deduplication_stats", orEmpty(s.summary.Deduplication, "{}")) },
		func() error { return writeSection(out, "conflict_resolutions", "[", &s.conflicts, "]") },
		func() error { return writeSection(out, "dropped_citations", "[", &s.dropped, "]") },
		func() error { return writeSection(out, "removed_references", "[", &s.removed, "]") },
		func() error { return writeMember(out, "statistics", orEmpty(s.summary.Statistics, "{}")) },
		func() error { return writeMember(out, "total_tokens", tokens.Total()) },
		func() error { return writeMember(out, "skipped_documents", skippedOf(s.summary)) },
		func() error { return writeMember(out, "coverage", CoverageOf(job.Coverage)) },
		func() error { return writeMember(out, "warnings", warningsOf(s.summary)) },
	}
	if written := s.w.report.written; written != nil {
		members = slices.Insert(members, 3, func() error { return writeMember(out, "report", json.RawMessage(written.raw)) })
	}
	return writeObject(out, members)
}

// writeObject writes an object. Each function writes one member.
func writeObject(out *file, members []func() error) error {
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

// writeRecords writes the records: a list, or one object if the schema describes one
// summary over all documents.
func (s *resultSections) writeRecords(out *file) error {
	if !s.summary.Single {
		return writeSection(out, "aggregated_data", "[", &s.records, "]")
	}
	if s.records.n > 1 {
		return fmt.Errorf("one summary was asked for, and there are %d records", s.records.n)
	}
	if s.records.n == 0 {
		return writeMember(out, "aggregated_data", nil)
	}
	return writeSection(out, "aggregated_data", "", &s.records, "")
}

// maxIndented is the size, in bytes, up to which a section is indented for people. The
// elements of a larger one stand on a line each: indented, they would be twice as large.
const maxIndented = 1 << 20

// writeSection writes a member whose elements are in a scratch file.
func writeSection(out *file, name, open string, l *listWriter, end string) error {
	if _, err := fmt.Fprintf(out, "  %q: %s", name, open); err != nil {
		return err
	}
	if l.size <= maxIndented && l.n > 0 {
		return writeIndented(out, open, l, end)
	}
	if err := l.out.moveInto(out); err != nil {
		return err
	}
	if l.n > 0 && end != "" {
		end = "\n  " + end
	}
	_, err := out.WriteString(end)
	return err
}

// writeIndented writes the rest of a small section.
func writeIndented(out *file, open string, l *listWriter, end string) error {
	data, err := l.out.readAll()
	if err != nil {
		return err
	}
	text, err := indentJSON(slices.Concat([]byte(open), data, []byte(end)), "  ")
	if err == nil {
		_, err = out.Write(bytes.TrimPrefix(text, []byte(open)))
	}
	return err
}

// writeMember writes a member of the outermost object.
func writeMember(out *file, name string, v any) error {
	data, err := encodeJSON(v)
	if err == nil {
		data, err = indentJSON(data, "  ")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	_, err = fmt.Fprintf(out, "  %q: %s", name, data)
	return err
}

// A SkippedDocument is an entry of skipped_documents of result.json.
type SkippedDocument struct {
	Document mapreduce.DocumentID `json:"document_id"`
	Reason   string               `json:"reason"`
}

func skippedOf(s *mapreduce.Summary) []SkippedDocument {
	list := make([]SkippedDocument, len(s.Skipped))
	for i, d := range s.Skipped {
		list[i] = SkippedDocument{d.Document, d.Reason}
	}
	return list
}

// A warning is an entry of warnings.
type warning struct {
	Field      string `json:"field"`
	Constraint string `json:"constraint"`
	Records    int64  `json:"records"`
	Message    string `json:"message"`
}

func warningsOf(s *mapreduce.Summary) []warning {
	list := make([]warning, len(s.Broken))
	for i, b := range s.Broken {
		list[i] = warning{b.Field, b.Constraint, b.Records, b.String()}
	}
	return list
}

// A report collects the content of the reports for people. It keeps only the first
// entries of each list.
type report struct {
	job       *mapreduce.Job
	page      *pageBuilder
	limit     int
	total     int // records
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
	written   *writtenReport // nil if the job did not write one
}

// A shownList holds the first entries of one of the result's lists.
type shownList[T any] struct {
	limit   int
	entries []T
	more    int // number of the entries left out
}

// total returns how many entries the list of the result has.
func (l *shownList[T]) total() int { return len(l.entries) + l.more }

// addEntry adds an entry, or counts it if the limit is reached.
func (l *shownList[T]) addEntry(data []byte) error {
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

func (r *report) startReport(job *mapreduce.Job, limit, pageLimit int) {
	r.job, r.limit, r.page = job, limit, newPageBuilder(pageLimit)
	r.conflicts.limit, r.dropped.limit, r.removed.limit = limit, limit, limit
	r.wanted, r.citations = make(map[string]bool), make(map[string]*mapreduce.Citation)
}

func (r *report) addRecord(data []byte) error {
	r.total++
	if len(r.records) == r.limit && r.page.isFull() {
		r.more++
		r.page.data.More++
		return nil
	}
	rec, err := parseRecord(data)
	if err != nil {
		return err
	}
	r.page.addRecord(rec, len(data))
	if len(r.records) == r.limit {
		r.more++
		return nil
	}
	r.records = append(r.records, rec)
	for _, refs := range rec.citations {
		for _, ref := range refs {
			r.wanted[ref] = true
		}
	}
	return nil
}

func (r *report) addCitation(c *mapreduce.Citation) {
	r.page.addCitation(c)
	if r.wanted[c.Ref] {
		r.citations[c.Ref] = c
	}
}

func (r *report) addFailure(s *mapreduce.Source) {
	if len(r.failures) == r.limit {
		r.moreFails++
		return
	}
	r.failures = append(r.failures, failedUnit{s.Unit, s.Errors})
}

// A record is a decoded record of aggregated_data.
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

// parseRecord reads a record. A value that is no object, as the text of a report, is
// shown as a record with that one value.
func parseRecord(data []byte) (record, error) {
	r := record{values: make(map[string]json.RawMessage)}
	if data = bytes.TrimSpace(data); len(data) > 0 && data[0] != '{' {
		r.names, r.values["value"] = []string{"value"}, data
		return r, nil
	}
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

// Package resultfile writes result.json out of the parts of a result, for the command line,
// the service and its clients alike. docs/results.md describes the file.
//
// The order of the parts is not that of the file, and only the last part tells whether the
// records are a list or one object. So each section of the file has a Scratch until then.
//
// A Record is a record of such a result as a document of another job; a citation of that document
// leads back, by a Via, to the citations that the record rests on.
package resultfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// ErrEndedEarly is the error for a result without its last part.
var ErrEndedEarly = errors.New("the result is incomplete: the service ended it early")

// Sections are the sections of result.json.
type Sections struct {
	records   List
	citations List
	sources   List
	failed    List
	conflicts List
	dropped   List
	removed   List
	evidence  List
	cited     refSet          // refs in citations
	buffer    []byte          // of the latest citation
	report    json.RawMessage // nil if the job did not write one
	summary   *mapreduce.Summary
}

// NewSections returns the sections of a result of which no part has come. It calls create
// with the name of each section that may be large. A section whose Scratch is nil is left
// out, and the file cannot be written then.
func NewSections(create func(section string) (Scratch, error)) (*Sections, error) {
	s := new(Sections)
	for _, l := range []struct {
		name string
		list *List
	}{
		{"records", &s.records},
		{"citations", &s.citations},
		{"sources", &s.sources},
		{"failed", &s.failed},
		{"conflicts", &s.conflicts},
		{"dropped", &s.dropped},
		{"removed", &s.removed},
		{"evidence", &s.evidence},
	} {
		scratch, err := create(l.name)
		if err != nil {
			return nil, err
		}
		l.list.Out = scratch
	}

	return s, nil
}

// AddPart writes one part of the result into its section. It reports whether the part was
// new: a citation that several records share comes several times.
func (s *Sections) AddPart(p *mapreduce.ResultPart) (added bool, err error) {
	switch {
	case p.Job != nil:
	case p.Citation != nil:
		return s.addCitation(p.Citation)
	case p.Source != nil:
		err = s.addSource(p.Source)
	case p.Summary != nil:
		s.summary = p.Summary
	case p.Conflict != nil:
		err = s.conflicts.Add("", p.Conflict)
	case p.Dropped != nil:
		err = s.dropped.Add("", p.Dropped)
	case p.Report != nil:
		s.report = p.Report
	case p.Evidence != nil:
		err = s.evidence.AddValue("", EvidenceOf(p.Evidence))
	case p.Removed != nil:
		err = s.removed.Add("", p.Removed)
	default:
		if err = s.records.Add("", p.Record); err != nil {
			err = fmt.Errorf("record %d: %w", s.records.n, err)
		}
	}
	return true, err
}

func (s *Sections) addCitation(c *mapreduce.Citation) (added bool, err error) {
	if s.citations.Out == nil || !s.cited.add(c.Ref) {
		return false, nil // another record cites it too
	}
	entry := CitationOf(c)
	data, ok := entry.appendTo(append(appendText(s.buffer[:0], c.Ref), ": "...))
	if s.buffer = data; ok {
		return true, s.citations.addWritten(data)
	}
	return true, s.citations.AddValue(c.Ref, entry)
}

func (s *Sections) addSource(src *mapreduce.Source) error {
	if len(src.Errors) == 0 {
		return s.sources.AddValue("", src.Unit)
	}
	return s.failed.AddValue("", FailedOf(src))
}

// Summary returns the last part, or ErrEndedEarly if it has not come.
func (s *Sections) Summary() (*mapreduce.Summary, error) {
	if s.summary == nil {
		return nil, ErrEndedEarly
	}
	return s.summary, nil
}

// WriteFile writes result.json of a job to out, once all parts have come. Sections can be
// written once.
func (s *Sections) WriteFile(out io.Writer, job *mapreduce.Job) error {
	summary, err := s.Summary()
	if err != nil {
		return err
	}

	member := func(name string, v any) func() error {
		return func() error { return WriteMember(out, name, v) }
	}
	list := func(name, open string, l *List, end string) func() error {
		return func() error { return WriteSection(out, name, open, l, end) }
	}

	members := []func() error{
		member("job_id", job.ID),
		member("status", job.State.String()),
		func() error { return s.writeRecords(out) },
		list("citations", "{", &s.citations, "}"),
		list("source_units", "[", &s.sources, "]"),
		list("failed_units", "[", &s.failed, "]"),
		member("deduplication_stats", OrEmpty(summary.Deduplication, "{}")),
		list("conflict_resolutions", "[", &s.conflicts, "]"),
		list("dropped_citations", "[", &s.dropped, "]"),
		list("removed_references", "[", &s.removed, "]"),
		member("statistics", OrEmpty(summary.Statistics, "{}")),
		member("total_tokens", job.TotalTokens.Total()),
		member("skipped_documents", SkippedOf(summary.Skipped)),
		member("coverage", CoverageOf(job.Coverage)),
		member("warnings", warningsOf(summary)),
	}

	if len(summary.Notes) > 0 {
		members = append(members, member("document_notes", NotesOf(summary)))
	}

	if len(summary.Cascades) > 0 {
		members = append(members, member("cascades", OrEmpty(summary.Cascades, "[]")))
	}

	if summary.Reviewed != nil {
		members = append(members, member("review", ReviewOf(summary.Reviewed)))
	}

	if s.evidence.n > 0 {
		members = slices.Insert(members, 4, list("evidence", "[", &s.evidence, "]"))
	} else if err := s.evidence.Out.MoveTo(io.Discard); err != nil { // nothing is in it; this lets go of it
		return err
	}

	if s.report != nil {
		members = slices.Insert(members, 3, member("report", s.report))
	}

	return WriteObject(out, members)
}

// writeRecords writes the records: a list, or one object if the schema describes one
// summary over all documents.
func (s *Sections) writeRecords(out io.Writer) error {
	if !s.summary.Single {
		return WriteSection(out, "aggregated_data", "[", &s.records, "]")
	}
	if s.records.n > 1 {
		return fmt.Errorf("one summary was asked for, and there are %d records", s.records.n)
	}
	if s.records.n == 0 {
		return WriteMember(out, "aggregated_data", nil)
	}
	return WriteSection(out, "aggregated_data", "", &s.records, "")
}

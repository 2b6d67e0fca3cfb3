package results

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/resultfile"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/folder"
	"github.com/coditect/mapreduce/internal/outcome/output"
)

// writeResult writes result.json. Only the end of the stream tells whether the
// records are a list or one object, so each section has a scratch file until then.
func (w *writer) writeResult(ctx context.Context) error {
	s, err := w.newSections()
	if err != nil {
		return err
	}

	w.report.startReport(w.job, w.config.ReportRecords, w.config.PageRecords)
	also, err := w.newRecordFiles()
	if err != nil {
		return err
	}

	add := func(p *mapreduce.ResultPart) error { return errors.Join(w.addPart(s, p), also.addPart(p)) }
	if err := w.service.GetResult(ctx, w.config.Job, w.config.Partial, add); err != nil {
		return err
	}

	// A stream without its last part is not complete.
	if w.report.summary, err = s.Summary(); err != nil {
		return err
	}
	if w.printed, err = also.close(); err != nil {
		return err
	}

	// From here on writeMetrics may read the report.
	close(w.read)
	return w.dir.WriteFile("result.json", func(out *folder.File) error { return s.WriteFile(out, w.shownJob()) })
}

// newSections returns the sections of result.json, each in a scratch file.
func (w *writer) newSections() (*resultfile.Sections, error) {
	return resultfile.NewSections(func(section string) (resultfile.Scratch, error) { return w.dir.CreateScratch("." + section) })
}

// shownJob returns the job as result.json describes it.
func (w *writer) shownJob() *mapreduce.Job {
	job := *w.job
	if as := w.config.As; as != nil {
		job.ID, job.TotalTokens = as.ID, as.TotalTokens
	}
	return &job
}

// addPart writes one part of the result into its section, and into the reports.
func (w *writer) addPart(s *resultfile.Sections, p *mapreduce.ResultPart) error {
	isRecord := p.Record != nil
	if isRecord {
		w.countRecord()
	}

	if added, err := s.AddPart(p); err != nil || !added {
		return err
	}

	switch {
	case isRecord:
		return w.report.addRecord(p.Record)
	case p.Citation != nil:
		w.report.addCitation(p.Citation)
	case p.Source != nil && len(p.Source.Errors) > 0:
		w.report.addFailure(p.Source)
	case p.Conflict != nil:
		return errors.Join(w.report.conflicts.addEntry(p.Conflict), w.report.page.addConflict(p.Conflict))
	case p.Dropped != nil:
		return w.report.dropped.addEntry(p.Dropped)
	case p.Evidence != nil:
		w.report.addEvidence(p.Evidence)
	case p.Report != nil:
		return w.report.setWritten(p.Report)
	case p.Removed != nil:
		return w.report.removed.addEntry(p.Removed)
	}
	return nil
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
	failures  []resultfile.FailedUnit
	moreFails int
	conflicts shownList[conflictLine]
	dropped   shownList[droppedView]
	removed   shownList[removedView]
	evidence  shownList[mapreduce.CitedEvidence]
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

// addEvidence adds evidence, or counts it if the limit is reached.
func (r *report) addEvidence(e *mapreduce.CitedEvidence) {
	if len(r.evidence.entries) == r.evidence.limit {
		r.evidence.more++
		return
	}
	r.evidence.entries = append(r.evidence.entries, *e)
}

func (r *report) startReport(job *mapreduce.Job, limit, pageLimit int) {
	r.job, r.limit, r.page = job, limit, newPageBuilder(pageLimit)
	r.conflicts.limit, r.dropped.limit, r.removed.limit, r.evidence.limit = limit, limit, limit, limit
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

	// The page may take more records than report.md, and has its own bound.
	r.page.addRecord(rec, len(data))
	if len(r.records) == r.limit {
		r.more++
		return nil
	}

	r.records = append(r.records, rec)

	// Only these citations are kept.
	for _, refs := range rec.citations {
		for _, ref := range refs {
			r.wanted[ref] = true
		}
	}
	for _, d := range rec.derived {
		for _, ref := range d.Citations {
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
	r.failures = append(r.failures, resultfile.FailedOf(s))
}

// A record is a decoded record of aggregated_data.
type record struct {
	names      []string // of values, sorted
	values     map[string]json.RawMessage
	sources    []string
	citations  map[string][]string
	derived    map[string]output.DerivedValue
	confidence map[string]float64
	said       map[string]float64
	missing    map[string]string
	unverified map[string]json.RawMessage
	reviewed   map[string]reviewedValue
}

// A reviewedValue says what somebody has decided about a value, and what the job found.
type reviewedValue struct {
	Verdict string          `json:"verdict"`
	By      string          `json:"by"`
	Model   json.RawMessage `json:"model"`
}

// text says it for people.
func (v reviewedValue) text() string {
	text := "reviewed: " + v.Verdict + " by " + v.By
	if v.Verdict == mapreduce.ReviewAccept.String() {
		return text
	}
	return text + "; the job found " + displayJSON(v.Model)
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
		"_sources": &r.sources, "_citations": &r.citations, "_derived": &r.derived, "_confidence": &r.confidence, "_said": &r.said,
		"_missing": &r.missing, "_unverified": &r.unverified, "_reviewed": &r.reviewed,
	} {
		if m, ok := members[name]; ok {
			if err := json.Unmarshal(m, into); err != nil {
				return r, fmt.Errorf("%s: %w", name, err)
			}
		}
	}

	// The other names that begin with an underscore are not of the schema.
	for name, v := range members {
		if name[:min(1, len(name))] != "_" {
			r.names = append(r.names, name)
			r.values[name] = v
		}
	}

	slices.Sort(r.names)
	return r, nil
}

package results

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/plural"
	"github.com/coditect/mapreduce/api/resultfile"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/decimals"
	"github.com/coditect/mapreduce/internal/outcome/output"
)

// A view is the content of both reports.
type view struct {
	Title      string
	Job        mapreduce.JobID
	Status     string
	Coverage   []ledgerView
	Records    []recordView
	More       int // records that are not shown
	Total      int // records
	Failures   []resultfile.FailedUnit
	MoreFails  int
	Skipped    []resultfile.SkippedDocument
	Notes      []resultfile.DocumentNote
	MoreSkips  int
	Conflicts  []conflictView
	MoreDiffer int
	Dropped    []droppedView
	MoreDrops  int
	Removed    []removedView
	MoreGone   int
	Evidence   []evidenceView
	MoreFound  int
	Statistics []statisticsView
	Cascades   [][]string // rows of cascadeColumns
}

type ledgerView struct {
	Name string
	resultfile.Ledger
}

type recordView struct {
	Number  int
	Sources []string
	Fields  []fieldView
}

type fieldView struct {
	Name       string
	Value      string
	Null       bool
	Why        string // why it is null
	Unverified string // value without a quote
	Confidence string
	Said       string // confidence that the extractor states
	Quotes     []quoteView
	Derived    string // how the value follows from the quotes, if it stands in none
	Reviewed   string // what somebody has decided about it
}

type quoteView struct {
	*mapreduce.Citation
}

// Found says how the quote was found.
func (q quoteView) Found() string {
	how := q.Grade
	if q.Outside {
		how += ", not in the chunk that was read"
	}
	if q.Location != nil {
		how += ", " + q.Location.String()
	}
	if q.URI != "" {
		how += ", from " + q.URI
	}
	if q.Others > 0 {
		how += ", or at " + plural.Count(q.Others, "other place")
	}
	return how
}

type conflictView struct {
	Field, Key, Chosen, Strategy, Rationale string
	Candidates                              []string
}

// A droppedView is a citation that supports no value of the result.
type droppedView struct {
	Ref, Field, Reason string
	Unit               string          `json:"unit_id"`
	Key                json.RawMessage // of the record
}

type removedView struct {
	Name, Field, Reason string
	Unit                string `json:"unit_id"`
}

// An evidenceView is evidence that the result cites.
type evidenceView struct {
	Document, Title, URI, Tool string
	Retrieved                  string // when it was read; empty if that is not known
}

func evidenceViews(all []mapreduce.CitedEvidence) []evidenceView {
	views := make([]evidenceView, len(all))
	for i, e := range all {
		views[i] = evidenceView{Document: string(e.Document), Title: e.Title, URI: e.URI, Tool: e.Tool}
		if !e.Retrieved.IsZero() {
			views[i].Retrieved = e.Retrieved.UTC().Format("2006-01-02 15:04:05 UTC")
		}
	}
	return views
}

type statisticsView struct {
	Field  string
	Values []string // by statisticsColumns
}

var statisticsColumns = []string{"count", "null", "distinct", "min", "max", "mean", "sum"}

// buildView builds the content of the reports.
func (r *report) buildView() (view, error) {
	v := view{
		Title: "Result", Job: r.job.ID, Status: r.job.State.String(),
		Coverage: []ledgerView{
			{"documents", resultfile.Ledger(r.job.Coverage.Documents)},
			{"characters", resultfile.Ledger(r.job.Coverage.Characters)},
			{"bytes not read", resultfile.Ledger(r.job.Coverage.Unread)},
		},
		More: r.more, Total: len(r.records) + r.more, Failures: r.failures, MoreFails: r.moreFails,
		Skipped: resultfile.SkippedOf(r.summary.Skipped), Notes: resultfile.NotesOf(r.summary),
	}

	// Fields stand in the order of the schema, and those that it does not name behind them.
	order, forms := map[string]int{}, decimals.New(r.job.Spec.Schema)
	if s, err := schema.Parse("schema", r.job.Spec.Schema); err == nil {
		v.Title = cmp.Or(s.Title, v.Title)
		for i, p := range s.Properties {
			order[schema.RecordName(p.Name)] = i + 1
		}
	}

	for i, rec := range r.records {
		v.Records = append(v.Records, r.recordView(i+1, rec, order, forms))
	}

	v.Skipped, v.MoreSkips = firstOf(v.Skipped, r.limit)
	for _, c := range r.conflicts.entries {
		v.Conflicts = append(v.Conflicts, c.buildView())
	}
	v.MoreDiffer = r.conflicts.more
	v.Dropped, v.MoreDrops = r.dropped.entries, r.dropped.more
	v.Removed, v.MoreGone = r.removed.entries, r.removed.more
	v.Evidence, v.MoreFound = evidenceViews(r.evidence.entries), r.evidence.more

	var err error
	if v.Statistics, err = statisticsViews(r.summary.Statistics, order, forms); err != nil {
		return v, fmt.Errorf("statistics: %w", err)
	}
	if v.Cascades, err = cascadeRows(r.summary.Cascades); err != nil {
		return v, fmt.Errorf("cascades: %w", err)
	}
	return v, nil
}

// firstOf returns the first limit entries of list, and the number of the others.
func firstOf[T any](list []T, limit int) ([]T, int) {
	n := min(len(list), limit)
	return list[:n], len(list) - n
}

func (r *report) recordView(n int, rec record, order map[string]int, forms *decimals.Forms) recordView {
	v := recordView{Number: n, Sources: rec.sources}

	names := slices.Clone(rec.names)
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Compare(cmp.Or(order[a], len(order)+1), cmp.Or(order[b], len(order)+1))
	})

	for _, name := range names {
		f := r.fieldView(name, rec)
		f.Value = forms.Display(name, f.Value, textsOf(f.Quotes))
		v.Fields = append(v.Fields, f)
	}
	return v
}

// seenIn returns a value that a model saw in a picture, and where, if an entry of _unverified is of one.
func seenIn(raw json.RawMessage) (value, where string, ok bool) {
	var refused struct {
		Value      json.RawMessage `json:"value"`
		Constraint string          `json:"constraint"`
		Message    string          `json:"message"`
	}
	if json.Unmarshal(raw, &refused) != nil || refused.Constraint != mapreduce.SeenOnly {
		return "", "", false
	}
	return displayJSON(refused.Value), refused.Message, true
}

// displayUnverified returns a value that is not in its record, with the constraint that
// it breaks if the schema does not allow it, or that it is a guess.
func displayUnverified(raw json.RawMessage) string {
	var refused struct {
		Value      json.RawMessage `json:"value"`
		Constraint string          `json:"constraint"`
	}

	if json.Unmarshal(raw, &refused) != nil || refused.Constraint == "" {
		return displayJSON(raw)
	}

	why := "breaks " + refused.Constraint
	switch refused.Constraint {
	case mapreduce.LeastConfidence:
		why = "a guess"
	case mapreduce.SeenOnly:
		why = "seen in a picture by the model, and not found by recognition"
	}
	return displayJSON(refused.Value) + " (" + why + ")"
}

func (r *report) fieldView(name string, rec record) fieldView {
	f := fieldView{Name: name, Value: displayJSON(rec.values[name]), Why: entriesAbout(rec.missing, name)}
	f.Null = string(rec.values[name]) == "null"

	if raw, ok := rec.unverified[name]; ok {
		f.Unverified = displayUnverified(raw)
	}
	for _, path := range slices.Sorted(maps.Keys(rec.reviewed)) {
		if isInField(path, name) {
			f.Reviewed = strings.TrimPrefix(f.Reviewed+"; "+rec.reviewed[path].text(), "; ")
		}
	}
	if c, ok := rec.confidence[name]; ok && !f.Null {
		f.Confidence = fmt.Sprintf("%.2f", c)
	}
	if c, ok := rec.said[name]; ok && !f.Null {
		f.Said = fmt.Sprintf("%.2f", c)
	}

	// Paths lead to values inside fields; their quotes stand with the field.
	for _, path := range slices.Sorted(maps.Keys(rec.citations)) {
		if isInField(path, name) {
			f.Quotes = append(f.Quotes, r.quotes(rec.citations[path])...)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(rec.derived)) {
		if isInField(path, name) {
			f.Derived = strings.TrimPrefix(f.Derived+"; "+derivedText(rec.derived[path]), "; ")
			f.Quotes = append(f.Quotes, r.quotes(rec.derived[path].Citations)...)
		}
	}

	return f
}

// quotes returns the quotes of references.
func (r *report) quotes(refs []string) (all []quoteView) {
	for _, ref := range refs {
		if c := r.citations[ref]; c != nil {
			all = append(all, quoteView{c})
		}
	}
	return all
}

// textsOf returns the texts of quotes.
func textsOf(quotes []quoteView) []string {
	texts := make([]string, len(quotes))
	for i, q := range quotes {
		texts[i] = q.Quote
	}
	return texts
}

// derivedText says how a value follows from its quotes.
func derivedText(d output.DerivedValue) string {
	if d.Formula == nil || d.Computed == nil {
		return "derived from the quotes; nothing was computed"
	}
	return "derived: " + *d.Formula + " = " + *d.Computed
}

// isInField reports whether path is the path of a field or of a value inside it.
func isInField(path, field string) bool {
	rest, ok := strings.CutPrefix(path, field)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// entriesAbout returns the entries of a map for a field and the values inside it.
func entriesAbout(m map[string]string, field string) string {
	var parts []string
	for _, path := range slices.Sorted(maps.Keys(m)) {
		if isInField(path, field) {
			parts = append(parts, strings.TrimPrefix(strings.TrimPrefix(path, field)+": "+m[path], ": "))
		}
	}
	return strings.Join(parts, "; ")
}

// displayJSON formats a JSON value for people: texts without quotes, lists of texts
// with commas, other values unchanged.
func displayJSON(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}

	var list []string
	if json.Unmarshal(raw, &list) == nil {
		return strings.Join(list, ", ")
	}

	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// By names the origin of the drop: the reduce unit, or the key of the record
// whose strategy dropped the citation.
func (d droppedView) By() string { return cmp.Or(d.Unit, displayJSON(d.Key)) }

// A conflictLine is an entry of conflict_resolutions.
type conflictLine struct {
	Field      string
	Key        json.RawMessage
	Candidates []struct {
		Value      json.RawMessage
		Confidence float64
		Citations  []string // references
	}
	Chosen    json.RawMessage
	Strategy  string
	Rationale string
}

func (c *conflictLine) buildView() conflictView {
	v := conflictView{Field: c.Field, Key: displayJSON(c.Key), Chosen: displayJSON(c.Chosen), Strategy: c.Strategy, Rationale: c.Rationale}
	for _, x := range c.Candidates {
		v.Candidates = append(v.Candidates, displayJSON(x.Value))
	}
	return v
}

func statisticsViews(data []byte, order map[string]int, forms *decimals.Forms) ([]statisticsView, error) {
	var fields map[string]map[string]json.RawMessage
	if err := json.Unmarshal(resultfile.OrEmpty(data, "{}"), &fields); err != nil {
		return nil, err
	}

	var out []statisticsView
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		texts := make(map[string]string)
		for column, raw := range fields[name] {
			texts[column] = displayJSON(raw)
		}
		forms.DisplayStatistics(name, texts)

		s := statisticsView{Field: name}
		for _, column := range statisticsColumns {
			s.Values = append(s.Values, texts[column])
		}
		out = append(out, s)
	}

	// Fields stand in the order of the schema, and the others behind them by name.
	slices.SortStableFunc(out, func(a, b statisticsView) int {
		return cmp.Compare(cmp.Or(order[a.Field], len(order)+1), cmp.Or(order[b.Field], len(order)+1))
	})
	return out, nil
}

package results

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/cmd/coditect/internal/page"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/costs"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/decimals"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/folder"
	"github.com/coditect/mapreduce/internal/text/refs"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
)

// pageBytes bounds the records and citations of report.html, as JSON of the service: a
// browser opens a page of that size within a second or so.
const pageBytes = 32 << 20

// Bounds of the texts of documents in report.html: of one, of all, and how many are read.
// Quotes of other documents stand between the texts just before and after them.
const (
	maxPageText  = 64 << 10
	maxPageTexts = 16 << 20
	maxTexts     = 2000
)

// maxPagePictures bounds the pictures in report.html, in bytes of all together.
const maxPagePictures = 8 << 20

// maxTree bounds the picture of the tree in report.html, in bytes.
const maxTree = 1 << 20

// A pageBuilder collects what report.html shows, in the order of the result's parts.
type pageBuilder struct {
	data      page.Data
	limit     int // records
	budget    int // bytes that are left
	fields    map[string]bool
	units     map[int]mapreduce.UnitID     // one that cites each document, by the document's position
	documents map[mapreduce.DocumentID]int // positions in data
	citations map[string]int               // positions in data, by reference
	pages     []citedPage                  // that citations are on, in their order
	cited     map[citedPage]bool           // the same
}

func newPageBuilder(limit int) *pageBuilder {
	return &pageBuilder{
		limit: limit, budget: pageBytes,
		data:   page.Data{Records: []page.Record{}, Citations: []page.Citation{}, Conflicts: []page.Conflict{}, Lists: []page.List{}},
		fields: make(map[string]bool), units: make(map[int]mapreduce.UnitID),
		documents: make(map[mapreduce.DocumentID]int), citations: make(map[string]int), cited: make(map[citedPage]bool),
	}
}

// spend takes bytes of the page's budget, and reports whether it had them.
func (b *pageBuilder) spend(n int) bool {
	if n > b.budget {
		b.budget = 0
		return false
	}
	b.budget -= n
	return true
}

// isFull reports whether the page takes no more records.
func (b *pageBuilder) isFull() bool { return len(b.data.Records) == b.limit || b.budget == 0 }

// addRecord adds a record, or counts it if the page is full.
func (b *pageBuilder) addRecord(rec record, size int) {
	if b.isFull() || !b.spend(size) {
		b.data.More++
		return
	}

	p := page.Record{Values: map[string]string{}}
	for _, source := range rec.sources {
		p.Sources = append(p.Sources, b.documentPosition(mapreduce.DocumentID(source)))
	}

	for _, name := range rec.names {
		b.fields[name] = true
		if raw := rec.values[name]; string(raw) != "null" {
			p.Values[name] = displayJSON(raw)
		}
		if why := entriesAbout(rec.missing, name); why != "" {
			p.Missing = setEntry(p.Missing, name, why)
		}
		if k, ok := rec.confidence[name]; ok {
			p.Confidence = setEntry(p.Confidence, name, k)
		}
		if k, ok := rec.said[name]; ok {
			p.Said = setEntry(p.Said, name, k)
		}
	}

	for name, raw := range rec.unverified {
		if value, where, ok := seenIn(raw); ok {
			p.Seen = setEntry(p.Seen, name, page.Seen{Value: value, Where: where})
			continue
		}
		p.Unverified = setEntry(p.Unverified, name, displayJSON(raw))
	}

	for _, path := range slices.Sorted(maps.Keys(rec.reviewed)) {
		for _, name := range rec.names {
			if isInField(path, name) {
				p.Reviewed = setEntry(p.Reviewed, name, strings.TrimPrefix(p.Reviewed[name]+"; "+rec.reviewed[path].text(), "; "))
			}
		}
	}

	// Paths lead to values inside fields; the page shows them with their field.
	for _, path := range slices.Sorted(maps.Keys(rec.citations)) {
		for _, name := range rec.names {
			if isInField(path, name) {
				p.Citations = setEntry(p.Citations, name, append(p.Citations[name], b.citationPositions(rec.citations[path])...))
			}
		}
	}

	for _, path := range slices.Sorted(maps.Keys(rec.derived)) {
		for _, name := range rec.names {
			if isInField(path, name) {
				d := p.Derived[name]
				d.Text = strings.TrimPrefix(d.Text+"; "+derivedText(rec.derived[path]), "; ")
				d.Citations = append(d.Citations, b.citationPositions(rec.derived[path].Citations)...)
				p.Derived = setEntry(p.Derived, name, d)
			}
		}
	}

	b.data.Records = append(b.data.Records, p)
}

// addPictures adds pictures of what is cited, as far as the page has room.
func (w *writer) addPictures(ctx context.Context, b *pageBuilder) error {
	left := maxPagePictures
	for _, e := range w.report.evidence.entries {
		if !e.IsPicture() || e.Bytes > int64(left) {
			continue
		}

		var data []byte
		err := w.service.ReadText(ctx, w.config.Job, e.Unit, e.Document, func(part []byte) error {
			data = append(data, part...)
			return nil
		})
		if err != nil {
			return fmt.Errorf("the picture %s: %w", e.Document, err)
		}

		left -= len(data)
		b.data.Pictures = append(b.data.Pictures, page.Picture{Title: e.Title, Place: e.URI, Media: e.Media, Data: data})
	}
	return nil
}

// setEntry sets an entry of a map, which may be nil.
func setEntry[V any](m map[string]V, key string, value V) map[string]V {
	if m == nil {
		m = make(map[string]V)
	}
	m[key] = value
	return m
}

func (b *pageBuilder) documentPosition(id mapreduce.DocumentID) int {
	i, ok := b.documents[id]
	if !ok {
		i = len(b.data.Documents)
		b.documents[id] = i
		b.data.Documents = append(b.data.Documents, string(id))
	}
	return i
}

// citationPositions returns the positions of citations. Those that did not come yet take
// theirs now.
func (b *pageBuilder) citationPositions(refs []string) []int {
	positions := make([]int, len(refs))
	for n, ref := range refs {
		i, ok := b.citations[ref]
		if !ok {
			i = len(b.data.Citations)
			b.citations[ref] = i
			b.data.Citations = append(b.data.Citations, page.Citation{Ref: ref})
		}
		positions[n] = i
	}
	return positions
}

// addCitation adds a citation of a record of the page, or of the report, which comes later.
func (b *pageBuilder) addCitation(c *mapreduce.Citation) {
	if _, ok := b.citations[c.Ref]; !ok && b.data.More > 0 {
		return // it is of a record that is left out
	}

	i := b.citationPositions([]string{c.Ref})[0]
	// The citation keeps its position, as records refer to it, but has no quote.
	if !b.spend(len(c.Quote) + len(c.Before) + len(c.After) + 100) {
		return
	}

	place := ""
	if c.Location != nil {
		place = c.Location.String()
	}
	if c.URI != "" {
		place = c.URI
	}

	document := b.documentPosition(c.Document)
	b.units[document] = c.Unit
	b.data.Citations[i] = page.Citation{
		Ref: c.Ref, Document: document, Place: place, Start: c.Start, End: c.End, Quote: c.Quote, Grade: c.Grade,
		Before: c.Before, After: c.After, Outside: c.Outside, Others: c.Others, Coverage: c.Coverage,
	}
	b.addBoxes(&b.data.Citations[i], c.Location)
}

// addConflict adds an entry of conflict_resolutions, or counts it if the page is full.
func (b *pageBuilder) addConflict(data []byte) error {
	if len(b.data.Conflicts) == b.limit || !b.spend(len(data)) {
		b.data.MoreConflicts++
		return nil
	}

	var line conflictLine
	if err := json.Unmarshal(data, &line); err != nil {
		return err
	}

	c := page.Conflict{
		Field: line.Field, Key: displayJSON(line.Key), Chosen: displayJSON(line.Chosen), Strategy: line.Strategy, Rationale: line.Rationale,
	}
	for _, x := range line.Candidates {
		c.Candidates = append(c.Candidates, page.Candidate{Value: displayJSON(x.Value), Confidence: x.Confidence, Citations: b.citationPositions(x.Citations)})
	}

	b.data.Conflicts = append(b.data.Conflicts, c)
	return nil
}

// writePage writes report.html, once the result and the units are written.
func (w *writer) writePage(ctx context.Context) error {
	v, err := w.report.buildView()
	if err != nil {
		return err
	}

	if err := errors.Join(w.addTexts(ctx, w.report.page), w.addPictures(ctx, w.report.page)); err != nil {
		return err
	}
	if err := w.addDrawnPages(ctx, w.report.page); err != nil {
		return err
	}

	p := &page.Page{
		Title: v.Title, Job: string(v.Job), Status: v.Status, Facts: w.facts(), Levels: w.pageLevels(), Tree: w.tree,
		Data: w.report.page.data,
	}
	for _, l := range v.Coverage {
		p.Coverage = append(p.Coverage, page.Ledger{Name: l.Name, Total: l.Total, Mapped: l.Mapped, Failed: l.Failed, Skipped: l.Skipped})
	}

	w.report.page.displayNumbers(decimals.New(w.report.job.Spec.Schema))
	p.Data.Fields = w.orderedFields()
	p.Data.Lists = v.lists()

	// A report is shown in place of the records that it was made of.
	if written := w.report.written; written != nil {
		p.Title = cmp.Or(written.Question, p.Title)
		p.Data.Records, p.Data.Fields = []page.Record{}, []string{}
		p.Data.Report = w.report.page.reportOf(written)
		// The report may cite what no record of the page cites.
		p.Data.Citations = w.report.page.data.Citations
		if line := written.silentDocuments(v); line != "" {
			p.Data.Report.Summary += " " + line
		}
	}

	return w.dir.WriteFile("report.html", func(out *folder.File) error { return p.Write(out) })
}

// displayNumbers gives the numbers of the records the decimals of the schema, or of their quotes, which came
// behind them.
func (b *pageBuilder) displayNumbers(forms *decimals.Forms) {
	for _, record := range b.data.Records {
		for name, value := range record.Values {
			var quotes []string
			for _, i := range record.Citations[name] {
				quotes = append(quotes, b.data.Citations[i].Quote)
			}
			record.Values[name] = forms.Display(name, value, quotes)
		}
	}
}

// errTextTooLong ends the reading of a text that the page does not show.
var errTextTooLong = errors.New("the text is too long for the page")

// addTexts adds the texts of documents that the page's records cite, in their order.
func (w *writer) addTexts(ctx context.Context, b *pageBuilder) error {
	b.data.Texts = make(map[int]string)
	left := maxPageTexts
	positions := slices.Sorted(maps.Keys(b.units))
	for _, i := range positions[:min(len(positions), maxTexts)] {
		var text []byte
		err := w.service.ReadText(ctx, w.config.Job, b.units[i], mapreduce.DocumentID(b.data.Documents[i]), func(part []byte) error {
			if text = append(text, part...); len(text) > min(maxPageText, left) {
				return errTextTooLong
			}
			return nil
		})
		// Quotes of a long text are shown with a little of it around.
		if errors.Is(err, errTextTooLong) {
			continue
		}
		if err != nil {
			return fmt.Errorf("the text of %s: %w", b.data.Documents[i], err)
		}

		b.data.Texts[i] = string(text)
		left -= len(text)
	}
	return nil
}

// reportOf returns a report as the page shows it.
func (b *pageBuilder) reportOf(written *writtenReport) *page.Report {
	r := &page.Report{Sections: []page.Section{}, References: []page.Reference{}, Claims: []page.Claim{}, Summary: written.measures.String()}

	for _, s := range written.shownSections() {
		r.Sections = append(r.Sections, page.Section{Name: s.Name, Title: s.Title, Text: s.Text, Items: s.Items, Columns: s.Columns, Rows: s.Rows})
	}
	for _, e := range written.References {
		r.References = append(r.References, page.Reference{Source: sourceText(&e.Source), Citation: b.citationPositions([]string{e.Ref})[0]})
	}
	for _, c := range written.Claims {
		r.Claims = append(r.Claims, page.Claim{Section: c.Section, Text: c.Text, Grade: c.Grade, Reasons: c.Reasons})
	}

	return r
}

// sourceText returns all that is known of a source, on one line.
func sourceText(s *refs.Source) string {
	parts := []string{strings.Join(s.Authors, "; "), s.Title, s.Year, s.URL, "document " + s.ID}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), ". ")
}

// orderedFields returns the fields of the page's records: those of the schema in its
// order, then the others by name.
func (w *writer) orderedFields() []string {
	order := map[string]int{}
	if s, err := schema.Parse("schema", w.job.Spec.Schema); err == nil {
		for i, p := range s.Properties {
			order[schema.RecordName(p.Name)] = i + 1
		}
	}

	names := slices.Sorted(maps.Keys(w.report.page.fields))
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Compare(cmp.Or(order[a], len(order)+1), cmp.Or(order[b], len(order)+1))
	})
	return names
}

// answeredWords says how many units each model answered.
func answeredWords(models map[string]int64) string {
	words := make([]string, 0, len(models))
	for _, name := range slices.Sorted(maps.Keys(models)) {
		words = append(words, fmt.Sprintf("%d by %s", models[name], name))
	}
	return strings.Join(words, ", ")
}

// facts returns what the head of the page shows of the job.
func (w *writer) facts() []page.Fact {
	job := w.job
	facts := []page.Fact{{Name: "records", Value: fmt.Sprint(w.report.total)}}
	add := func(name, value string) { facts = append(facts, page.Fact{Name: name, Value: value}) }

	if n := w.report.conflicts.total(); n > 0 {
		add("conflicts", fmt.Sprint(n))
	}

	add("units", fmt.Sprint(job.TotalUnits))
	if job.FailedUnits > 0 {
		add("failed units", fmt.Sprint(job.FailedUnits))
	}

	add("provider", job.Spec.Provider)
	if job.Spec.Model != "" {
		add("model", job.Spec.Model)
	}
	if set := settings.RunParameters(&job.Spec); !set.IsZero() {
		add("parameters", set.String())
	}

	if len(job.Spec.Fallbacks) > 0 {
		add("while it is away", strings.Join(job.Spec.Fallbacks, ", "))
		add("units answered", answeredWords(w.tally.Models))
	}

	add("tokens", fmt.Sprint(job.TotalTokens.Total()))
	cost := costText(w.tally.CostOf(w.job))
	if cost == unknownCost {
		cost += ": " + costs.PriceAdvice(w.tally.Prices.Unpriced)
	}
	add("cost", cost)

	add("time", job.Updated.Sub(job.Created).Round(10*time.Millisecond).String())
	add("begun", job.Created.UTC().Format("2006-01-02 15:04:05 UTC"))
	return facts
}

// unknownCost is shown in place of a cost that is not known.
const unknownCost = "not known"

func costText(cost *float64) string {
	if cost == nil {
		return unknownCost
	}
	return fmt.Sprintf("$%.4f", *cost)
}

// pageLevels returns the sums of the levels, with parse units first.
func (w *writer) pageLevels() []page.Level {
	first, last := w.traced.Span()
	var levels []page.Level
	for _, n := range w.tally.SortedLevels() {
		sums := w.tally.Levels[n]
		l := page.Level{
			Name: cmp.Or(sums.Stage, "reading documents"), Units: sums.Units, Failed: sums.Failed, Tokens: sums.Tokens.Total(),
			Busy: sums.Busy.Seconds(), Cost: costText(sums.Cost()),
		}
		if begin, end := w.traced.LevelSpan(n); !end.IsZero() {
			l.Begin, l.End, l.JobSeconds = begin.Sub(first).Seconds(), end.Sub(first).Seconds(), last.Sub(first).Seconds()
		}

		levels = append(levels, l)
	}
	return levels
}

// lists returns the tables that stand below the records.
func (v *view) lists() []page.List {
	lists := []page.List{
		{ID: "statistics", Title: "Statistics", Columns: append([]string{"field"}, statisticsColumns...)},
		{ID: "evidence", Title: "Evidence", Columns: []string{"title", "from", "tool", "read", "document"}, More: v.MoreFound},
		{ID: "dropped", Title: "Dropped citations", Columns: []string{"citation", "field", "by", "why"}, More: v.MoreDrops},
		{ID: "removed", Title: "Removed from answers", Columns: []string{"what", "field", "unit", "why"}, More: v.MoreGone},
		{ID: "failed", Title: "Failed units", Columns: []string{"unit", "document", "errors", "what to do"}, More: v.MoreFails},
		{ID: "skipped", Title: "Skipped documents", Columns: []string{"document", "reason", "what to do"}, More: v.MoreSkips},
		{ID: "notes", Title: "Notes on documents", Columns: []string{"document", "note"}},
		{ID: "cascades", Title: "Cascades", Columns: cascadeColumns, Rows: v.Cascades},
	}

	// Rows go to the lists above by position.
	add := func(i int, cells ...string) { lists[i].Rows = append(lists[i].Rows, cells) }

	for _, s := range v.Statistics {
		add(0, append([]string{s.Field}, s.Values...)...)
	}
	for _, e := range v.Evidence {
		add(1, e.Title, e.URI, e.Tool, e.Retrieved, e.Document)
	}
	for _, d := range v.Dropped {
		add(2, d.Ref, d.Field, d.By(), d.Reason)
	}
	for _, r := range v.Removed {
		add(3, r.Name, r.Field, r.Unit, r.Reason)
	}
	for _, f := range v.Failures {
		add(4, string(f.Unit), string(f.Document), strings.Join(f.Errors, "\n"), f.Advice)
	}
	for _, d := range v.Skipped {
		add(5, string(d.Document), d.Reason, d.Advice)
	}
	for _, n := range v.Notes {
		add(6, string(n.Document), n.Note)
	}

	return slices.DeleteFunc(lists, func(l page.List) bool { return len(l.Rows)+l.More == 0 })
}

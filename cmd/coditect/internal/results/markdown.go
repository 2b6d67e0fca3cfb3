package results

import (
	"context"
	"fmt"
	"strings"
)

// markdown writes report.md.
func (w *writer) markdown(context.Context) error {
	v, err := w.report.view()
	if err != nil {
		return err
	}
	return w.dir.fill("report.md", func(out *file) error {
		m := &page{out: out}
		m.head(v)
		m.records(v)
		m.rest(v)
		return m.err
	})
}

// A page is Markdown being written; the first error ends it.
type page struct {
	out *file
	err error
}

func (m *page) printf(format string, args ...any) {
	if m.err == nil {
		_, m.err = fmt.Fprintf(m.out, format, args...)
	}
}

// row writes a row of a table.
func (m *page) row(cells ...string) {
	for i, c := range cells {
		cells[i] = inline(c)
	}
	m.printf("| %s |\n", strings.Join(cells, " | "))
}

// header writes the first rows of a table.
func (m *page) header(cells ...string) {
	m.row(cells...)
	m.printf("|%s\n", strings.Repeat("---|", len(cells)))
}

// marks are the characters that mean something in Markdown, or in HTML within
// it, where text may stand here.
var marks = strings.NewReplacer(
	"\\", "\\\\", "|", "\\|", "*", "\\*", "_", "\\_", "`", "\\`", "[", "\\[", "]", "\\]",
	"<", "&lt;", ">", "&gt;", "&", "&amp;", "#", "\\#", "~", "\\~", "$", "\\$",
	"\r\n", "<br>", "\n", "<br>", "\r", "<br>",
)

// inline returns text that means nothing in Markdown, on one line, and that does
// not turn the direction of what is behind it. All else of it is as it is: it may
// be a quote.
func inline(s string) string { return marks.Replace(isolated(strings.TrimSpace(s))) }

// Characters that say in which direction text is shown.
const (
	embeddings   = "\u202a\u202b\u202c\u202d\u202e"
	isolates     = "\u2066\u2067\u2068"
	firstIsolate = "\u2068"
	popIsolate   = "\u2069"
)

// isolated closes a text off in which characters change the direction, so that
// what is around it is read as it stands.
func isolated(s string) string {
	if !strings.ContainsAny(s, embeddings+isolates+popIsolate) {
		return s
	}
	open, early := 0, 0
	for _, r := range s {
		switch {
		case strings.ContainsRune(isolates, r):
			open++
		case string(r) == popIsolate && open > 0:
			open--
		case string(r) == popIsolate:
			early++
		}
	}
	return strings.Repeat(firstIsolate, early+1) + s + strings.Repeat(popIsolate, open+1)
}

func (m *page) head(v view) {
	m.printf("# %s\n\nJob %s is %s.\n\n", inline(v.Title), v.Job, v.Status)
	m.header("", "total", "mapped", "failed", "skipped")
	for _, l := range v.Coverage {
		m.row(l.Name, fmt.Sprint(l.Total), fmt.Sprint(l.Mapped), fmt.Sprint(l.Failed), fmt.Sprint(l.Skipped))
	}
}

func (m *page) records(v view) {
	m.printf("\n## Records (%d)\n", v.Total)
	for _, r := range v.Records {
		m.printf("\n### %d. %s\n\n", r.Number, inline(sourcesOf(r)))
		m.header("field", "value", "confidence", "quotes")
		for _, f := range r.Fields {
			m.row(f.Name, valueOf(f), confidenceOf(f), quotesOf(f))
		}
	}
	if v.More > 0 {
		m.printf("\n%d more records are in result.json.\n", v.More)
	}
}

// sourcesOf names the documents of a record, or how many they are.
func sourcesOf(r recordView) string {
	if len(r.Sources) > 5 {
		return fmt.Sprintf("%s and %d more", strings.Join(r.Sources[:5], ", "), len(r.Sources)-5)
	}
	return strings.Join(r.Sources, ", ")
}

func valueOf(f fieldView) string {
	switch {
	case f.Unverified != "":
		return "unverified: " + f.Unverified
	case f.Null && f.Why != "":
		return "none: " + f.Why
	case f.Null:
		return "none"
	}
	return f.Value
}

// confidenceOf is the computed confidence, and what the extractor says itself.
func confidenceOf(f fieldView) string {
	if f.Said == "" {
		return f.Confidence
	}
	return f.Confidence + " (says " + f.Said + ")"
}

func quotesOf(f fieldView) string {
	quotes, more := cut(f.Quotes, 5)
	var parts []string
	for _, q := range quotes {
		parts = append(parts, fmt.Sprintf("“%s” (%s, %d–%d, %s)", isolated(q.Quote), isolated(string(q.Document)), q.Start, q.End, q.Found()))
	}
	if more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}

// rest writes what is not about single records; a section without entries is
// left out.
func (m *page) rest(v view) {
	if len(v.Statistics) > 0 {
		m.printf("\n## Statistics\n\n")
		m.header(append([]string{"field"}, statisticsColumns...)...)
		for _, s := range v.Statistics {
			m.row(append([]string{s.Field}, s.Values...)...)
		}
	}
	if len(v.Conflicts) > 0 {
		m.printf("\n## Conflicts (%d)\n\n", len(v.Conflicts)+v.MoreDiffer)
		m.header("field", "key", "candidates", "chosen", "strategy", "why")
		for _, c := range v.Conflicts {
			m.row(c.Field, c.Key, strings.Join(c.Candidates, ", "), c.Chosen, c.Strategy, c.Rationale)
		}
	}
	m.losses(v)
	if len(v.Failures) > 0 {
		m.printf("\n## Failed units (%d)\n\n", len(v.Failures)+v.MoreFails)
		m.header("unit", "errors")
		for _, f := range v.Failures {
			m.row(string(f.Unit), strings.Join(f.Errors, "; "))
		}
	}
	if len(v.Skipped) > 0 {
		m.printf("\n## Skipped documents (%d)\n\n", len(v.Skipped)+v.MoreSkips)
		m.header("document", "reason")
		for _, d := range v.Skipped {
			m.row(string(d.Document), d.Reason)
		}
	}
}

// losses writes what the result does not rest on, and why.
func (m *page) losses(v view) {
	if len(v.Dropped) > 0 {
		m.printf("\n## Dropped citations (%d)\n\n", len(v.Dropped)+v.MoreDrops)
		m.header("citation", "field", "by", "why")
		for _, d := range v.Dropped {
			m.row(d.Ref, d.Field, d.By(), d.Reason)
		}
	}
	if len(v.Removed) > 0 {
		m.printf("\n## Removed from answers (%d)\n\n", len(v.Removed)+v.MoreGone)
		m.header("what", "field", "unit", "why")
		for _, r := range v.Removed {
			m.row(r.Name, r.Field, r.Unit, r.Reason)
		}
	}
}

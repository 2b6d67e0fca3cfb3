package results

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/coditect/mapreduce/api/plural"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/folder"
)

// writeMarkdown writes report.md.
func (w *writer) writeMarkdown(context.Context) error {
	v, err := w.report.buildView()
	if err != nil {
		return err
	}

	return w.dir.WriteFile("report.md", func(out *folder.File) error {
		m := &markdownPage{out: out}
		if written := w.report.written; written != nil {
			m.writeWritten(written, v)
		} else {
			m.writeHead(v)
			m.writeRecords(v)
		}
		m.writeSections(v)
		return m.err
	})
}

// A markdownPage writes Markdown. The first error ends the output.
type markdownPage struct {
	out io.Writer
	err error
}

func (m *markdownPage) printf(format string, args ...any) {
	if m.err == nil {
		_, m.err = fmt.Fprintf(m.out, format, args...)
	}
}

// writeRow writes a row of a table.
func (m *markdownPage) writeRow(cells ...string) {
	escaped := make([]string, len(cells))
	for i, c := range cells {
		escaped[i] = escapeInline(c)
	}
	m.printf("| %s |\n", strings.Join(escaped, " | "))
}

// writeHeader writes the first rows of a table.
func (m *markdownPage) writeHeader(cells ...string) {
	m.writeRow(cells...)
	m.printf("|%s\n", strings.Repeat("---|", len(cells)))
}

// markdownEscaper escapes the characters with a meaning in Markdown, or in HTML
// within it, in the places where the report has text.
var markdownEscaper = strings.NewReplacer(
	"\\", "\\\\", "|", "\\|", "*", "\\*", "_", "\\_", "`", "\\`", "[", "\\[", "]", "\\]",
	"<", "&lt;", ">", "&gt;", "&", "&amp;", "#", "\\#", "~", "\\~", "$", "\\$",
	"\r\n", "<br>", "\n", "<br>", "\r", "<br>",
)

// escapeInline escapes text for Markdown, on one line, so that it does not change the
// direction of the text behind it. It changes nothing else, because the text may be
// a quote.
func escapeInline(s string) string {
	return markdownEscaper.Replace(isolateDirection(strings.TrimSpace(s)))
}

// Characters that control the direction of text.
const (
	embeddings   = "\u202a\u202b\u202c\u202d\u202e"
	isolates     = "\u2066\u2067\u2068"
	firstIsolate = "\u2068"
	popIsolate   = "\u2069"
)

// isolateDirection isolates a text with characters that change the direction, so that
// they do not affect the text around it.
func isolateDirection(s string) string {
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
		case string(r) == popIsolate: // it ends an isolation that the text has not begun
			early++
		}
	}

	return strings.Repeat(firstIsolate, early+1) + s + strings.Repeat(popIsolate, open+1)
}

func (m *markdownPage) writeHead(v view) {
	m.printf("# %s\n\nJob %s is %s.\n\n", escapeInline(v.Title), v.Job, v.Status)
	m.writeHeader("", "total", "mapped", "failed", "skipped")
	for _, l := range v.Coverage {
		m.writeRow(l.Name, fmt.Sprint(l.Total), fmt.Sprint(l.Mapped), fmt.Sprint(l.Failed), fmt.Sprint(l.Skipped))
	}
}

func (m *markdownPage) writeRecords(v view) {
	m.printf("\n## Records (%d)\n", v.Total)
	for _, r := range v.Records {
		m.printf("\n### %d. %s\n\n", r.Number, escapeInline(sourcesOf(r)))
		m.writeHeader("field", "value", "confidence", "quotes")
		for _, f := range r.Fields {
			m.writeRow(f.Name, valueOf(f), confidenceOf(f), quotesOf(f))
		}
	}

	if v.More > 0 {
		m.printf("\nresult.json has %s.\n", plural.Count(v.More, "more record"))
	}
}

// sourcesOf names the documents of a record, at most five, and the number of the
// others.
func sourcesOf(r recordView) string {
	if len(r.Sources) > 5 {
		return fmt.Sprintf("%s and %d more", strings.Join(r.Sources[:5], ", "), len(r.Sources)-5)
	}
	return strings.Join(r.Sources, ", ")
}

func valueOf(f fieldView) string {
	if f.Reviewed != "" {
		plain := f
		plain.Reviewed = ""
		return valueOf(plain) + " (" + f.Reviewed + ")"
	}

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

// confidenceOf returns the computed confidence, and the one that the extractor
// states.
func confidenceOf(f fieldView) string {
	if f.Said == "" {
		return f.Confidence
	}
	return f.Confidence + " (the extractor says " + f.Said + ")"
}

func quotesOf(f fieldView) string {
	quotes, more := firstOf(f.Quotes, 5)
	var parts []string
	if f.Derived != "" {
		parts = append(parts, isolateDirection(f.Derived))
	}

	for _, q := range quotes {
		parts = append(parts, fmt.Sprintf("“%s” (%s, %d–%d, %s)", isolateDirection(q.Quote), isolateDirection(string(q.Document)), q.Start, q.End, q.Found()))
	}

	if more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}

// writeSections writes the sections that are not about single records. It leaves out
// empty sections.
func (m *markdownPage) writeSections(v view) {
	if len(v.Statistics) > 0 {
		m.printf("\n## Statistics\n\n")
		m.writeHeader(append([]string{"field"}, statisticsColumns...)...)
		for _, s := range v.Statistics {
			m.writeRow(append([]string{s.Field}, s.Values...)...)
		}
	}

	if len(v.Cascades) > 0 {
		m.printf("\n## Cascades\n\n")
		m.writeHeader(cascadeColumns...)
		for _, row := range v.Cascades {
			m.writeRow(row...)
		}
	}

	if len(v.Conflicts) > 0 {
		m.printf("\n## Conflicts (%d)\n\n", len(v.Conflicts)+v.MoreDiffer)
		m.writeHeader("field", "key", "candidates", "chosen", "strategy", "why")
		for _, c := range v.Conflicts {
			m.writeRow(c.Field, c.Key, strings.Join(c.Candidates, ", "), c.Chosen, c.Strategy, c.Rationale)
		}
	}

	m.writeEvidence(v)
	m.writeLosses(v)

	if len(v.Failures) > 0 {
		m.printf("\n## Failed units (%d)\n\n", len(v.Failures)+v.MoreFails)
		m.writeHeader("unit", "document", "errors", "what to do")
		for _, f := range v.Failures {
			m.writeRow(string(f.Unit), string(f.Document), strings.Join(f.Errors, "; "), f.Advice)
		}
	}

	if len(v.Skipped) > 0 {
		m.printf("\n## Skipped documents (%d)\n\n", len(v.Skipped)+v.MoreSkips)
		m.writeHeader("document", "reason", "what to do")
		for _, d := range v.Skipped {
			m.writeRow(string(d.Document), d.Reason, d.Advice)
		}
	}

	if len(v.Notes) > 0 {
		m.printf("\n## Notes on documents\n\n")
		m.writeHeader("document", "note")
		for _, n := range v.Notes {
			m.writeRow(string(n.Document), n.Note)
		}
	}
}

// writeEvidence lists the evidence of tools that the result cites. The time of its
// retrieval differs from run to run, so it is left to the other files.
func (m *markdownPage) writeEvidence(v view) {
	if len(v.Evidence) == 0 {
		return
	}
	m.printf("\n## Evidence (%d)\n\n", len(v.Evidence)+v.MoreFound)
	m.writeHeader("title", "from", "tool", "document")
	for _, e := range v.Evidence {
		m.writeRow(e.Title, e.URI, e.Tool, e.Document)
	}
}

// alike groups dropped citations of the same field, origin and reason, in the order in
// which the groups begin.
func alike(all []droppedView) [][]droppedView {
	var groups [][]droppedView
	at := make(map[[3]string]int)

	for _, d := range all {
		key := [3]string{d.Field, d.By(), d.Reason}
		i, seen := at[key]
		if !seen {
			i, groups = len(groups), append(groups, nil)
			at[key] = i
		}
		groups[i] = append(groups[i], d)
	}
	return groups
}

// refsOf names dropped citations, at most five of them.
func refsOf(all []droppedView) string {
	shown, more := firstOf(all, 5)
	var names []string
	for _, d := range shown {
		names = append(names, d.Ref)
	}

	text := strings.Join(names, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// writeLosses writes the citations and references that were dropped, and the reasons.
func (m *markdownPage) writeLosses(v view) {
	if len(v.Dropped) > 0 && unusedCitations(v) == "" {
		m.printf("\n## Dropped citations (%d)\n\n", len(v.Dropped)+v.MoreDrops)
		m.writeHeader("citation", "field", "by", "why")
		for _, rows := range alike(v.Dropped) {
			d := rows[0]
			m.writeRow(refsOf(rows), d.Field, d.By(), d.Reason)
		}
	}

	if len(v.Removed) > 0 {
		m.printf("\n## Removed from answers (%d)\n\n", len(v.Removed)+v.MoreGone)
		m.writeHeader("what", "field", "unit", "why")
		for _, r := range v.Removed {
			m.writeRow(r.Name, r.Field, r.Unit, r.Reason)
		}
	}
}

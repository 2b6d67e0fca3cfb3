package results

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/plural"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/folder"
	"github.com/coditect/mapreduce/internal/text/refs"
)

// A writtenReport is the report that a job wrote, as result.json has it under report.
type writtenReport struct {
	raw        json.RawMessage
	Question   string
	Sections   []writtenSection
	References []refs.Entry
	Claims     []writtenClaim
	Measures   json.RawMessage
	measures   writtenMeasures
}

type writtenSection struct {
	Name, Title, Text string
	Items             []string
	Columns           []string
	Rows              [][]string
}

type writtenClaim struct {
	Section, Text, Grade string
	Reasons              []string
}

type writtenMeasures struct {
	Claims, Supported, Partial, Unsupported, Contradicted int
	Recall                                                float64 `json:"citation_recall"`
	Precision                                             float64 `json:"citation_precision"`
	Judge                                                 string
}

// String returns the measures in a sentence.
func (s *writtenMeasures) String() string {
	if s.Claims == 0 {
		return "The report has no sentence to check."
	}
	return fmt.Sprintf("Claims that their references support: %d of %d; in part: %d; not: %d; contradicted: %d "+
		"(citation recall %.2f, precision %.2f, by %s).", s.Supported, s.Claims, s.Partial, s.Unsupported, s.Contradicted, s.Recall, s.Precision, cmp.Or(s.Judge, "rules"))
}

// setWritten keeps the report of the result.
func (r *report) setWritten(raw []byte) error {
	w := &writtenReport{raw: raw}
	if err := json.Unmarshal(raw, w); err != nil {
		return fmt.Errorf("report: %w", err)
	}

	if err := json.Unmarshal(w.Measures, &w.measures); err != nil {
		return fmt.Errorf("measures of the report: %w", err)
	}

	r.written = w
	return nil
}

// writeBibliography writes the bibliography of a report as CSL-JSON and BibTeX. A job that
// wrote no report has none.
func (w *writer) writeBibliography(context.Context) error {
	if w.report.written == nil {
		return nil
	}

	entries := w.report.written.References
	csl, err := refs.CSL(entries)
	if err != nil {
		return err
	}

	for _, f := range []struct {
		name, text string
	}{{"bibliography.json", string(csl)}, {"bibliography.bib", refs.BibTeX(entries)}} {
		err := w.dir.WriteFile(f.name, func(out *folder.File) error {
			_, err := out.WriteString(f.text)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// writeWritten writes a report with its bibliography, and what its check found.
func (m *markdownPage) writeWritten(r *writtenReport, v view) {
	m.writeText(r, v)
	m.writeClaims(r)

	m.printf("\n## Coverage\n\nJob %s is %s.\n", v.Job, v.Status)
	if v.asksAlone() {
		return // the question is no document that could be left out
	}
	m.printf("\n")
	m.writeHeader("", "total", "mapped", "failed", "skipped")
	for _, l := range v.Coverage {
		m.writeRow(l.Name, fmt.Sprint(l.Total), fmt.Sprint(l.Mapped), fmt.Sprint(l.Failed), fmt.Sprint(l.Skipped))
	}
}

// writeText writes a report with its bibliography.
func (m *markdownPage) writeText(r *writtenReport, v view) {
	m.printf("# %s\n", escapeInline(cmp.Or(r.Question, v.Title)))

	for i, s := range r.shownSections() {
		if isFigure(s.Text) {
			m.printf("\n%s: %s\n", escapeInline(s.Title), s.Text)
			continue
		}
		if i > 0 || len(s.Items) > 0 {
			m.printf("\n## %s\n", escapeInline(s.Title))
		}
		if s.Text != "" {
			m.printf("\n%s\n", plainMarkdown(s.Text))
		}
		if len(s.Items) > 0 {
			m.printf("\n")
		}

		for _, item := range s.Items {
			m.printf("- %s\n", strings.Join(strings.Fields(plainMarkdown(item)), " "))
		}

		// A table needs an empty line above it.
		if len(s.Columns) > 0 {
			m.printf("\n")
			m.writeHeader(s.Columns...)
			for _, row := range s.Rows {
				m.writeRow(row...)
			}
		}
	}

	if len(r.References) > 0 {
		m.printf("\n## References\n\n%s", refs.ListMarkdown(r.References))
	}

	for _, line := range []string{r.silentDocuments(v), unusedCitations(v)} {
		if line != "" {
			m.printf("\n%s\n", line)
		}
	}
}

// shownSections returns the sections without those that say nothing but what stands before them: a short
// report may conclude with the only sentence that it has. Nor is a section shown that is empty.
func (r *writtenReport) shownSections() []writtenSection {
	var shown []writtenSection
	before := ""
	for _, s := range r.Sections {
		text := strings.TrimSpace(s.Text)
		isEmpty := text == "" && len(s.Items) == 0 && len(s.Columns) == 0
		if isEmpty || text != "" && !isFigure(text) && strings.Contains(before, text) {
			continue
		}

		shown = append(shown, s)
		before += text + "\n"
	}
	return shown
}

// isFigure reports whether the text of a section is a number alone.
func isFigure(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

// unusedCitations says how many passages were chosen that the report does not refer to, if these are all
// that was dropped; "" if none was, or something else too.
func unusedCitations(v view) string {
	if len(v.Dropped) == 0 || slices.ContainsFunc(v.Dropped, func(d droppedView) bool { return d.Reason != unusedReason }) {
		return ""
	}

	n, were := int64(len(v.Dropped)+v.MoreDrops), "were"
	if n == 1 {
		were = "was"
	}
	return fmt.Sprintf("The report does not refer to %s that %s chosen for it.", plural.Count(n, "other passage"), were)
}

// asksAlone reports whether the input of the job was a question alone, and tools brought the texts.
func (v *view) asksAlone() bool {
	for _, l := range v.Coverage {
		if l.Name == "documents" {
			return l.Total == 1 && l.Mapped == 1 && len(v.Evidence) > 0
		}
	}
	return false
}

// unusedReason is why a citation was dropped that nothing is wrong with.
const unusedReason = "the report does not use it"

// silentDocuments says of how many documents a report uses nothing, because they say
// nothing to the question, or nothing that others do not say better; "" if it uses
// something of each, or rests on texts that tools brought.
func (r *writtenReport) silentDocuments(v view) string {
	if len(r.References) == 0 {
		return "The report refers to no source."
	}
	cited := make(map[string]bool)
	for _, e := range r.References {
		cited[e.ID] = true
	}

	for _, l := range v.Coverage {
		silent := l.Mapped - int64(len(cited))
		if l.Name == "documents" && silent > 0 && len(v.Evidence) == 0 {
			return fmt.Sprintf("%s were read: the report refers to %d of them, and uses nothing of the other %d.", plural.Count(l.Mapped, "document"), len(cited), silent)
		}
	}
	return ""
}

// writeClaims writes how many claims are supported, and lists those that are not.
func (m *markdownPage) writeClaims(r *writtenReport) {
	s := &r.measures

	m.printf("\n## Check of the claims\n\n%s\n", s)
	if s.Supported == s.Claims {
		return
	}

	m.printf("\n")
	m.writeHeader("claim", "grade", "why")
	for _, c := range r.Claims {
		if c.Grade != "supported" {
			m.writeRow(c.Text, c.Grade, strings.Join(c.Reasons, "; "))
		}
	}
}

// plainMarkdown returns the Markdown of a report without what leads away or is HTML: tags,
// links and images. Lists and emphasis stay.
func plainMarkdown(text string) string {
	text = strings.NewReplacer("&", "&amp;", "<", "&lt;", "](", "]\\(", "]:", "]\\:", "![", "!\\[").Replace(isolateDirection(text))

	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			lines[i] = strings.Replace(line, "#", "\\#", 1)
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

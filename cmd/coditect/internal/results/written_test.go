package results_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results"
)

// reported is the result of a job that wrote a report with these references, of which some passages were
// dropped. The conclusion repeats the introduction, and one section is empty.
func reported(references string, dropped ...string) *store {
	parts := []*mapreduce.ResultPart{{Report: fmt.Appendf(nil, `{"question": "Why?", "sections": [
		{"name": "introduction", "title": "Introduction", "text": "Rivers carry sand [1]. They do so in spring [1]."},
		{"name": "checked", "title": "Sources checked", "text": "10"},
		{"name": "covered", "title": "Sources that cover it", "text": "10"},
		{"name": "none", "title": "Nothing", "text": " "},
		{"name": "conclusion", "title": "Conclusion", "text": "They do so in spring [1]."},
		{"name": "topics", "title": "Topics", "items": ["Sand"]}],
		"references": [%s], "claims": [], "measures": {"claims": 0, "judge": "rules"}}`, references)}}
	for i, reason := range dropped {
		parts = append(parts, &mapreduce.ResultPart{Dropped: fmt.Appendf(nil, `{"ref": "REF_%08x", "field": "", "unit_id": "final", "reason": %q}`, i, reason)})
	}
	parts = append(parts, &mapreduce.ResultPart{Summary: &mapreduce.Summary{Single: true}})
	return &store{job: job(), parts: parts}
}

const (
	unused   = "the report does not use it"
	oneEntry = `{"number": 1, "ref": "REF_0000000a", "document_id": "d0", "title": "Sand"}`
)

// TestWrittenReport checks that a report shows no section twice, and says in a line what would be an empty
// table (C13).
func TestWrittenReport(t *testing.T) {
	const repeated, losses, silent = "## Conclusion", "## Dropped citations", "The report refers to no source."
	for _, tt := range []struct {
		name       string
		references string
		dropped    []string
		has, lacks []string
	}{
		{
			"as it should be", oneEntry, nil,
			[]string{"Rivers carry sand [1].", "\nSources checked: 10\n", "\nSources that cover it: 10\n", "## Topics", "- Sand", "The report has no sentence to check."},
			[]string{repeated, "Nothing", losses, silent, "0 of 0", "other passage"},
		},
		{"one passage is not used", oneEntry, []string{unused}, []string{"The report does not refer to 1 other passage that was chosen for it."}, []string{losses}},
		{"two passages are not used", oneEntry, []string{unused, unused}, []string{"The report does not refer to 2 other passages that were chosen for it."}, []string{losses}},
		{"a passage is lost", oneEntry, []string{unused, "its quote is not in the text"}, []string{losses, "its quote is not in the text"}, []string{"other passage"}},
		{"no source", "", nil, []string{silent}, []string{"## References"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := write(t, reported(tt.references, tt.dropped...), results.Config{})
			text := readFile(t, dir, "report.md")
			for _, part := range tt.has {
				if !strings.Contains(text, part) {
					t.Errorf("report.md lacks %q:\n%s", part, text)
				}
			}
			for _, part := range tt.lacks {
				if strings.Contains(text, part) {
					t.Errorf("report.md has %q:\n%s", part, text)
				}
			}
			var names []string
			for _, s := range pageData(t, dir).Report.Sections {
				names = append(names, s.Name)
			}
			if got := strings.Join(names, " "); got != "introduction checked covered topics" {
				t.Errorf("report.html shows the sections %s", got)
			}
		})
	}
}

// TestReportOfAQuestionAlone checks that a report on what tools brought has no table of the documents that
// were read, which is the question alone.
func TestReportOfAQuestionAlone(t *testing.T) {
	const table = "| documents |"
	for _, evidence := range []bool{false, true} {
		s := reported(oneEntry)
		s.job.Coverage.Documents = mapreduce.Ledger{Total: 1, Mapped: 1}
		if evidence {
			s.parts = append(s.parts, &mapreduce.ResultPart{Evidence: &mapreduce.CitedEvidence{Unit: "u", Evidence: mapreduce.Evidence{Document: "d0", Title: "Sand", Tool: "read"}}})
		}
		if text := readFile(t, write(t, s, results.Config{}), "report.md"); strings.Contains(text, table) == evidence {
			t.Errorf("with evidence of tools %t, the table of documents is there: %t\n%s", evidence, !evidence, text)
		}
	}
}

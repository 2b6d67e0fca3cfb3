package refs_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/internal/text/refs"
)

func TestFromMetadata(t *testing.T) {
	for _, tt := range []struct {
		name     string
		metadata map[string]string
		want     refs.Source
		label    string
	}{
		{
			"a citation",
			map[string]string{"document_id": "d7", "title": "On  tides\n", "authors": `["Ada Byron", "Jan van der Berg"]`, "year": "2019", "url": "https://example.org/x"},
			refs.Source{ID: "d7", Title: "On tides", Authors: []string{"Ada Byron", "Jan van der Berg"}, Year: "2019", URL: "https://example.org/x"},
			"Byron and van der Berg. On tides (2019)",
		},
		{
			"authors in one text",
			map[string]string{"authors": "Smith, J.; Doe, A. and Roe, B.", "title": "T"},
			refs.Source{ID: "in-job", Title: "T", Authors: []string{"Smith, J.", "Doe, A.", "Roe, B."}},
			"Smith et al. T",
		},
		{"nothing", nil, refs.Source{ID: "in-job"}, "in-job"},
		{
			"an organisation, and an address that runs",
			map[string]string{"authors": `["NASA"]`, "year": "1969", "url": "javascript:alert(1)"},
			refs.Source{ID: "in-job", Authors: []string{"NASA"}, Year: "1969"},
			"NASA. in-job (1969)",
		},
		{
			"null members",
			map[string]string{"authors": "null", "year": "null", "title": ""},
			refs.Source{ID: "in-job", Year: "null"},
			"in-job (null)",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := refs.FromMetadata("in-job", tt.metadata)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if got := got.Label(); got != tt.label {
				t.Errorf("label %q, want %q", got, tt.label)
			}
		})
	}
}

// entries are of sources that try to be more than data.
func entries() []refs.Entry {
	return []refs.Entry{
		{Number: 1, Ref: "REF_00000001", Source: refs.FromMetadata("a.txt", map[string]string{
			"title": "Gains of 5% & [costs](x) {in} $", "authors": `["Ada Byron", "CERN"]`, "year": "2020", "url": "https://example.org/a_b",
		})},
		{Number: 2, Ref: "REF_00000002", Source: refs.FromMetadata("b_c.txt", map[string]string{"year": "spring 2001"})},
	}
}

func TestMarkdown(t *testing.T) {
	want := "- **1.** Ada Byron; CERN. *Gains of 5% \\& \\[costs\\]\\(x\\) \\{in\\} \\$*. 2020. <https://example.org/a_b>. Document a.txt.\n" +
		"- **2.** *b\\_c.txt*. spring 2001.\n"
	if diff := cmp.Diff(want, refs.ListMarkdown(entries())); diff != "" {
		t.Error(diff)
	}
	two := append(entries(), entries()[0])
	two[0].Place, two[1].Place = "page 3", "characters 5 to 9"
	two[2].Number, two[2].Ref, two[2].Place = 3, "REF_00000003", "page_7"
	want = "- **1, 3.** Ada Byron; CERN. *Gains of 5% \\& \\[costs\\]\\(x\\) \\{in\\} \\$*. 2020. <https://example.org/a_b>. Document a.txt. Page 3 \\(1\\), page\\_7 \\(3\\).\n" +
		"- **2.** *b\\_c.txt*. spring 2001. Characters 5 to 9.\n"
	if diff := cmp.Diff(want, refs.ListMarkdown(two)); diff != "" {
		t.Errorf("two passages of one document: %s", diff)
	}
}

func TestBibTeX(t *testing.T) {
	want := "@misc{REF_00000001,\n  title = {{Gains of 5\\% \\& [costs](x) \\{in\\} \\$}},\n  author = {Byron, Ada and {CERN}},\n  year = {2020},\n" +
		"  url = {https://example.org/a_b},\n  note = {[1] document a.txt}\n}\n" +
		"@misc{REF_00000002,\n  title = {{b\\_c.txt}},\n  year = {spring 2001},\n  note = {[2] document b\\_c.txt}\n}\n"
	if diff := cmp.Diff(want, refs.BibTeX(entries())); diff != "" {
		t.Error(diff)
	}
	again := append(entries(), entries()[0])
	again[2].Number, again[2].Ref = 3, "REF_00000003"
	got := refs.BibTeX(again)
	if strings.Count(got, "@misc") != 2 || !strings.Contains(got, "@misc{REF_00000001,\n  ids = {REF_00000003},\n") || !strings.Contains(got, "note = {[1, 3] document a.txt}") {
		t.Errorf("two passages of one document:\n%s", got)
	}
	again[0].Place, again[2].Place = "page 3", "page_7"
	if got := refs.BibTeX(again); !strings.Contains(got, `note = {[1, 3] document a.txt: [1] page 3; [3] page\_7}`) {
		t.Errorf("places of passages:\n%s", got)
	}
}

// Two passages of one document are one item of CSL-JSON, with the place of each.
func TestCSLOfPassages(t *testing.T) {
	again := append(entries(), entries()[0])
	again[2].Number, again[2].Ref, again[2].Place, again[0].Place = 3, "REF_00000003", "page 7", "page 3"
	data, err := refs.CSL(again)
	if err != nil {
		t.Fatal(err)
	}
	var got []struct {
		ID, Note string
		Number   string `json:"citation-number"`
		Custom   struct{ References []string }
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Number != "1, 3" || got[0].Note != "[1] page 3; [3] page 7" || !slices.Equal(got[0].Custom.References, []string{"REF_00000001", "REF_00000003"}) {
		t.Errorf("items are %+v", got)
	}
}

func TestCSL(t *testing.T) {
	data, err := refs.CSL(entries())
	if err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{
		{
			"id": "REF_00000001", "type": "document", "citation-number": "1", "title": "Gains of 5% & [costs](x) {in} $", "URL": "https://example.org/a_b", "source": "a.txt",
			"author": []any{map[string]any{"family": "Byron", "given": "Ada"}, map[string]any{"literal": "CERN"}},
			"issued": map[string]any{"date-parts": []any{[]any{2020.0}}}, "custom": map[string]any{"references": []any{"REF_00000001"}},
		},
		{"id": "REF_00000002", "type": "document", "citation-number": "2", "title": "b_c.txt", "source": "b_c.txt", "issued": map[string]any{"raw": "spring 2001"}, "custom": map[string]any{"references": []any{"REF_00000002"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestSourcesStayData: whatever metadata says, braces of BibTeX stay balanced, entries of
// Markdown stay on their line, and a label is one line that says something.
func TestSourcesStayData(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("ab {}\\%$\n[]()<>*_`,;@ \u202e\x00é")))
		s := refs.FromMetadata("d", map[string]string{
			"title": text.Draw(t, "title"), "authors": text.Draw(t, "authors"), "year": text.Draw(t, "year"), "url": "https://" + text.Draw(t, "url"),
		})
		e := []refs.Entry{{Number: 1, Ref: "REF_0", Source: s}}
		if md := refs.ListMarkdown(e); strings.Count(md, "\n") != 1 {
			t.Fatalf("%q is not one line", md)
		}
		depth := 0
		tex := strings.ReplaceAll(strings.ReplaceAll(refs.BibTeX(e), `\{`, ""), `\}`, "")
		for _, r := range tex {
			switch r {
			case '{':
				depth++
			case '}':
				depth--
			}
			if depth < 0 {
				break
			}
		}
		if depth != 0 {
			t.Fatalf("braces of %q are not balanced", tex)
		}
		if label := s.Label(); strings.TrimSpace(label) == "" || strings.ContainsAny(label, "\n\x00") {
			t.Fatalf("label %q", label)
		}
	})
}

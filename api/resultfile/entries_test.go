package resultfile_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/resultfile"
)

// A scratch is one in memory.
type scratch struct{ bytes.Buffer }

func (s *scratch) MoveTo(out io.Writer) error {
	_, err := s.WriteTo(out)
	return err
}

// TestCitationsAsJSON checks that citations are written as the encoder of JSON writes them,
// whatever is in their texts, with a space behind each colon of a name.
func TestCitationsAsJSON(t *testing.T) {
	texts := []string{
		"", "12.50", `a "quoted" part`, `C:\temp`, "two\nlines\tand \x00 more", "Bär, Söhne & <Co>", "a\u2028b", "not \xff UTF-8", "2001年4月18日", "key: value",
	}
	var parts []mapreduce.Citation
	for i, text := range texts {
		parts = append(parts, mapreduce.Citation{
			Ref: strings.Repeat("R", i+1), Document: mapreduce.DocumentID(text), Unit: mapreduce.UnitID("u" + text),
			Start: int64(i), End: -1, ByteStart: 1 << 60, ByteEnd: 7, Quote: text, Grade: "exact",
		})
	}
	parts = append(
		parts,
		mapreduce.Citation{Ref: "O", Outside: true}, mapreduce.Citation{Ref: "P", Others: 2}, mapreduce.Citation{Ref: "C", Coverage: 0.5},
		mapreduce.Citation{Ref: "D", Density: 0.5}, mapreduce.Citation{Ref: "L", Label: "1"}, mapreduce.Citation{Ref: "U", URI: "https://a.example/"},
		mapreduce.Citation{Ref: "G", Location: &mapreduce.Location{Page: 3}},
	)
	written := new(scratch)
	s, err := resultfile.NewSections(func(section string) (resultfile.Scratch, error) {
		if section == "citations" {
			return written, nil
		}
		return new(scratch), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range parts {
		if _, err := s.AddPart(&mapreduce.ResultPart{Citation: &parts[i]}); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimPrefix(written.String(), "\n"), ",\n")
	if len(lines) != len(parts) {
		t.Fatalf("%d lines of %d citations", len(lines), len(parts))
	}
	for i, line := range lines {
		want, err := resultfile.Encode(map[string]any{parts[i].Ref: resultfile.CitationOf(&parts[i])})
		if err != nil {
			t.Fatal(err)
		}
		var got, compact bytes.Buffer
		if err := json.Compact(&compact, []byte("{"+line+"}")); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		got.Write(compact.Bytes())
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("citation %d (-want +got):\n%s", i, diff)
		}
		if !strings.Contains(line, `"document_id": `) || !strings.Contains(line, `,"end": `) {
			t.Errorf("no space behind a colon: %s", line)
		}
	}
}

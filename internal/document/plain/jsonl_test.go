package plain_test

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document/plain"
)

// lines returns the records of a file and the errors between them.
func lines(r io.Reader, o plain.LineOptions) (records []plain.LineRecord, errs []string) {
	for rec, err := range plain.JSONLines(r, o) {
		if err != nil {
			errs = append(errs, err.Error())
		} else {
			records = append(records, rec)
		}
	}
	return records, errs
}

func TestLines(t *testing.T) {
	const file = "\ufeff" + `{"id": "one", "text": "first", "year": 2024, "tags": ["a", {"b": 1.50}]}` + "\r\n" +
		"\n" +
		`{"text": "without a name"}` + "\n" +
		`{"id": 7, "text": "a number"}` + "\n" +
		`{"id": "final", "text": "reserved\n\u00e9"}`
	got, errs := lines(strings.NewReader(file), plain.LineOptions{Name: "x.jsonl"})
	want := []plain.LineRecord{
		{ID: "one", Name: "one", Text: "first", Line: 1, Metadata: map[string]any{
			"year": json.Number("2024"), "tags": []any{"a", map[string]any{"b": json.Number("1.50")}},
		}},
		{ID: "x.jsonl#3", Text: "without a name", Line: 3},
		{ID: "7", Name: "7", Text: "a number", Line: 4},
		{ID: "%66inal", Name: "final", Text: "reserved\né", Line: 5},
	}
	if diff := cmp.Diff(want, got); diff != "" || errs != nil {
		t.Errorf("errors %q, records (-want +got):\n%s", errs, diff)
	}
}

func TestLineErrors(t *testing.T) {
	for _, test := range []struct {
		name string
		line string
		want string
	}{
		{"no text", `{"id": "x"}`, "f:1: text is missing"},
		{"a source whose address is no text", `{"id": "x", "url": 7}`, "f:1: url is not a string"},
		{"null", `{"text": null}`, "f:1: text is not a string"},
		{"number", `{"text": 5}`, "f:1: text is not a string"},
		{"empty", `{"text": " \n"}`, "f:1: text is empty"},
		{"NULs", `{"text": "\u0000\u0000"}`, "f:1: not text: 2 NUL and 0 other control characters in 2 bytes"},
		{"bad id", `{"id": ["x"], "text": "x"}`, "f:1: id is neither a string nor a number"},
		{"long id", `{"id": "` + strings.Repeat("x", 513) + `", "text": "x"}`, "f:1: its id would have 513 bytes, more than 512; give it a shorter name"},
		{"array", `["x"]`, "f:1: not a JSON object but array"},
		{"null line", `null`, "f:1: not a JSON object but null"},
		{"not JSON", `{"text": x}`, "f:1: not JSON: column 10: 'x' stands where a value has to; a comma before ] is one too many, and texts need quotes"},
		{"cut off", `{"text": "x`, "f:1: not JSON: column 11: the text ends within a value: a bracket, a brace or a quote is not closed"},
		{"two objects", `{"text": "x"} {}`, "f:1: not JSON: column 15: '{' stands behind the end of the value"},
		{"not UTF-8", "{\"text\": \"\xff\"}", "f:1: not UTF-8: column 11"},
		{"half a surrogate pair", `{"text": "a\ud800b"}`, "f:1: text escapes half a surrogate pair"},
		{"too long", `{"text": "` + strings.Repeat("x", 100_000) + `"}`, "f:1: the line is too long: more than 2000 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, errs := lines(strings.NewReader(test.line+"\n{\"text\": \"next\"}\n"), plain.LineOptions{Name: "f", MaxBytes: 2000})
			if diff := cmp.Diff([]string{test.want}, errs); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if want := []plain.LineRecord{{ID: "f#2", Text: "next", Line: 2}}; !cmp.Equal(want, got) {
				t.Errorf("the next line reads as %+v", got)
			}
		})
	}
}

func TestLineLimit(t *testing.T) {
	line := `{"text": "x"}`
	for _, end := range []string{"", "\n", "\r\n"} {
		if _, errs := lines(strings.NewReader(line+end), plain.LineOptions{MaxBytes: len(line)}); errs != nil {
			t.Errorf("a line of just the maximum, ended by %q: %q", end, errs)
		}
		if _, errs := lines(strings.NewReader(line+end), plain.LineOptions{MaxBytes: len(line) - 1}); len(errs) != 1 {
			t.Errorf("a line of one more, ended by %q: %q", end, errs)
		}
	}
}

func TestReplacementCharacterIsText(t *testing.T) {
	got, errs := lines(strings.NewReader(`{"text": "a\uFFFDb`+"\ufffd"+`"}`), plain.LineOptions{})
	if errs != nil || len(got) != 1 || got[0].Text != "a\ufffdb\ufffd" {
		t.Errorf("got %+v, %q", got, errs)
	}
}

func TestLinesReadError(t *testing.T) {
	broken := errors.New("broken pipe")
	r := io.MultiReader(strings.NewReader("{\"text\": \"x\"}\n{\"te"), iotest.ErrReader(broken))
	var got []error
	for _, err := range plain.JSONLines(r, plain.LineOptions{}) {
		got = append(got, err)
	}
	if len(got) != 2 || got[0] != nil || !errors.Is(got[1], broken) || !strings.Contains(got[1].Error(), "stdin, line 2") {
		t.Errorf("got errors %v", got)
	}
}

func TestLinesStop(t *testing.T) {
	n := 0
	for _, err := range plain.JSONLines(strings.NewReader(strings.Repeat("{\"text\": \"x\"}\n", 10)), plain.LineOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("%d records", n)
	}
}

func FuzzLines(f *testing.F) {
	for _, seed := range []string{
		`{"id": "x", "text": "y"}`, "\ufeff{}\n\n{\"text\": 1}", "{\"text\": \"\\ud800\"}\r\n", "[\n", "\x00\n\xff", `{"text":"x","text":"y"}`,
		`{"id": 1e400, "text": "x", "a": {"b": [1.0]}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, file string) {
		last := 0
		for rec, err := range plain.JSONLines(strings.NewReader(file), plain.LineOptions{MaxBytes: 100}) {
			line := rec.Line
			if err != nil {
				var bad *plain.LineError
				if !errors.As(err, &bad) {
					t.Fatalf("error %v", err)
				}
				line = bad.Line
			} else if !utf8.ValidString(rec.Text) || strings.TrimSpace(rec.Text) == "" || mapreduce.DocumentID(rec.ID).Reserved() {
				t.Fatalf("record %+v", rec)
			}
			if line <= last || line > strings.Count(file, "\n")+1 {
				t.Fatalf("line %d behind %d", line, last)
			}
			last = line
		}
	})
}

func BenchmarkLines(b *testing.B) {
	file := strings.Repeat(`{"id": "some-package", "text": "Package: some-package\nVersion: 1.0\n", "section": "main"}`+"\n", 10_000)
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		if got, errs := lines(strings.NewReader(file), plain.LineOptions{}); len(got) != 10_000 || errs != nil {
			b.Fatal(len(got), errs)
		}
	}
}

// TestSources: a line about a source that is elsewhere is a document of what it says.
func TestSources(t *testing.T) {
	const lines = `{"country": "Aland", "media_name": "Daily", "url": "https://a.example/", "rank": 3}`
	for rec, err := range plain.JSONLines(strings.NewReader(lines), plain.LineOptions{Name: "s.jsonl"}) {
		if err != nil {
			t.Fatal(err)
		}
		if want := "country: Aland\nmedia_name: Daily\nurl: https://a.example/\n"; rec.Text != want || rec.ID != "s.jsonl#1" || rec.Metadata["country"] != "Aland" {
			t.Errorf("%+v, want the text %q", rec, want)
		}
	}
}

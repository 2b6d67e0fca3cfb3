package results_test

import (
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results"
)

// A shownQuote is a citation as JSON shows it.
type shownQuote struct {
	Start, End int
	ByteStart  int `json:"byte_start"`
	ByteEnd    int `json:"byte_end"`
	Quote      string
}

// check compares a quote with its text at both kinds of offsets.
func (q shownQuote) check(t *testing.T, text string) {
	t.Helper()
	if got := text[q.ByteStart:q.ByteEnd]; got != q.Quote {
		t.Errorf("%q at bytes %d to %d, which are %q", q.Quote, q.ByteStart, q.ByteEnd, got)
	}
	if got := string([]rune(text)[q.Start:q.End]); got != q.Quote {
		t.Errorf("%q at characters %d to %d, which are %q", q.Quote, q.Start, q.End, got)
	}
}

var (
	quoted     = regexp.MustCompile(`“(.*?)” \(d, 0–`)
	escaped    = regexp.MustCompile(`\\([\\|*_\x60\[\]#~$])`)
	lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n")
)

// TestShownQuotesAreTheText: whatever a quote holds, each file shows it letter by
// letter; those for people with the line ends of a page.
func TestShownQuotesAreTheText(t *testing.T) {
	for name, text := range map[string]string{
		"markup":           "<b>&amp; **bold** _it_ `code` [a](b) ![x](y) | # ~~x~~ \\* </mark></td>",
		"sums":             "from $5 to $6 and $x^2$",
		"white space":      "1\u00a0500  two\tthree \u202f four\u3000five",
		"line ends":        "one\r\ntwo\n\nthree\rfour",
		"line separators":  "one\u2028two\u2029three\u0085four\vfive\fsix",
		"combining":        "e\u0301 ﬁ Å 10² ½",
		"not seen":         "in\u200bvo\u00adi\u2060ce\ufeff",
		"emoji":            "👨\u200d👩\u200d👧 🇩🇪 ❤\ufe0f",
		"characters":       "漢字かな、각",
		"quotation marks":  "he said “it’s ‹done›” \"so\"",
		"joined scripts":   "سلام שלום नमस्ते",
		"JSON":             "a\"b\\c/\u007f\u2028",
		"very long":        strings.Repeat("漢e\u0301 \r\n", 5000),
		"replacement char": "a\ufffdb",
	} {
		t.Run(name, func(t *testing.T) {
			cite := &mapreduce.Citation{
				Ref: "REF_00000000", Document: "d", Unit: "d", End: int64(len([]rune(text))), ByteEnd: int64(len(text)), Quote: text, Grade: "exact",
			}
			record := fmt.Appendf(nil, `{"name": "x", "total": null, "_sources": ["d"], "_citations": {"name": ["REF_00000000"]}, "_confidence": {"name": 0.5}, "_missing": {}, "_unverified": {}}`)
			s := complete(&mapreduce.ResultPart{Record: record}, &mapreduce.ResultPart{Citation: cite})
			s.units = []*mapreduce.Unit{quoting(t, "d", 0, text)}
			dir := write(t, s, results.Config{})

			var result struct{ Citations map[string]shownQuote }
			if err := json.Unmarshal([]byte(readFile(t, dir, "result.json")), &result); err != nil {
				t.Fatal(err)
			}
			result.Citations["REF_00000000"].check(t, text)
			var unit struct{ Citations []shownQuote }
			if err := json.Unmarshal([]byte(readFile(t, dir, "units.jsonl")), &unit); err != nil {
				t.Fatal(err)
			}
			unit.Citations[0].check(t, text)

			if c := pageData(t, dir).Citations; len(c) != 1 || c[0].Quote != text {
				t.Errorf("report.html has %.200v, the text is %.200q", c, text)
			}
			line := quoted.FindStringSubmatch(readFile(t, dir, "report.md"))
			if line == nil {
				t.Fatal("report.md shows no quote on one line")
			}
			got := html.UnescapeString(escaped.ReplaceAllString(strings.ReplaceAll(line[1], "<br>", "\n"), "$1"))
			if want := lineBreaks.Replace(text); got != want {
				t.Errorf("report.md shows %.200q, the text is %.200q", got, want)
			}
		})
	}
}

// TestDirectionStaysInQuotes: what changes the direction in a document does not in
// what stands behind it.
func TestDirectionStaysInQuotes(t *testing.T) {
	for name, text := range map[string]string{
		"override": "a\u202eb", "isolate": "a\u2067b", "closes one that is not open": "a\u2069\u202eb", "closed": "a\u2067b\u2069\u202e\u202c",
	} {
		t.Run(name, func(t *testing.T) {
			parts := records(1)
			parts[1].Citation.Quote = text
			dir := write(t, complete(parts...), results.Config{})
			line := quoted.FindStringSubmatch(readFile(t, dir, "report.md"))
			if line == nil || !strings.Contains(line[1], text) {
				t.Fatalf("report.md shows %q, the text is %q", line, text)
			}
			depth := 0
			for i, r := range line[1] {
				switch r {
				case '\u2066', '\u2067', '\u2068':
					depth++
				case '\u2069':
					depth--
				}
				if last := i+len(string(r)) == len(line[1]); last != (depth == 0) {
					t.Fatalf("%q is open to what is around it at byte %d", line[1], i)
				}
			}
		})
	}
}

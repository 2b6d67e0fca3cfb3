//go:build ignore

// Checkresult reads a result.json and trusts nothing in it: every
// value has a citation, and the text of a citation stands in its document where
// the citation says. It shares no code with the program that wrote the file.
//
//	go run .ci/checkresult.go -input DIR result.json
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

type result struct {
	JobID     string              `json:"job_id"`
	Status    string              `json:"status"`
	Data      []record            `json:"aggregated_data"`
	Citations map[string]citation `json:"citations"`
	Coverage  map[string]ledger   `json:"coverage"`
}

type record map[string]json.RawMessage

type citation struct {
	Document  string `json:"document_id"`
	Start     int    `json:"start"` // code points, half-open
	End       int    `json:"end"`
	ByteStart int    `json:"byte_start"`
	ByteEnd   int    `json:"byte_end"`
	Quote     string `json:"quote"`
	Grade     string `json:"grade"`
}

type ledger struct{ Total, Mapped, Failed, Skipped int64 }

func main() {
	log.SetFlags(0)
	input := flag.String("input", "", "folder that the documents' ids are relative to")
	flag.Parse()

	data, err := os.ReadFile(flag.Arg(0))
	if err != nil {
		log.Fatal(err)
	}

	var r result
	if err := json.Unmarshal(data, &r); err != nil {
		log.Fatalf("%s: %v", flag.Arg(0), err)
	}

	values, err := r.check()
	if err != nil {
		log.Fatal(err)
	}

	read, err := r.checkQuotes(*input)
	if err != nil {
		log.Fatal(err)
	}

	fmt.Printf("%s %s: %d records, %d values, %d citations, %d of them read in their document\n",
		r.JobID, r.Status, len(r.Data), values, len(r.Citations), read)
}

// check returns the number of values, all of which are cited.
func (r *result) check() (values int, err error) {
	if len(r.Data) == 0 {
		return 0, fmt.Errorf("aggregated_data is empty")
	}

	for what, l := range r.Coverage {
		if l.Total != l.Mapped+l.Failed+l.Skipped {
			return 0, fmt.Errorf("coverage of %s does not add up: %+v", what, l)
		}
	}

	for i, rec := range r.Data {
		n, err := r.checkRecord(rec)
		if err != nil {
			return 0, fmt.Errorf("record %d: %w", i, err)
		}
		values += n
	}

	// A result without values would pass all checks above.
	if values == 0 {
		return 0, fmt.Errorf("no record has a value")
	}
	return values, nil
}

func (r *result) checkRecord(rec record) (values int, err error) {
	refs := make(map[string][]string)
	if c, ok := rec["_citations"]; ok {
		if err := json.Unmarshal(c, &refs); err != nil {
			return 0, fmt.Errorf("_citations: %w", err)
		}
	}

	if d, ok := rec["_derived"]; ok {
		var derived map[string]struct {
			Citations []string `json:"citations"`
		}
		if err := json.Unmarshal(d, &derived); err != nil {
			return 0, fmt.Errorf("_derived: %w", err)
		}
		// Derived values have their citations apart.
		for name, one := range derived {
			refs[name] = one.Citations
		}
	}

	for name, value := range rec {
		if strings.HasPrefix(name, "_") || slices.Contains([]string{"null", "[]", "{}"}, string(value)) {
			continue
		}
		values++
		if len(refs[name]) == 0 {
			return 0, fmt.Errorf("%s = %s has no citation", name, value)
		}

		for _, ref := range refs[name] {
			if _, ok := r.Citations[ref]; !ok {
				return 0, fmt.Errorf("%s cites %s, which is not there", name, ref)
			}
		}
	}
	return values, nil
}

// checkQuotes compares quotes with the files they are from and returns how
// many. A file whose text is not its bytes, such as Markdown, is left out.
func (r *result) checkQuotes(input string) (read int, err error) {
	texts := make(map[string]string)
	for ref, c := range r.Citations {
		text, ok := texts[c.Document]
		if !ok {
			text = plainText(filepath.Join(input, filepath.FromSlash(c.Document)))
			texts[c.Document] = text
		}

		// A document in another format than plain text is passed over.
		if text == "" {
			continue
		}
		if err := c.check(text); err != nil {
			return 0, fmt.Errorf("%s in %s: %w", ref, c.Document, err)
		}
		read++
	}

	if read == 0 {
		return 0, fmt.Errorf("no citation could be read in its document")
	}
	return read, nil
}

func (c citation) check(text string) error {
	if c.ByteStart < 0 || c.ByteEnd > len(text) || c.ByteStart >= c.ByteEnd {
		return fmt.Errorf("bytes [%d,%d) are not in a text of %d", c.ByteStart, c.ByteEnd, len(text))
	}
	if got := text[c.ByteStart:c.ByteEnd]; got != c.Quote {
		return fmt.Errorf("bytes [%d,%d) are %q, not %q", c.ByteStart, c.ByteEnd, got, c.Quote)
	}

	start := utf8.RuneCountInString(text[:c.ByteStart])
	if end := start + utf8.RuneCountInString(c.Quote); start != c.Start || end != c.End {
		return fmt.Errorf("characters are [%d,%d), not [%d,%d)", start, end, c.Start, c.End)
	}
	return nil
}

func plainText(file string) string {
	if !slices.Contains([]string{"", ".txt"}, path.Ext(filepath.Base(file))) {
		return ""
	}
	data, err := os.ReadFile(file)
	if err != nil || !utf8.Valid(data) || strings.ContainsAny(string(data), "\r\ufeff") {
		return ""
	}
	return string(data)
}

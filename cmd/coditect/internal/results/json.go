package results

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// encodeJSON returns v as JSON on one line. It does not escape < > &.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// indentJSON returns JSON indented over lines that begin with prefix.
func indentJSON(data []byte, prefix string) ([]byte, error) {
	var b bytes.Buffer
	if err := json.Indent(&b, data, prefix, "  "); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// A listWriter writes the elements of a JSON list or object, each on a line of its own.

type listWriter struct {
	out  *file
	n    int   // elements so far
	size int64 // bytes so far
}

// add writes an element; name is empty in lists.
func (l *listWriter) add(name string, data []byte) error {
	if l.n++; l.n > 1 {
		if _, err := l.out.WriteString(","); err != nil {
			return err
		}
	}
	if name != "" {
		key, err := encodeJSON(name)
		if err != nil {
			return err
		}
		data = append(append(key, ':'), data...)
	}
	n, err := fmt.Fprintf(l.out, "\n%s", spaceColons(data))
	l.size += int64(n)
	return err
}

// spaceColons returns JSON on one line with a space behind the names of members, so that
// it can be searched like JSON over several lines.
func spaceColons(data []byte) []byte {
	out := make([]byte, 0, len(data)+len(data)/16)
	inText, escaped := false, false
	for _, c := range data {
		out = append(out, c)
		switch {
		case escaped:
			escaped = false
		case inText && c == '\\':
			escaped = true
		case c == '"':
			inText = !inText
		case c == ':' && !inText:
			out = append(out, ' ')
		}
	}
	return out
}

// addValue writes v as an element.
func (l *listWriter) addValue(name string, v any) error {
	data, err := encodeJSON(v)
	if err != nil {
		return err
	}
	return l.add(name, data)
}

// USD returns millionths of a US dollar in dollars.
func USD(micros int64) float64 { return float64(micros) / 1e6 }

// formatTime formats a time for the files. It returns nil for the zero time.
func formatTime(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := t.UTC().Format("2006-01-02T15:04:05.000000Z")
	return &s
}

// roundedRatio returns a/b rounded to four digits, or nil if b is 0.
func roundedRatio(a, b float64) *float64 {
	if b == 0 {
		return nil
	}
	r := math.Round(a/b*1e4) / 1e4
	return &r
}

// orEmpty returns data, or empty if there is no data.
func orEmpty(data []byte, empty string) json.RawMessage {
	if len(data) == 0 {
		return json.RawMessage(empty)
	}
	return data
}

// A Ledger counts documents or characters by their outcome.
type Ledger struct {
	Total   int64 `json:"total"`
	Mapped  int64 `json:"mapped"`
	Failed  int64 `json:"failed"`
	Skipped int64 `json:"skipped"`
}

// A Coverage accounts for every document and every character.
type Coverage struct {
	Documents  Ledger `json:"documents"`
	Characters Ledger `json:"characters"`
}

// CoverageOf returns the JSON form of a job's coverage.
func CoverageOf(c mapreduce.Coverage) Coverage {
	return Coverage{Documents: Ledger(c.Documents), Characters: Ledger(c.Characters)}
}

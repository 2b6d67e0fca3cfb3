package mcp

import (
	"encoding/json"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/internal/text/prose"
)

// A query is what to look for in records.
type query struct {
	whole string          // in small letters, for languages without spaces
	stems map[string]bool // of its words, without common ones if it has others
}

// maxQuery bounds a query, in bytes.
const maxQuery = 4 << 10

func newQuery(text string) (*query, error) {
	if len(text) > maxQuery {
		return nil, errs.Field("query", "has %d bytes; at most %d are accepted", len(text), maxQuery)
	}
	q := &query{whole: strings.ToLower(strings.Join(strings.Fields(text), " ")), stems: make(map[string]bool)}
	if q.whole == "" {
		return nil, errs.Field("query", "is empty")
	}

	// Common words count only in a query that has no others.
	words := prose.Words(text)
	for _, common := range []bool{false, true} {
		for _, w := range words {
			if w.Common == common && (!common || len(q.stems) == 0) {
				q.stems[w.Stem] = true
			}
		}
	}

	return q, nil
}

// score returns which share of the query's words a record has, in its values or quotes. A
// record that has the query as it stands has all.
func (q *query) score(f *found) float64 {
	var b strings.Builder
	var value any
	if json.Unmarshal(f.Record, &value) == nil {
		writeTexts(&b, value)
	}
	for _, c := range f.Citations {
		b.WriteString(c.Quote + "\n" + c.Label + "\n" + c.Document + "\n")
	}

	text := b.String()
	// As in the query, it does not matter how words are separated.
	if strings.Contains(strings.ToLower(strings.Join(strings.Fields(text), " ")), q.whole) {
		return 1
	}
	if len(q.stems) == 0 {
		return 0
	}

	has := make(map[string]bool)
	for _, w := range prose.Words(text) {
		if q.stems[w.Stem] {
			has[w.Stem] = true
		}
	}

	return float64(len(has)) / float64(len(q.stems))
}

// writeTexts writes the texts and numbers of a value, each on a line.
func writeTexts(b *strings.Builder, value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, child := range v {
			writeTexts(b, child)
		}
	case []any:
		for _, child := range v {
			writeTexts(b, child)
		}
	case nil, bool:
	case string:
		b.WriteString(v + "\n")
	default:
		if data, err := json.Marshal(v); err == nil {
			b.Write(data)
			b.WriteString("\n")
		}
	}
}

package search

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/worker/tool"
)

// callTime is how long a call takes at most. It may have to wait for an index.
const callTime = 2 * time.Minute

// Tools implements tool.Kit.
func (k *Kit) Tools() []tool.Spec {
	return []tool.Spec{{
		Name: Name,
		Description: fmt.Sprintf("Searches the documents of this installation, which are in the stores %s, and returns the passages that fit best, "+
			"with their documents and offsets. Ask in the words that the documents would use; no character of the query has a special meaning.", strings.Join(k.names(), ", ")),
		Input: k.inputSchema(), Idempotent: true, Timeout: callTime, Query: "query",
	}}
}

// inputSchema returns the JSON Schema of a call.
func (k *Kit) inputSchema() json.RawMessage {
	schema, err := json.Marshal(map[string]any{
		"type": "object", "additionalProperties": false, "required": []string{"query"},
		"properties": map[string]any{
			"query": map[string]any{"type": "string", "minLength": 1, "maxLength": MaxQuery, "description": "what to look for, as a question or as words"},
			"stores": map[string]any{
				"type": "array", "items": map[string]any{"type": "string", "enum": k.names()},
				"description": "the stores to search; all if it is left out",
			},
			"top_k": map[string]any{
				"type": "integer", "minimum": 1, "maximum": MaxTopK,
				"description": fmt.Sprintf("how many passages of each store to return; %d if it is left out", k.config.TopK),
			},
		},
	})
	if err != nil { // of texts and numbers
		panic(err)
	}
	return schema
}

// Open implements tool.Kit. It brings the indexes up to date. A store that cannot be searched
// is an error of the calls that search it.
func (k *Kit) Open(ctx context.Context) (tool.Session, error) {
	if err := k.Prepare(ctx); err != nil && ctx.Err() != nil {
		return nil, err
	}
	return session{k}, nil
}

// A session searches for one unit.
type session struct{ kit *Kit }

// Close implements tool.Session.
func (session) Close() error { return nil }

// Call implements tool.Session.
func (s session) Call(ctx context.Context, name string, input json.RawMessage) (*tool.Result, error) {
	if name != Name {
		return nil, fmt.Errorf("%q: %w; there is %s", name, tool.ErrNoTool, Name)
	}

	q, err := readInput(input)
	if err != nil {
		return nil, err
	}

	all, err := s.kit.Search(ctx, q)
	if err != nil {
		return nil, err
	}
	return resultOf(all), nil
}

// readInput reads the input of a call.
func readInput(input json.RawMessage) (Query, error) {
	var in struct {
		Query  string   `json:"query"`
		Stores []string `json:"stores"`
		TopK   *int     `json:"top_k"`
	}

	if err := tool.DecodeInput(input, &in); err != nil {
		return Query{}, err
	}

	q := Query{Text: in.Query, Stores: in.Stores}
	if in.TopK != nil {
		if q.TopK = *in.TopK; q.TopK == 0 {
			q.TopK = -1 // not the default
		}
	}
	return q, nil
}

// resultOf returns the result for a model: its text about the hits, and the evidence.
func resultOf(all []StoreHits) *tool.Result {
	var r tool.Result
	var text strings.Builder
	for _, s := range all {
		switch {
		case s.Err != nil:
			fmt.Fprintf(&text, "%s could not be searched: %v\n", s.Store, s.Err)
		case s.Empty:
			fmt.Fprintf(&text, "%s has no documents.\n", s.Store)
		case len(s.Hits) == 0:
			fmt.Fprintf(&text, "%s has no passage with any of these words.\n", s.Store)
		default:
			fmt.Fprintf(&text, "%s, best first:\n", s.Store)
		}

		for n, h := range s.Hits {
			fmt.Fprintf(&text, "%d. %s, bytes %d to %d, characters %d to %d\n", n+1, h.Document, h.Start, h.End, h.CharStart, h.CharEnd)
			r.Evidence = addEvidence(r.Evidence, h)
		}
		if s.Note != "" {
			fmt.Fprintf(&text, "%s\n", s.Note)
		}
	}

	r.Text = text.String()
	return &r
}

// Bounds of the text of one piece of evidence. A document that is longer is cited by parts.
const (
	wholeBytes = 256 << 10 // of a document that is given whole
	partBytes  = 64 << 10  // of the parts of any other
)

// addEvidence adds the text in which a hit is: the document, or the part of it. Hits in the
// same text are shown together.
func addEvidence(all []tool.Evidence, h Hit) []tool.Evidence {
	from, to := partOf(h)
	uri := "local:" + h.Store + "/" + h.Document
	metadata := map[string]string{"store": h.Store, "document": h.Document}
	for name, value := range h.Metadata {
		// The entries of the program go before those of the document.
		if _, ours := metadata[name]; !ours {
			metadata[name] = value
		}
	}

	if to-from < len(h.text) {
		uri += fmt.Sprintf("#bytes=%d-%d", from, to)
		metadata["part"] = fmt.Sprintf("bytes %d to %d of %d", from, to, len(h.text))
	}

	shown := tool.Range{Start: h.Start - from, End: h.End - from}
	if i := slices.IndexFunc(all, func(e tool.Evidence) bool { return e.URI == uri }); i >= 0 {
		at, _ := slices.BinarySearchFunc(all[i].Shown, shown, func(a, b tool.Range) int { return a.Start - b.Start })
		all[i].Shown = slices.Insert(all[i].Shown, at, shown)
		return all
	}

	return append(all, tool.Evidence{
		URI: uri, Title: h.Title, Media: h.Media, Retrieved: h.Read, Text: h.text[from:to], Shown: []tool.Range{shown}, Metadata: metadata,
	})
}

// partOf returns the bytes of the part of a document in which a hit is. Where a part ends
// depends on the document alone, so that two searches bring the same evidence.
func partOf(h Hit) (from, to int) {
	if len(h.text) <= wholeBytes {
		return 0, len(h.text)
	}

	for _, c := range h.cuts {
		if c.start > from+partBytes && c.start <= h.Start {
			from = c.start
		}
	}

	to = len(h.text)
	for _, c := range h.cuts {
		if c.start > from+partBytes {
			to = c.start
			break
		}
	}

	return from, shorten.Boundary(h.text, min(to, from+wholeBytes)) // a long stretch may have no passage
}

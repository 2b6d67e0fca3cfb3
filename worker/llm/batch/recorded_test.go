package batch_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestRecordedBatches has the clients read batches, lists of them and results that others have recorded of
// vendors and of servers that are alike, and compares every field with what was recorded. They are no part
// of this repository: CODITECT_CASSETTES names their folder. It may hold tapes of vcrpy and VCR (.yaml, .yml),
// documents (.json) and files of results (.jsonl).
func TestRecordedBatches(t *testing.T) {
	folder := os.Getenv("CODITECT_CASSETTES")
	if folder == "" {
		t.Skip("CODITECT_CASSETTES names no folder of recorded responses")
	}

	counts := make(tally)
	err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		for _, text := range textsOf(t, name) {
			text.read(t, counts)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(counts) == 0 {
		t.Fatalf("%s has nothing of batches", folder)
	}

	for _, what := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%5d %s", counts[what], what)
	}
}

// A tally counts what has been read, by the format and by what it was.
type tally map[string]int

// A recorded is a text that a vendor sent.
type recorded struct {
	from   string // the file
	uri    string // that was asked; "" if nobody has recorded it
	status int    // 0 if nobody has recorded it
	body   []byte
}

// textsOf returns what vendors sent, of the files of this folder that may have it.
func textsOf(t *testing.T, name string) []recorded {
	kind := filepath.Ext(name)
	if !slices.Contains([]string{".yaml", ".yml", ".json", ".jsonl"}, kind) {
		return nil
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}

	from := filepath.Base(name)
	switch kind {
	case ".jsonl":
		return []recorded{{from: from, body: raw}}
	case ".json":
		return ofDocument(from, raw)
	}
	return ofTape(from, raw)
}

// A tape is one of vcrpy or of VCR.
type tape struct {
	Of   []interaction `yaml:"interactions"`
	Also []interaction `yaml:"http_interactions"`
}

type interaction struct {
	Request  struct{ URI string }
	Response struct {
		Status struct{ Code int }
		Body   struct{ String string }
		Parsed any `yaml:"parsed_body"`
	}
}

// ofTape returns the answers of a tape. One in another form has none.
func ofTape(from string, raw []byte) (all []recorded) {
	var of tape
	if yaml.Unmarshal(raw, &of) != nil {
		return nil
	}
	for _, one := range append(of.Of, of.Also...) {
		body := []byte(one.Response.Body.String)
		if one.Response.Parsed != nil {
			body, _ = json.Marshal(one.Response.Parsed) // what cannot be written was no JSON
		}
		all = append(all, recorded{from: from, uri: one.Request.URI, status: one.Response.Status.Code, body: unzipped(body)})
	}
	return all
}

// unzipped returns a body as it was before it was packed.
func unzipped(body []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return body
	}
	// The end of some is not recorded: what there is counts.
	out, _ := io.ReadAll(z)
	return out
}

// ofDocument returns what a document holds: an answer, or what the tests of ellmer keep, a batch and its results. R
// writes null as {}, and of results they leave out the ids.
func ofDocument(from string, raw []byte) []recorded {
	var kept struct {
		Batch   json.RawMessage
		Results []json.RawMessage
	}
	if json.Unmarshal(raw, &kept) != nil || kept.Batch == nil || kept.Results == nil {
		return []recorded{{from: from, body: raw}}
	}

	all := []recorded{{from: from, body: encode(withNulls(decode(kept.Batch)))}}
	var lines []byte
	for i, one := range kept.Results {
		lines = append(append(lines, encode(enveloped(i, withNulls(decode(one))))...), '\n')
	}
	return append(all, recorded{from: from, body: lines})
}

// enveloped returns a result as its vendor sent it, with an id.
func enveloped(n int, result any) any {
	id := "line-" + string(rune('a'+n))
	r, _ := result.(map[string]any)
	body, _ := r["body"].(map[string]any)
	switch {
	case body["candidates"] != nil:
		return map[string]any{"key": id, "response": body}
	case r["type"] != nil:
		return map[string]any{"custom_id": id, "result": r}
	}
	return map[string]any{"custom_id": id, "response": r, "error": nil}
}

// withNulls returns a value in which null stands for every empty object.
func withNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			return nil
		}
		for name := range v {
			v[name] = withNulls(v[name])
		}
	case []any:
		for i := range v {
			v[i] = withNulls(v[i])
		}
	}
	return v
}

func decode(raw []byte) (v any) {
	_ = json.Unmarshal(raw, &v) // nil if it is none
	return v
}

func encode(v any) []byte {
	raw, _ := json.Marshal(v) // it was read from JSON
	return raw
}

// read has a client read a text, if it is about batches.
func (r recorded) read(t *testing.T, counts tally) {
	if doc, ok := decode(r.body).(map[string]any); ok {
		r.readDocument(t, doc, counts)
		return
	}

	var lines []map[string]any
	for raw := range bytes.SplitSeq(r.body, []byte("\n")) {
		if line, ok := decode(raw).(map[string]any); ok {
			lines = append(lines, line)
		}
	}
	r.readLines(t, lines, counts)
}

// readDocument reads a batch, a list of batches, a refusal, or a single line of results.
func (r recorded) readDocument(t *testing.T, doc map[string]any, counts tally) {
	switch w := wireOf(doc); {
	case w != nil:
		w.readBatch(t, r, doc, counts)
	case len(listOf(doc)) > 0:
		if first, ok := listOf(doc)[0].(map[string]any); ok && wireOf(first) != nil {
			wireOf(first).readList(t, r, doc, counts)
		}
	case r.status >= 400 && strings.Contains(r.uri, "atches"):
		r.readRefusal(t, doc, counts)
	case doc["object"] == "batch":
		counts["batches in a format that no client reads, "+str(doc, "status")]++
	default:
		r.readLines(t, []map[string]any{doc}, counts)
	}
}

// listOf returns what a page of a list holds.
func listOf(doc map[string]any) []any {
	for _, name := range []string{"data", "operations"} {
		if all, ok := doc[name].([]any); ok {
			return all
		}
	}
	return nil
}

// readLines reads results, if these lines are some: those of each format by themselves.
func (r recorded) readLines(t *testing.T, lines []map[string]any, counts tally) {
	of := make(map[*recordedWire][]map[string]any)
	for _, line := range lines {
		if w := wireOfLine(line); w != nil {
			of[w] = append(of[w], line)
		}
	}
	for w, lines := range of {
		w.readResults(t, r, lines, counts)
	}
}

// dig returns what stands at a path, such as "response.body.choices.0.message"; nil if nothing does.
func dig(v any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[name]
		case []any:
			if v = nil; name == "0" && len(at) > 0 {
				v = at[0]
			}
		default:
			return nil
		}
	}
	return v
}

// str returns the text at a path; "" if there is none.
func str(v any, path string) string {
	s, _ := dig(v, path).(string)
	return s
}

// num returns the number at a path, which some vendors write as a text; 0 if there is none.
func num(v any, path string) int64 {
	switch n := dig(v, path).(type) {
	case float64:
		return int64(n)
	case string:
		var i int64
		_ = json.Unmarshal([]byte(n), &i) // 0 if it is none
		return i
	}
	return 0
}

package search_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/coditect/mapreduce/worker/tool/search"
)

// concepts is an embedder for which words of one line mean the same.
type concepts struct {
	mu     sync.Mutex
	texts  int // embedded so far; guarded by mu
	failAt int // the text with which it begins to fail; 0 for never
	width  int
}

var meanings = []string{"heron bird egret", "car automobile vehicle", "river stream brook", "doctor physician"}

func (c *concepts) Name() string { return "test/concepts" }

func (c *concepts) Embed(_ context.Context, texts []string) ([][]float32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out [][]float32
	for _, text := range texts {
		if c.texts++; c.failAt > 0 && c.texts >= c.failAt {
			return nil, errors.New("no more credit")
		}
		v := make([]float32, len(meanings)+1+c.width)
		v[len(meanings)] = 0.1
		for i, words := range meanings {
			for w := range strings.FieldsSeq(words) {
				if strings.Contains(strings.ToLower(text), w) {
					v[i]++
				}
			}
		}
		out = append(out, v)
	}
	return out, nil
}

func conceptStore(t *testing.T) search.Config {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.txt": "The automobile stood in the street.", "b.txt": "An egret by the brook.", "c.txt": "A physician in the house.", "d.txt": "Nothing at all.",
	} {
		write(t, filepath.Join(dir, name), text)
		age(t, filepath.Join(dir, name), 0)
	}
	return search.Config{Stores: []search.Store{{Name: "s", Dir: dir}}, Cache: t.TempDir()}
}

// TestVectors: passages are found by their meaning, and those that have the words, too, come
// first. Nothing is embedded twice.
func TestVectors(t *testing.T) {
	c, e := conceptStore(t), &concepts{}
	c.Embedder = e
	k := newKit(t, c)
	if e.texts != 4 {
		t.Errorf("%d texts were embedded for 4 passages", e.texts)
	}
	for q, want := range map[string]string{"a car": "a.txt", "birds at a stream": "b.txt", "doctor": "c.txt", "the house": "c.txt"} {
		if got := hits(t, k, search.Query{Text: q, TopK: 1}); len(got) != 1 || got[0].Document != want {
			t.Errorf("%q finds %v, want %s", q, names(got), want)
		}
	}
	write(t, filepath.Join(c.Stores[0].Dir, "e.txt"), "A vehicle on the road.")
	again := &concepts{}
	c.Embedder = again
	k = newKit(t, c)
	if again.texts != 1 {
		t.Errorf("%d texts were embedded for one new passage", again.texts)
	}
	if got := names(hits(t, k, search.Query{Text: "car", TopK: 2})); len(got) != 2 || got[0] > got[1] && got[0] != "e.txt" || !strings.Contains("a.txt e.txt", got[1]) {
		t.Errorf("a car finds %v", got)
	}
}

// TestEmbedderFails: what was embedded before a failure is kept, passages are found by their
// words meanwhile, and the reader and the operator are told.
func TestEmbedderFails(t *testing.T) {
	c := conceptStore(t)
	var b strings.Builder
	for range 200 {
		b.WriteString("{\"text\": \"A line of text number " + strings.Repeat("x", b.Len()%97) + string(rune('a'+b.Len()%26)) + "\"}\n")
	}
	write(t, filepath.Join(c.Stores[0].Dir, "f.jsonl"), b.String())
	var notes []string
	c.Note = func(text string) { notes = append(notes, text) }
	counting := &concepts{}
	c.Embedder, c.Cache = counting, t.TempDir()
	newKit(t, c)
	all := counting.texts
	c.Cache = t.TempDir()
	failing := &concepts{failAt: all - 10}
	c.Embedder = failing
	k := newKit(t, c)
	if len(notes) != 1 || !strings.Contains(notes[0], "found by their words alone, as test/concepts failed: no more credit") {
		t.Errorf("the operator is told %q", notes)
	}
	if got := names(hits(t, k, search.Query{Text: "automobile", TopK: 1})); len(got) != 1 || got[0] != "a.txt" {
		t.Errorf("by words it finds %v", got)
	}
	better := &concepts{}
	c.Embedder = better
	k = newKit(t, c)
	if better.texts == 0 || better.texts > all-64 {
		t.Errorf("%d of %d texts are embedded after a failure near the end", better.texts, all)
	}
	better.failAt = 1
	r, err := call(t, k, `{"query": "automobile", "top_k": 1}`)
	if err != nil || !strings.Contains(r.Text, "The passages of s were found by their words alone, as the query could not be embedded: no more credit") || len(r.Evidence) != 1 {
		t.Errorf("got %+v, error %v", r, err)
	}
	better.failAt, better.width = 0, 1
	if r, err = call(t, k, `{"query": "automobile", "top_k": 1}`); err != nil || !strings.Contains(r.Text, "the vector of the query has 6 numbers, and those of passages have 5") {
		t.Errorf("got %+v, error %v", r, err)
	}
}

// TestDamagedVectors: of a log that was not written to its end, or is damaged, the rest is asked
// for again.
func TestDamagedVectors(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"cut":       func(b []byte) []byte { return b[:len(b)-3] },
		"a byte":    func(b []byte) []byte { b[len(b)-10] ^= 1; return b },
		"a length":  func(b []byte) []byte { b[len(b)/4*3+35] = 0xff; return b },
		"something": func(b []byte) []byte { return append(b, "more"...) },
	} {
		t.Run(name, func(t *testing.T) {
			c := conceptStore(t)
			c.Embedder = &concepts{}
			newKit(t, c)
			logs, err := filepath.Glob(filepath.Join(c.Cache, "*", "vectors-*"))
			if err != nil || len(logs) != 1 {
				t.Fatalf("%v %v", logs, err)
			}
			data, err := os.ReadFile(logs[0])
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(logs[0], damage(data), 0o600); err != nil {
				t.Fatal(err)
			}
			again := &concepts{}
			c.Embedder = again
			if got := names(hits(t, newKit(t, c), search.Query{Text: "a car", TopK: 1})); got[0] != "a.txt" {
				t.Errorf("a car finds %v", got)
			}
			if again.texts > 2 { // one of them the query
				t.Errorf("%d texts were embedded again", again.texts)
			}
		})
	}
}

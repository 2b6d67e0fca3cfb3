package picture_test

import (
	"bytes"
	"context"
	"image"
	"image/jpeg"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/internal/photo"
	"github.com/coditect/mapreduce/internal/document/picture"
	"github.com/coditect/mapreduce/internal/document/recognise"
	"github.com/coditect/mapreduce/internal/outcome/eval"
	"github.com/coditect/mapreduce/internal/text/rules"
)

// shots are photographs of receipts, from good to bad.
var shots = []struct {
	name string
	photo.Shot
	least float64 // share of the words that are found at least
}{
	{"printed", photo.Shot{Quality: 90}, 0.9},
	{"packed", photo.Shot{Quality: 20}, 0.88},
	{"turned by 2", photo.Shot{Degrees: 2, Noise: 4, Quality: 70}, 0.88},
	{"turned by -7", photo.Shot{Degrees: -7, Noise: 4, Quality: 70}, 0.86},
	{"turned by 12", photo.Shot{Degrees: 12, Noise: 4, Quality: 70}, 0.84},
	{"blurred", photo.Shot{Blur: 1.6, Noise: 4, Quality: 70}, 0.85},
	{"shadowed", photo.Shot{Shadow: 0.7, Noise: 4, Quality: 70}, 0.83},
	{"all of it", photo.Shot{Degrees: 4, Blur: 1.2, Shadow: 0.6, Noise: 6, Quality: 50}, 0.72},
}

// engine returns Tesseract, or skips the test.
func engine(t testing.TB) recognise.Engine {
	t.Helper()
	e := recognise.NewTesseract("")
	switch why := e.Missing(); {
	case why != "" && os.Getenv("CODITECT_TEST_OCR") == "require":
		t.Fatal(why)
	case why != "":
		t.Skip(why)
	}
	return e
}

// A recorder is an engine that keeps what it has found.
type recorder struct {
	recognise.Engine
	words []recognise.Word
}

func (r *recorder) Words(ctx context.Context, page recognise.Page) ([]recognise.Word, error) {
	words, err := r.Engine.Words(ctx, page)
	r.words = words
	return words, err
}

// A score is how well photographs of one kind were read.
type score struct {
	words, found int           // printed words, and those of them that were found
	alone        int           // those that the engine finds in the photograph as it is
	boxes, far   int           // boxes of found words, and those that are off by more than 3 pixels
	sure         [10][2]int    // words by tenths of how sure they are: all, and those that were printed
	seen, text   []eval.Result // values of what was read, and of the text that was printed
	truths       []eval.Truth
	fields       map[string][2]float64 // F1 of a field: of what was read, and of the text
}

// receipts are what the photographs are of.
type receipts struct {
	dir    string
	truths []eval.Truth
	schema *schema.Schema
	rules  *rules.Program
	engine recognise.Engine
}

// openReceipts returns the receipts, or skips the test.
func openReceipts(t testing.TB) *receipts {
	t.Helper()
	dir := os.Getenv("CODITECT_TESTDATA")
	if dir == "" {
		t.Skip("CODITECT_TESTDATA is not set")
	}
	r := &receipts{dir: filepath.Join(dir, "receipts"), engine: engine(t)}
	f, err := os.Open(filepath.Join(r.dir, "truth.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if r.truths, err = eval.ReadTruth("truth.jsonl", f); err != nil {
		t.Fatal(err)
	}

	data, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "receipts", "schema.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if r.schema, err = schema.Parse("schema.yaml", data); err != nil {
		t.Fatal(err)
	}
	if r.rules, err = rules.Compile(r.schema); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestReceipts photographs receipts, and compares what is read with what was printed: words, boxes
// and the values of fields. Each kind of photograph must be read as well as it was before.
func TestReceipts(t *testing.T) {
	testenv.Lengthy(t)
	r := openReceipts(t)
	var all [10][2]int
	for _, shot := range shots {
		s := r.photograph(t, shot.Shot)
		share := func(n, of int) float64 { return float64(n) / float64(max(of, 1)) }
		t.Logf("%-13s of %d words %.3f are found, %.3f by the engine alone; of %d boxes %.3f are near; F1 %v",
			shot.name, s.words, share(s.found, s.words), share(s.alone, s.words), s.boxes, 1-share(s.far, s.boxes), s.fields)
		if got := share(s.found, s.words); got < shot.least {
			t.Errorf("%s: %.3f of the words are found, want %.3f", shot.name, got, shot.least)
		}
		if got := 1 - share(s.far, s.boxes); shot.Degrees == 0 && shot.Shadow == 0 && got < 0.98 {
			t.Errorf("%s: %.3f of the boxes are within 3 pixels", shot.name, got)
		}
		for i := range all {
			all[i][0], all[i][1] = all[i][0]+s.sure[i][0], all[i][1]+s.sure[i][1]
		}
	}
	for i, n := range all {
		t.Logf("sure by %.1f: %5d words, of which %.3f were printed", float64(i)/10, n[0], float64(n[1])/float64(max(n[0], 1)))
	}
}

// photographed is how many receipts each kind of photograph is taken of.
const photographed = 5

// photograph reads photographs of some receipts.
func (r *receipts) photograph(t *testing.T, shot photo.Shot) *score {
	t.Helper()
	s := &score{fields: map[string][2]float64{}}
	for i := range photographed {
		doc := r.truths[i*37%len(r.truths)]
		text, err := os.ReadFile(filepath.Join(r.dir, "docs", doc.Document))
		if err != nil {
			t.Fatal(err)
		}
		s.truths = append(s.truths, doc)
		s.text = append(s.text, r.values(t, doc.Document, string(text)))
		s.seen = append(s.seen, r.values(t, doc.Document, s.read(t, r.engine, string(text), shot, uint64(i))))
	}
	seen, text := eval.Compare(r.schema, s.seen, s.truths).Fields, eval.Compare(r.schema, s.text, s.truths).Fields
	for name := range seen {
		s.fields[name] = [2]float64{seen[name].F1, text[name].F1}
	}
	return s
}

// values returns what the rules find in a text.
func (r *receipts) values(t *testing.T, name, text string) eval.Result {
	t.Helper()
	out, err := r.rules.Extract(rules.Document(text), t.Context().Err)
	if err != nil {
		t.Fatal(err)
	}
	return eval.Result{Documents: []string{name}, Values: r.schema.Nest(r.rules.Values(&out.Records[0]))}
}

// read prints a text, photographs it, and returns what is read of that.
func (s *score) read(t *testing.T, e recognise.Engine, text string, shot photo.Shot, seed uint64) string {
	t.Helper()
	paper, err := photo.Print(strings.Split(strings.TrimSpace(text), "\n"), 26, seed%2 == 0)
	if err != nil {
		t.Fatal(err)
	}
	taken, words, err := paper.Take(shot, seed)
	if err != nil {
		t.Fatal(err)
	}
	s.words += len(words)

	raw, err := jpeg.Decode(bytes.NewReader(taken))
	if err != nil {
		t.Fatal(err)
	}
	alone, err := e.Words(t.Context(), recognise.Page{Picture: raw.(*image.Gray)}) //nolint:forcetypeassert // it has no colours
	if err != nil {
		t.Fatal(err)
	}
	left := counted(words)
	for _, w := range alone {
		s.alone += left.take(w.Text)
	}

	record := &recorder{Engine: e}
	d, err := registry(t, record, picture.Config{}).Parse(t.Context(), document.Input{Content: bytes.NewReader(taken)})
	if err != nil {
		t.Fatal(err)
	}
	left = counted(words)
	for _, w := range record.words {
		found := left.take(w.Text)
		s.found += found
		bin := &s.sure[min(int(w.Sure*10), 9)]
		bin[0], bin[1] = bin[0]+1, bin[1]+found
	}
	s.measure(d, words)
	return d.Text
}

// A tally counts words that are left.
type tally map[string]int

func counted(words []photo.Word) tally {
	left := make(tally)
	for _, w := range words {
		left[w.Text]++
	}
	return left
}

// take returns 1 if there is such a word, and takes it; else 0.
func (t tally) take(word string) int {
	if t[word] == 0 {
		return 0
	}
	t[word]--
	return 1
}

// measure compares the boxes of words with their ink.
func (s *score) measure(d *document.Document, words []photo.Word) {
	for _, part := range d.Layout {
		if off, ok := offBy(part.Box, d.Text[part.Start:part.End], words); ok {
			s.boxes++
			if off > mostOff {
				s.far++
			}
		}
	}
}

package confidence_test

import (
	"hash/fnv"
	"os"
	"path/filepath"
	"testing"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/worker/confidence"
	"github.com/coditect/mapreduce/worker/eval"
	"github.com/coditect/mapreduce/worker/ground"
	"github.com/coditect/mapreduce/worker/rules"
)

// maxError is the expected calibration error that is demanded.
const maxError = 0.1

// held reports whether a document is of the half that nothing was chosen on.
func held(document string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(document)) // never fails
	return h.Sum32()>>8%2 == 1
}

func testdata(t *testing.T, parts ...string) string {
	t.Helper()
	dir := os.Getenv("CODITECT_TESTDATA")
	if dir == "" {
		t.Skip("CODITECT_TESTDATA is not set")
	}
	return filepath.Join(append([]string{dir}, parts...)...)
}

// logTable prints a reliability table.
func logTable(t *testing.T, name string, c eval.Calibration) {
	t.Helper()
	t.Logf("%s: expected calibration error %.4f over %d values; by field %v", name, c.Error, c.Values, c.Fields)
	for _, b := range c.Bins {
		t.Logf("  %.1f-%.1f %5d values, confidence %.3f, right %.3f", b.From, b.To, b.Values, b.Confidence, b.Accuracy)
	}
}

// receipt is what the rules find in one receipt, with confidences as they are
// computed from one reading.
func receipt(t *testing.T, s *schema.Schema, p *rules.Program, name, text string) eval.Result {
	t.Helper()
	aligner := ground.New(text)
	out, err := p.Extract(rules.Document(text), t.Context().Err)
	if err != nil {
		t.Fatal(err)
	}
	r := out.Records[0]
	sure := map[string]float64{}
	for _, f := range r.Found {
		span, ok := aligner.Find(f.Quote, f.Start)
		if !ok {
			continue
		}
		sure[f.Field] = confidence.Of(confidence.Evidence{
			Property: s.Field(f.Field), Value: f.Value, Quote: text[span.ByteStart:span.ByteEnd], Grade: span.Grade,
			Before: confidence.Before(text, span.ByteStart),
		})
	}
	return eval.Result{Documents: []string{name}, Values: s.Nest(p.Values(&r)), Confidence: sure}
}

func TestReceipts(t *testing.T) {
	dir := testdata(t, "receipts")
	path := filepath.Join("..", "..", "examples", "receipts", "schema.yaml")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := schema.Parse(path, data)
	if err != nil {
		t.Fatal(err)
	}
	p, err := rules.Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, "truth.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	truth, err := eval.ReadTruth("truth.jsonl", f)
	if err != nil {
		t.Fatal(err)
	}
	results := map[bool][]eval.Result{}
	truths := map[bool][]eval.Truth{}
	for _, doc := range truth {
		text, err := os.ReadFile(filepath.Join(dir, "docs", doc.Document))
		if err != nil {
			t.Fatal(err)
		}
		h := held(doc.Document)
		truths[h] = append(truths[h], doc)
		results[h] = append(results[h], receipt(t, s, p, doc.Document, string(text)))
	}
	logTable(t, "chosen on", *eval.Compare(s, results[false], truths[false]).Calibration)
	c := eval.Compare(s, results[true], truths[true]).Calibration
	logTable(t, "held out", *c)
	if c.Error > maxError {
		t.Errorf("expected calibration error %.4f on the half held out, want at most %.2f", c.Error, maxError)
	}
}

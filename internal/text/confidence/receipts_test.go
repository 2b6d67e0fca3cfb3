package confidence_test

import (
	"hash/fnv"
	"os"
	"path/filepath"
	"testing"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/eval"
	"github.com/coditect/mapreduce/internal/text/confidence"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/internal/text/rules"
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
			Before: confidence.Before(text, span.ByteStart), Basis: confidence.Basis(f.Basis), Rivals: f.Rivals,
		})
	}
	return eval.Result{Documents: []string{name}, Values: s.Nest(p.Values(&r)), Confidence: sure}
}

// receiptSchemas are schemas of receipts by what they tell the rules: hints of all kinds,
// or names and types alone. The names of fields lead to the true field.
var receiptSchemas = map[string]struct {
	fields map[string]string
	yaml   string
}{
	"hints": {},
	"types": {map[string]string{"company": "company", "date": "date", "address": "address", "total": "total"}, `
properties:
  company: {type: string}
  date: {type: string, format: date}
  address: {type: string}
  total: {type: number}`},
	"other names": {map[string]string{"name": "company", "issued": "date", "location": "address", "amount": "total"}, `
properties:
  name: {type: string}
  issued: {type: string, format: date}
  location: {type: string}
  amount: {type: number}`},
	"misleading names": {map[string]string{"shop": "company", "cash": "date", "no": "address", "tax": "company", "price": "total", "item": "total", "qty": "total"}, `
properties:
  shop: {type: string}
  cash: {type: string, format: date}
  no: {type: string}
  tax: {type: string}
  price: {type: number}
  item: {type: number}
  qty: {type: number}`},
}

// truthOf returns the truth of a document under a schema's own names.
func truthOf(doc eval.Truth, fields map[string]string) eval.Truth {
	if fields == nil {
		return doc
	}
	renamed := eval.Truth{Document: doc.Document, Values: map[string]any{}}
	for name, of := range fields {
		if v, ok := doc.Values[of]; ok {
			renamed.Values[name] = v
		}
	}
	return renamed
}

// readTruth returns what is true of the documents of a folder.
func readTruth(t *testing.T, dir string) []eval.Truth {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "truth.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	truth, err := eval.ReadTruth("truth.jsonl", f)
	if err != nil {
		t.Fatal(err)
	}
	return truth
}

func TestReceipts(t *testing.T) {
	dir := testdata(t, "receipts")
	truth := readTruth(t, dir)
	for name, given := range receiptSchemas {
		t.Run(name, func(t *testing.T) {
			data := []byte("title: receipt\ntype: object" + given.yaml)
			if given.fields == nil {
				var err error
				if data, err = os.ReadFile(filepath.Join("..", "..", "..", "examples", "receipts", "schema.yaml")); err != nil {
					t.Fatal(err)
				}
			}
			s, err := schema.Parse("schema.yaml", data)
			if err != nil {
				t.Fatal(err)
			}
			p, err := rules.Compile(s)
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
				truths[h] = append(truths[h], truthOf(doc, given.fields))
				results[h] = append(results[h], receipt(t, s, p, doc.Document, string(text)))
			}
			logTable(t, "chosen on", *eval.Compare(s, results[false], truths[false]).Calibration)
			c := eval.Compare(s, results[true], truths[true]).Calibration
			logTable(t, "held out", *c)
			if c.Error > maxError || c.Values < 100 {
				t.Errorf("expected calibration error %.4f over %d values; want at most %.2f over 100 or more", c.Error, c.Values, maxError)
			}
		})
	}
}

package confidence_test

import (
	"bufio"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/internal/outcome/eval"
	"github.com/coditect/mapreduce/internal/text/confidence"
	"github.com/coditect/mapreduce/internal/text/ground"
)

// A passage is a document of re3d with the places at which an entity is named.
type passage struct {
	id, text string
	spans    []ground.Span
}

// passages reads re3d. A span whose value is not its text is wrong in the data.
func passages(t *testing.T) []*passage {
	t.Helper()
	var all []*passage
	byID := map[string]*passage{}
	wrong := 0
	for _, source := range []string{"centcom", "uk-government", "us-state-department"} {
		dir := testdata(t, "re3d", source)
		lines(t, filepath.Join(dir, "documents.json"), func(d struct {
			ID   string `json:"_id"`
			Text string `json:"text"`
		},
		) {
			byID[d.ID] = &passage{id: d.ID, text: d.Text}
			all = append(all, byID[d.ID])
		})
		lines(t, filepath.Join(dir, "entities.json"), func(e struct {
			Document   string `json:"documentId"`
			Begin, End int
			Value      string
		},
		) {
			p := byID[e.Document]
			text := []rune(p.text)
			if e.Begin < 0 || e.End > len(text) || e.Begin >= e.End || string(text[e.Begin:e.End]) != e.Value {
				wrong++
				return
			}
			from := len(string(text[:e.Begin]))
			p.spans = append(p.spans, ground.Span{Start: e.Begin, End: e.End, ByteStart: from, ByteEnd: from + len(e.Value)})
		})
	}
	t.Logf("%d spans of the data are not what they say", wrong)
	return all
}

// lines reads a file of JSON lines.
func lines[T any](t *testing.T, path string, visit func(T)) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	scan := bufio.NewScanner(f)
	scan.Buffer(nil, 16<<20)
	for scan.Scan() {
		var v T
		if err := json.Unmarshal(scan.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		visit(v)
	}
	if err := scan.Err(); err != nil {
		t.Fatal(err)
	}
}

// A reader answers as models do: mostly right, at times with a wrong value for
// a true quote, a quote that was touched up, or one that was made up. What is
// hard is hard in every pass.
type reader struct {
	rand *rand.Rand
	hard float64 // share of the places that are
}

// answer is a value and its quote; both are empty for a place that it missed.
func (r *reader) answer(p *passage, s ground.Span, hard bool) (value, quote string) {
	said := p.text[s.ByteStart:s.ByteEnd]
	fails := 0.06
	if hard {
		fails = 0.6
	}
	if r.rand.Float64() >= fails {
		return said, r.touch(said)
	}
	other := p.spans[r.rand.IntN(len(p.spans))]
	another := p.text[other.ByteStart:other.ByteEnd]
	switch r.rand.IntN(6) {
	case 0:
		return "", ""
	case 1: // made up, with its quote
		return another + " of " + said, "the " + another + " of " + said
	case 2: // another one's value
		return another, said
	case 3: // half of it
		return said[:strings.LastIndexByte(said, ' ')+1], said
	default: // too much of it, with a quote that holds it
		end := s.ByteEnd + strings.IndexByte(p.text[s.ByteEnd:]+" x ", ' ')
		end = min(len(p.text), end+1+strings.IndexByte(p.text[min(len(p.text), end+1):]+" ", ' '))
		more := p.text[s.ByteStart:end]
		return more, more
	}
}

// touch changes a quote as models do that clean up what they copy.
func (r *reader) touch(quote string) string {
	switch r.rand.IntN(10) {
	case 0:
		return strings.ToUpper(quote)
	case 1:
		return strings.ReplaceAll(quote, " ", "  ")
	case 2:
		return strings.ReplaceAll(quote, "'", "’")
	default:
		return quote
	}
}

const passes = 3

// judged has a reader go over the passages and returns what can be believed of
// its answers, each of which is right if it is the value that is named there.
func judged(all []*passage, half bool, hard float64) []eval.Judged {
	r := &reader{rand.New(rand.NewPCG(7, 7)), hard}
	p := &schema.Property{Name: "entity", Type: schema.String}
	var out []eval.Judged
	for _, doc := range all {
		if held(doc.id) != half {
			continue
		}
		aligner := ground.New(doc.text)
		for _, s := range doc.spans {
			isHard := r.rand.Float64() < r.hard
			found := map[eval.Judged]int64{}
			for range passes {
				value, quote := r.answer(doc, s, isHard)
				at, ok := aligner.Find(quote, s.ByteStart)
				if value == "" || !ok {
					continue // not verified: it has no confidence
				}
				said := doc.text[at.ByteStart:at.ByteEnd]
				found[eval.Judged{
					Field:      format.Fold(value),
					Confidence: confidence.Of(confidence.Evidence{Property: p, Value: value, Quote: said, Grade: at.Grade}),
					Right:      format.Fold(value) == format.Fold(doc.text[s.ByteStart:s.ByteEnd]),
				}]++
			}
			out = append(out, believed(found)...)
		}
	}
	return out
}

// believed makes one of the answers that agree.
func believed(found map[eval.Judged]int64) []eval.Judged {
	count, best := map[string]int64{}, map[string]eval.Judged{}
	for j, n := range found {
		count[j.Field] += n
		if j.Confidence > best[j.Field].Confidence {
			best[j.Field] = j
		}
	}
	var out []eval.Judged
	for value, j := range best {
		j.Confidence = confidence.Agreed(j.Confidence, count[value], passes)
		j.Field = ""
		out = append(out, j)
	}
	return out
}

func TestRe3d(t *testing.T) {
	all := passages(t)
	for _, tt := range []struct {
		name string
		hard float64
	}{{"careful", 0.1}, {"careless", 0.3}} {
		t.Run(tt.name, func(t *testing.T) {
			logTable(t, "chosen on", eval.Calibrate(judged(all, false, tt.hard)))
			c := eval.Calibrate(judged(all, true, tt.hard))
			logTable(t, "held out", c)
			if c.Error > maxError {
				t.Errorf("expected calibration error %.4f on the half held out, want at most %.2f", c.Error, maxError)
			}
		})
	}
}

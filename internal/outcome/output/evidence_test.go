package output_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/check"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/internal/text/refs"
)

const page = "Zürich, 3 May. The bridge opened in 1913 and carries two tracks.\nIt was renewed in 1998."

// evidence returns a page that a tool brought, and what finds it.
func evidence(t *testing.T) (*output.Evidence, output.EvidenceFinder) {
	t.Helper()
	e := mapreduce.Evidence{
		URI: "https://example.org/bridge", Title: "The bridge", Tool: "fetch", Media: "text/html",
		Retrieved: time.Unix(1_700_000_000, 0), Metadata: map[string]string{"year": "2024", "document_id": "somebody else's"},
	}
	e.DescribeText([]byte(page))
	if err := e.Check(); err != nil {
		t.Fatal(err)
	}
	one := output.EvidenceOf(&e, []byte(page))
	return one, func(document string) *output.Evidence {
		if document == one.Document {
			return one
		}
		return nil
	}
}

// quoted returns the citation of a quote in evidence.
func quoted(t *testing.T, e *output.Evidence, quote string) output.Citation {
	t.Helper()
	at, ok := e.Aligner().Find(quote, 0)
	if !ok || !at.Verified() {
		t.Fatalf("%q is not found", quote)
	}
	return e.Cite("look_0", at)
}

func TestEvidenceIsCited(t *testing.T) {
	e, find := evidence(t)
	c := quoted(t, e, "opened in 1913")
	if c.Start != 26 || c.ByteStart != 27 || c.Label != "The bridge (2024)" || c.Grade != string(ground.Exact) {
		t.Fatalf("cited as %+v", c)
	}
	form := form(t, `{"type":"object","properties":{"found":{"type":"array","items":{"type":"string"}}},"required":["found"]}`)
	own := check.BundleTexts("look_0", nil, find)
	given := output.OfCitations(c)
	o, err := output.NewValue("look_0", []byte(`{"found":["It opened in 1913 [`+c.ID.Full()+`]"]}`), form, output.IssueAll([]*output.Output{given}), []*output.Output{given})
	if err != nil {
		t.Fatal(err)
	}
	o = again(t, o)
	if err := check.Value(nil, own, form, o); err != nil {
		t.Fatal(err)
	}
	if !o.CitesEvidence("look_0") || o.CitesEvidence("look_1") {
		t.Error("whose evidence is cited is wrong")
	}
	if err := check.Value(nil, nil, form, o); !errors.Is(err, check.ErrBreach) {
		t.Errorf("a unit without tools cites evidence: %v", err)
	}
	if err := check.Value([]*output.Output{given}, nil, form, o); err != nil {
		t.Errorf("what others cite is refused: %v", err)
	}

	for name, change := range map[string]func(*output.Citation){
		"another document":      func(c *output.Citation) { c.Document = "evidence_0123456789abcdef" },
		"a document of the job": func(c *output.Citation) { c.Document = "a.txt" },
		"another unit's":        func(c *output.Citation) { c.Unit = "look_1" },
		"another quote":         func(c *output.Citation) { c.Quote = "opened in 1914" },
		"another byte":          func(c *output.Citation) { c.ByteStart, c.ByteEnd = c.ByteStart+1, c.ByteEnd+1 },
		"bytes beyond the text": func(c *output.Citation) { c.ByteStart, c.ByteEnd = 1<<40, 1<<40+14 },
		"another character":     func(c *output.Citation) { c.Start, c.End = c.Start+1, c.End+1 },
		"a grade of its own":    func(c *output.Citation) { c.Grade = "certain" },
		"a fuzzy exact quote":   func(c *output.Citation) { c.Coverage, c.Density = .5, .5 },
		"a label of its own":    func(c *output.Citation) { c.Label = "A better source (2025)" },
		"outside":               func(c *output.Citation) { c.Outside = true },
	} {
		t.Run(name, func(t *testing.T) {
			lie := c
			change(&lie)
			o := &output.Output{Value: o.Value}
			o.Cite(lie)
			if err := check.Value(nil, own, form, o); !errors.Is(err, check.ErrBreach) {
				t.Errorf("a lie passes: %v", err)
			}
		})
	}
	t.Run("the id of another place", func(t *testing.T) {
		lie := c
		lie.ID = refs.New(output.HashDocument(c.Document, e.SHA256), 0, 3, "Zür")
		o := &output.Output{Value: []byte(strings.ReplaceAll(string(o.Value), c.ID.Full(), lie.ID.Full()))}
		o.Cite(lie)
		if err := check.Value(nil, own, form, o); !errors.Is(err, check.ErrBreach) {
			t.Errorf("a lie passes: %v", err)
		}
	})
}

func TestPassagesOfEvidence(t *testing.T) {
	e, find := evidence(t)
	chosen := func(c output.Citation) *output.Output {
		o, err := output.ChoosePassages([]output.Passage{{Citation: c, Size: 200}})
		if err != nil {
			t.Fatal(err)
		}
		return again(t, o)
	}
	f := form(t, `{}`)
	c := quoted(t, e, "renewed in 1998")
	if err := check.Passages("look_0", check.BundleTexts("look_0", nil, find), f, chosen(c)); err != nil {
		t.Error(err)
	}
	for name, own := range map[string]check.Texts{
		"none":      check.BundleTexts("look_0", nil, nil),
		"another's": check.BundleTexts("look_1", nil, find),
	} {
		if err := check.Passages("look_0", own, f, chosen(c)); !errors.Is(err, check.ErrBreach) {
			t.Errorf("a passage of evidence passes where the unit has %s: %v", name, err)
		}
	}
	c.Label = ""
	if err := check.Passages("look_0", check.BundleTexts("look_0", nil, find), f, chosen(c)); !errors.Is(err, check.ErrBreach) {
		t.Errorf("a passage without a label passes: %v", err)
	}
}

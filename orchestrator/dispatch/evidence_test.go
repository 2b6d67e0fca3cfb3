package dispatch_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/refs"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/unit"
)

// looking is a pipeline whose second stage has tools.
const looking = `
name: looking
stages:
  - name: plan
    each: all
    agent: {role: Planner}
    task: Choose sources.
    output: {kind: items, schema: {type: object, required: [sources], properties: {sources: {type: array, items: {type: string}}}}}
  - name: look
    each: plan.sources
    agent: {role: Reader}
    task: Find what the source says.
    tools: [fetch]
    limits: {turns: 5, tool_calls: 9}
    output: {kind: items, schema: {type: object, required: [found], properties: {found: {type: array, items: {type: string}}}}}
  - name: table
    from: look
    each: all
    agent: {role: Writer}
    task: Put it together.
    output: {kind: table, schema: {type: object, required: [rows], properties: {rows: {type: array, items: {type: string}}}}}
`

// sourcesOf are what the pipeline plans.
var sourcesOf = []string{"kiel", "bonn", "trier"}

// webPage is the text at a source.
func webPage(source string) string {
	return "Überschrift\n" + strings.Repeat("What stands before it. ", 10) + "The bridge of " + source + " opened in 1913. What follows."
}

// pageEvidence is the page of a source as a tool brings it.
func pageEvidence(source string) mapreduce.Evidence {
	e := mapreduce.Evidence{
		URI: "https://example.org/" + source, Title: "Bridge of " + source, Tool: "fetch", Media: "text/html",
		Retrieved: time.Unix(1_700_000_000, 0).UTC(), Metadata: map[string]string{"year": "1913", "via": "somewhere"},
	}
	e.DescribeText([]byte(webPage(source)))
	return e
}

// A seeker runs the units of pipelines with tools as an agent would: those with tools keep
// the page of their source and cite it, and others pass on what they read.
type seeker struct {
	ran   atomic.Int64
	lie   func(*storagev1.Output)                                   // changes the output of units with tools; may be nil
	twist func(task *agent.Task, keeper agent.EvidenceKeeper) error // before their output is made; may be nil
}

func (s *seeker) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	if len(task.StageSpec.Tools) == 0 {
		return s.pass(task)
	}
	s.ran.Add(1)
	source := strings.Trim(string(task.Item), `"`)
	if task.StageSpec.Documents {
		source = string(task.Unit)
	}
	e := pageEvidence(source)
	id, err := calls.KeepEvidence(ctx, mapreduce.Evidence{URI: e.URI, Title: e.Title, Tool: e.Tool, Media: e.Media, Retrieved: e.Retrieved, Metadata: e.Metadata}, []byte(webPage(source)))
	if err != nil {
		return nil, err
	}
	if s.twist != nil {
		if err := s.twist(task, calls); err != nil {
			return nil, err
		}
	}
	found, err := unit.Evidence(ctx, calls, id)
	if err != nil {
		return nil, err
	}
	at, ok := found.Aligner().Find("opened in 1913", 0)
	if !ok {
		return nil, agent.Permanent(errors.New("the page does not say when"))
	}
	out, err := s.cite(task, found.Cite(string(task.Unit), at))
	if err != nil {
		return nil, err
	}
	data, err := out.Encode()
	if err == nil && s.lie != nil {
		data, err = enginetest.Altered(data, s.lie)
	}
	return &agent.Result{Output: data, Size: 10}, err
}

// cite makes the output of a unit that found one place.
func (s *seeker) cite(task *agent.Task, c output.Citation) (*output.Output, error) {
	if task.StageSpec.Output == agent.PassagesChosen {
		return output.ChoosePassages([]output.Passage{{Citation: c, Size: 120, Relevance: 1, Ranked: true}})
	}
	form, err := unit.Form(task)
	if err != nil {
		return nil, err
	}
	cited := []*output.Output{output.OfCitations(c)}
	return output.NewValue(string(task.Unit), []byte(`{"found":["It opened in 1913 [`+c.ID.Full()+`]."]}`), form, output.IssueAll(cited), cited)
}

// pass plans the sources, or puts together what others found.
func (s *seeker) pass(task *agent.Task) (*agent.Result, error) {
	form, err := unit.Form(task)
	if err != nil {
		return nil, err
	}
	if task.StageSpec.Name == "plan" {
		plan, err := json.Marshal(map[string]any{"sources": sourcesOf})
		if err != nil {
			return nil, err
		}
		out, err := output.NewValue(string(task.Unit), plan, form, output.IssueAll(nil), nil)
		if err != nil {
			return nil, err
		}
		return unit.Valued(out)
	}
	given, _, err := unit.Given(task)
	if err != nil {
		return nil, err
	}
	rows := []string{}
	for _, in := range given {
		for _, id := range slices.Sorted(func(yield func(string) bool) {
			for c := range in.Citations {
				if !yield(refs.ID([]byte(c)).Full()) {
					return
				}
			}
		}) {
			rows = append(rows, "see "+id)
		}
	}
	value, err := json.Marshal(map[string]any{"rows": rows})
	if err != nil {
		return nil, err
	}
	out, err := output.NewValue(string(task.Unit), value, form, output.IssueAll(given), given)
	if err != nil {
		return nil, err
	}
	return unit.Valued(out)
}

// withAgents are the settings of orchestrators whose provider has agents with tools.
func withAgents() orchestrator.Config {
	return enginetest.Quick(orchestrator.Config{Adopt: true, Provider: func(name string) mapreduce.Provider {
		return mapreduce.Provider{Name: name, Models: true, Steps: []string{"agent", "extract", "merge", "parse", "write"}}
	}})
}

// specOf returns a spec with a pipeline of its own.
func specOf(t testing.TB, file string) mapreduce.JobSpec {
	t.Helper()
	p, err := pipeline.Parse("own.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	spec := enginetest.Script(nil)
	spec.Schema, spec.Pipeline, spec.Definition, spec.MaxAttempts = nil, p.Name, p.Canonical(), 1
	return spec
}

var tooled = worker.Config{Slots: 4, Tools: []string{"fetch"}}

// A shown is a result with the evidence that it tells of.
type shown struct {
	citations []*mapreduce.Citation
	evidence  []*mapreduce.CitedEvidence
	drops     []string
}

// shownOf reads the result of a job.
func shownOf(n *enginetest.Node, id mapreduce.JobID) (all shown, err error) {
	err = n.GetResult(n.T.Context(), id, false, func(p *mapreduce.ResultPart) error {
		switch {
		case p.Citation != nil:
			all.citations = append(all.citations, p.Citation)
		case p.Evidence != nil:
			all.evidence = append(all.evidence, p.Evidence)
		case p.Dropped != nil:
			all.drops = append(all.drops, string(p.Dropped))
		}
		return nil
	})
	return all, err
}

// checkShown checks that every citation is of evidence that the result tells of once, and
// that it stands in the text that ReadText has of it.
func checkShown(n *enginetest.Node, id mapreduce.JobID, got shown, want int) {
	n.T.Helper()
	if len(got.citations) != want {
		n.T.Errorf("%d citations, want %d", len(got.citations), want)
	}
	told := make(map[mapreduce.DocumentID]*mapreduce.CitedEvidence)
	for _, e := range got.evidence {
		if told[e.Document] != nil {
			n.T.Errorf("evidence %s is told of twice", e.Document)
		}
		told[e.Document] = e
	}
	for _, c := range got.citations {
		e := told[c.Document]
		if e == nil {
			n.T.Errorf("%s cites %s, of which the result does not tell", c.Ref, c.Document)
			continue
		}
		var text []byte
		err := n.ReadText(n.T.Context(), id, c.Unit, c.Document, func(part []byte) error {
			text = append(text, part...)
			return nil
		})
		if err != nil || string(text[c.ByteStart:c.ByteEnd]) != c.Quote || string([]rune(string(text))[c.Start:c.End]) != c.Quote {
			n.T.Errorf("%s: quote %q is not the text of %s: %v", c.Ref, c.Quote, c.Document, err)
		}
		if c.URI != e.URI || c.Label != e.Title+" (1913)" || c.Via != "" {
			n.T.Errorf("citation %+v of %+v", c, e)
		}
		source := strings.TrimPrefix(e.URI, "https://example.org/")
		if diff := cmp.Diff(pageEvidence(source), e.Evidence); diff != "" {
			n.T.Errorf("evidence (-want +got):\n%s", diff)
		}
	}
}

// What a unit's tools brought is in the result, checked; the same whenever the job runs;
// and gone when the job is deleted.
func TestEvidenceInResults(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(withAgents())
	c.Worker(&seeker{}, tooled, n)
	var first shown
	for round := range 2 {
		id := n.Submit(specOf(t, looking), 1)
		n.WantEnd(id, mapreduce.JobComplete)
		got, err := shownOf(n, id)
		if err != nil {
			t.Fatal(err)
		}
		checkShown(n, id, got, len(sourcesOf))
		if round == 0 {
			first = got
		} else if diff := cmp.Diff(first, got, cmp.AllowUnexported(shown{})); diff != "" {
			t.Errorf("the same job again (-first +second):\n%s", diff)
		}
		n.Sound()
		if round == 0 {
			continue
		}
		if err := n.ReadText(t.Context(), id, "look_0", pageEvidence(sourcesOf[1]).Document, func([]byte) error { return nil }); errs.KindOf(err) != errs.NotFound {
			t.Errorf("a unit's text is read as another's: %v", err)
		}
		if err := n.DeleteJob(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		for _, key := range enginetest.Pairs(t, c.Store) {
			if strings.Contains(key, string(id)) {
				t.Errorf("a job that was deleted left %q", key)
			}
		}
	}
}

// onDocuments is a pipeline whose first stage has tools.
func onDocuments(each, output string) string {
	return `
name: finding
agents: {a: {role: A}, b: {role: B}}
stages:
  - name: look
    each: ` + each + `
    task: Find it.
    tools: [fetch]
    output: ` + output + `
  - name: table
    from: look
    each: all
    agent: {role: Writer}
    task: Put it together.
    output: {kind: table, schema: {type: object, required: [rows], properties: {rows: {type: array, items: {type: string}}}}}
`
}

// Stages with tools have units for whatever stages may have units for, and what they come
// to cites evidence whichever of its kinds it is.
func TestEvidenceOfAllUnits(t *testing.T) {
	const items = `{kind: items, schema: {type: object, required: [found], properties: {found: {type: array, items: {type: string}}}}}`
	for _, kind := range []string{items, "passages"} {
		for each, want := range map[string]int{
			"document\n    agent: a": 3, "chunk\n    agent: a": 3, "all\n    agent: a": 1,
			"agent\n    agents: [a, b]\n    select: all": 2, "batch\n    size: 2\n    agent: a": 2,
		} {
			if strings.HasPrefix(each, "batch") && kind == "passages" {
				continue
			}
			t.Run(strings.Fields(each)[0]+" "+kind[:5], func(t *testing.T) {
				c := enginetest.NewCluster(t)
				n := c.Orchestrator(withAgents())
				c.Worker(&seeker{}, tooled, n)
				id := n.Submit(specOf(t, onDocuments(each, kind)), 3)
				n.WantEnd(id, mapreduce.JobComplete)
				got, err := shownOf(n, id)
				if err != nil {
					t.Fatal(err)
				}
				checkShown(n, id, got, want)
				n.Sound()
			})
		}
	}
}

// forgeries are what a hostile worker may say of evidence.
func forgeries() map[string]struct {
	lie func(*storagev1.Output)
	why string
} {
	type forgery = struct {
		lie func(*storagev1.Output)
		why string
	}
	cite := func(why string, change func(*storagev1.Citation)) forgery {
		return forgery{func(m *storagev1.Output) {
			c := m.Citations[0]
			was := refs.ID(c.Id).Full()
			change(c)
			sum := sha256.Sum256([]byte(webPage("kiel")))
			id := refs.New(output.HashDocument(c.Document, sum[:]), int(c.ByteStart), int(c.ByteEnd), c.Quote)
			c.Id = id[:]
			m.Value = []byte(strings.ReplaceAll(string(m.Value), was, id.Full()))
		}, why}
	}
	other := pageEvidence("bonn")
	return map[string]forgery{
		"evidence that nobody has":  cite("which it did not read", func(c *storagev1.Citation) { c.Document = "evidence_0123456789abcdef" }),
		"another unit's evidence":   cite("which it did not read", func(c *storagev1.Citation) { c.Document = string(other.Document) }),
		"a document":                cite("which it did not read", func(c *storagev1.Citation) { c.Document = "doc-0000000" }),
		"as another unit found it":  cite("as found by look_1", func(c *storagev1.Citation) { c.Unit = "look_1" }),
		"a quote that nobody wrote": cite("is not the text", func(c *storagev1.Citation) { c.Quote = "opened in 2013" }),
		"other bytes":               cite("is not the text", func(c *storagev1.Citation) { c.ByteStart--; c.ByteEnd-- }),
		"bytes beyond the text":     cite("did not read", func(c *storagev1.Citation) { c.ByteStart, c.ByteEnd = math.MaxInt64-1, math.MaxInt64 }),
		"other characters":          cite("stands at characters", func(c *storagev1.Citation) { c.Start++; c.End++ }),
		"a grade that is none":      cite("has the grade", func(c *storagev1.Citation) { c.Grade = "certified" }),
		"an exact one that half agrees": cite("a coverage of 0.5", func(c *storagev1.Citation) {
			c.Coverage, c.Density = 0.5, 0.5
		}),
		"another title": cite("describes evidence_", func(c *storagev1.Citation) { c.Label = "The Truth (2025)" }),
		"outside of it": cite("as if it had not", func(c *storagev1.Citation) { c.Outside = true }),
		"another's id": {func(m *storagev1.Output) {
			m.Citations[0].Id[0] ^= 1
			m.Value = []byte(`{"found":["` + refs.ID(m.Citations[0].Id).Full() + `"]}`)
		}, "is of another citation"},
		"no citation":               {func(m *storagev1.Output) { m.Citations = nil }, "lacks"},
		"a value that does not fit": {func(m *storagev1.Output) { m.Value = []byte(`{"rows":[]}`) }, "does not fit"},
	}
}

// TestForgedEvidenceIsRefused: what a hostile worker says of evidence is refused when it
// reports it, and a worker that tells the truth then ends the job.
func TestForgedEvidenceIsRefused(t *testing.T) {
	for name, f := range forgeries() {
		t.Run(name, func(t *testing.T) {
			testenv.Variant(t, name == "other bytes")

			c := enginetest.NewCluster(t)
			n := c.Orchestrator(withAgents())
			spec := specOf(t, looking)
			spec.OnError = mapreduce.FailFast
			only := func(m *storagev1.Output) {
				if len(m.Citations) > 0 && m.Citations[0].Document == string(pageEvidence("kiel").Document) {
					f.lie(m)
				}
			}
			leave := c.Worker(&seeker{lie: only}, tooled, n)
			id := n.Submit(spec, 1)
			end := n.WantEnd(id, mapreduce.JobFailed)
			if !strings.Contains(end.Error, "was refused") || !strings.Contains(end.Error, f.why) {
				t.Errorf("the job failed with %q, want it to say that an output was refused: %s", end.Error, f.why)
			}
			leave()
			c.Worker(&seeker{}, tooled, n)
			if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{}); err != nil {
				t.Fatal(err)
			}
			n.WantEnd(id, mapreduce.JobComplete)
			got, err := shownOf(n, id)
			if err != nil {
				t.Fatal(err)
			}
			checkShown(n, id, got, len(sourcesOf))
			n.Sound()
		})
	}
}

// putEvidence puts a text as evidence, as a worker does.
func putEvidence(w enginetest.Bare, session mapreduce.SessionID, h protocol.Held, number int, text string, change ...func(*protocol.Blob)) error {
	e := mapreduce.Evidence{URI: "https://example.org/" + text[:min(8, len(text))], Tool: "fetch"}
	e.DescribeText([]byte(text))
	b := protocol.Blob{Kind: protocol.BlobEvidence, Length: int64(len(text)), SHA256: e.SHA256, FirstEntry: number, Evidence: &e}
	for _, f := range change {
		f(&b)
	}
	_, err := w.PutBlob(w.T.Context(), &protocol.BlobRequest{Session: session, Held: h, Blob: b}, parts([]byte(text), io.EOF))
	return err
}

// tinyPicture begins as a picture does.
const tinyPicture = "\x89PNG\r\n\x1a\n..."

// pictureOf changes a put to one of a picture.
func pictureOf(media, data string) func(*protocol.Blob) {
	return func(b *protocol.Blob) {
		b.Evidence.URI, b.Evidence.Media = "https://example.org/", media
		b.Evidence.DescribeText([]byte(data))
	}
}

// greetTooled is greet for a worker that has a tool.
func greetTooled(t *testing.T, n *enginetest.Node, session mapreduce.SessionID) enginetest.Bare {
	t.Helper()
	return enginetest.GreetWith(t, n, &protocol.FromWorker{Hello: &protocol.Hello{
		Session: session, Slots: 1, Offer: mapreduce.Offer{Providers: []string{"scripted"}, Tools: []string{"fetch"}},
	}})
}

// A worker adds to the evidence of a unit that it holds and that may have some: what else
// it says is refused, and changes nothing. The next attempt is given what was stored.
func TestHostileEvidence(t *testing.T) {
	const items = `{kind: items, schema: {type: object, properties: {found: {type: array, items: {type: string}}}}}`
	n := enginetest.NewCluster(t).Orchestrator(withAgents())
	w := greetTooled(t, n, "w")
	spec := specOf(t, onDocuments("document\n    agent: a", items))
	spec.MaxAttempts = 5
	n.Submit(spec, 2)
	a := assignment(w)
	held := heldOf(a)
	large := strings.Repeat("ü", mapreduce.MaxEvidenceText/2)
	for range 2 { // again, as when nobody knew what had become of it
		for i, text := range []string{"first", large} {
			if err := putEvidence(w, "w", held, i, text); err != nil {
				t.Fatal(err)
			}
		}
	}
	largePicture := tinyPicture + strings.Repeat("x", mapreduce.MaxEvidencePicture)
	stale, other := held, held
	stale.Attempt++
	other.Unit = "doc-0000001"
	says := func(change func(*mapreduce.Evidence)) func(*protocol.Blob) {
		return func(b *protocol.Blob) { change(b.Evidence) }
	}
	for name, tt := range map[string]struct {
		err  error
		want errs.Kind
	}{
		"another session":         {putEvidence(w, "x", held, 2, "c"), errs.Aborted},
		"a later attempt":         {putEvidence(w, "w", stale, 2, "c"), errs.Precondition},
		"another unit":            {putEvidence(w, "w", other, 0, "c"), errs.Precondition},
		"a gap":                   {putEvidence(w, "w", held, 3, "c"), errs.Precondition},
		"another item":            {putEvidence(w, "w", held, 1, "c"), errs.Precondition},
		"before the first":        {putEvidence(w, "w", held, -1, "c"), errs.Invalid},
		"no text":                 {putEvidence(w, "w", held, 2, ""), errs.Invalid},
		"a picture as a text":     {putEvidence(w, "w", held, 2, tinyPicture), errs.Invalid},
		"another kind of picture": {putEvidence(w, "w", held, 2, tinyPicture, pictureOf("image/jpeg", tinyPicture)), errs.Invalid},
		"a text as a picture":     {putEvidence(w, "w", held, 2, "<svg onload=x>", says(func(e *mapreduce.Evidence) { e.Media, e.Characters = "image/png", 0 })), errs.Invalid},
		"a picture too large":     {putEvidence(w, "w", held, 2, largePicture, pictureOf("image/png", largePicture)), errs.Invalid},
		"no description":          {putEvidence(w, "w", held, 2, "c", func(b *protocol.Blob) { b.Evidence = nil }), errs.Invalid},
		"more than fits":          {putEvidence(w, "w", held, 2, large+"c"), errs.Invalid},
		"not UTF-8":               {putEvidence(w, "w", held, 2, "c\xff"), errs.Invalid},
		"another hash":            {putEvidence(w, "w", held, 2, "c", func(b *protocol.Blob) { b.SHA256 = make([]byte, 32) }), errs.Invalid},
		"another's hash":          {putEvidence(w, "w", held, 2, "c", says(func(e *mapreduce.Evidence) { e.SHA256 = make([]byte, 32) })), errs.Invalid},
		"a forged id":             {putEvidence(w, "w", held, 2, "c", says(func(e *mapreduce.Evidence) { e.Document = "evidence_0123456789abcdef" })), errs.Invalid},
		"the id of a document":    {putEvidence(w, "w", held, 2, "c", says(func(e *mapreduce.Evidence) { e.Document = "doc-0000000" })), errs.Invalid},
		"another size":            {putEvidence(w, "w", held, 2, "c", says(func(e *mapreduce.Evidence) { e.Bytes++ })), errs.Invalid},
		"other characters":        {putEvidence(w, "w", held, 2, "cc", says(func(e *mapreduce.Evidence) { e.Characters-- })), errs.Invalid},
		"no place":                {putEvidence(w, "w", held, 2, "c", says(func(e *mapreduce.Evidence) { e.URI = ""; e.DescribeText([]byte("c")) })), errs.Invalid},
		"a place too long": {putEvidence(w, "w", held, 2, "c", says(func(e *mapreduce.Evidence) {
			e.URI = strings.Repeat("x", mapreduce.MaxEvidenceURI+1)
			e.DescribeText([]byte("c"))
		})), errs.Invalid},
		"no tool":            {putEvidence(w, "w", held, 2, "c", says(func(e *mapreduce.Evidence) { e.Tool = "" })), errs.Invalid},
		"a title too long":   {putEvidence(w, "w", held, 2, "c", says(func(e *mapreduce.Evidence) { e.Title = strings.Repeat("x", 2000) })), errs.Invalid},
		"metadata too large": {putEvidence(w, "w", held, 2, "c", says(func(e *mapreduce.Evidence) { e.Metadata = map[string]string{"x": strings.Repeat("x", 5000)} })), errs.Invalid},
		"less than was said": {putEvidence(w, "w", held, 2, "c", func(b *protocol.Blob) { b.Length++ }), errs.Invalid},
		"more than was said": {putEvidence(w, "w", held, 2, "cc", func(b *protocol.Blob) { b.Length-- }), errs.Invalid},
		"the end of it":      {putEvidence(w, "w", held, 2, "cc", func(b *protocol.Blob) { b.Start = 1 }), errs.Invalid},
		"a list of its own":  {putEvidence(w, "w", held, 2, "c", func(b *protocol.Blob) { b.Kind = protocol.BlobEvidenceList }), errs.Invalid},
	} {
		if tt.err == nil || errs.KindOf(tt.err) != tt.want {
			t.Errorf("%s: %v, want an error of kind %v", name, tt.err, tt.want)
		}
	}
	w.Say(&protocol.FromWorker{Reports: []protocol.Report{{Job: held.Job, Unit: held.Unit, Attempt: 1, Outcome: protocol.Returned}}})
	again := assignment(w)
	for again.Unit != held.Unit {
		w.Say(&protocol.FromWorker{Reports: []protocol.Report{{Job: held.Job, Unit: again.Unit, Attempt: again.Attempt, Outcome: protocol.Returned}}})
		again = assignment(w)
	}
	got := make(map[protocol.BlobKind][]byte)
	get := func(b protocol.Blob) error {
		got[b.Kind] = nil
		return w.GetBlob(t.Context(), &protocol.BlobRequest{Session: "w", Held: heldOf(again), Blob: b}, func(part []byte) error {
			got[b.Kind] = append(got[b.Kind], part...)
			return nil
		})
	}
	i := slices.IndexFunc(again.Blobs, func(b protocol.Blob) bool { return b.Kind == protocol.BlobEvidenceList })
	if i < 0 || again.EvidenceItems != 2 {
		t.Fatalf("the next attempt is given %d items and %+v", again.EvidenceItems, again.Blobs)
	}
	var list []mapreduce.Evidence
	if err := get(again.Blobs[i]); err != nil || json.Unmarshal(got[protocol.BlobEvidenceList], &list) != nil || len(list) != 2 {
		t.Fatalf("the list is %s: %v", got[protocol.BlobEvidenceList], err)
	}
	if err := get(protocol.Blob{Kind: protocol.BlobEvidence, Evidence: &list[1]}); err != nil || string(got[protocol.BlobEvidence]) != large {
		t.Errorf("%d bytes came of a text of %d: %v", len(got[protocol.BlobEvidence]), len(large), err)
	}
	if err := get(protocol.Blob{Kind: protocol.BlobEvidence, Evidence: &mapreduce.Evidence{Document: "evidence_0123456789abcdef"}}); errs.KindOf(err) != errs.NotFound {
		t.Errorf("evidence that there is not: %v", err)
	}
	if err := putEvidence(w, "w", held, 2, "c"); errs.KindOf(err) != errs.Precondition || err == nil {
		t.Errorf("evidence of the attempt before: %v", err)
	}
	n.Sound()
}

// A unit of a stage without tools has no evidence.
func TestNoEvidenceWithoutTools(t *testing.T) {
	n := enginetest.NewCluster(t).Orchestrator(withAgents())
	w := greetTooled(t, n, "w")
	n.Submit(enginetest.Script(nil), 1)
	if err := putEvidence(w, "w", heldOf(assignment(w)), 0, "c"); errs.KindOf(err) != errs.Invalid || err == nil {
		t.Errorf("a unit without tools is given evidence: %v", err)
	}
}

// An attempt goes on with what those before it found, wherever they died: each page is read
// once, and there is one item of it.
func TestEvidenceOutlivesAttempts(t *testing.T) {
	for _, point := range []failpoint.Point{failpoint.Evidence.Before(), failpoint.Evidence.After()} {
		t.Run(string(point), func(t *testing.T) {
			c := enginetest.NewCluster(t)
			var die atomic.Pointer[func()]
			var passed atomic.Int64
			c.Hook = func(p failpoint.Point) {
				if p == point && passed.Add(1) == 2 {
					(*die.Load())()
				}
			}
			n := c.Orchestrator(withAgents())
			died := make(chan struct{})
			stop := func() { close(died); go n.Stop(); <-time.After(50 * time.Millisecond) }
			die.Store(&stop)
			other := c.Orchestrator(withAgents())
			var failures atomic.Int64
			again := &seeker{twist: func(task *agent.Task, keeper agent.EvidenceKeeper) error {
				if failures.Add(1) <= 2 { // its evidence is durable, and the attempt fails
					return errors.New("a tool broke the agent")
				}
				if n := len(keeper.Evidence()); n != 1 {
					return agent.Permanent(fmt.Errorf("the attempt has %d items", n))
				}
				return nil
			}}
			spec := specOf(t, looking)
			spec.MaxAttempts = 10
			id := n.Submit(spec, 1)
			c.Worker(again, tooled, n, other)
			<-died
			other.WantEnd(id, mapreduce.JobComplete)
			got, err := shownOf(other, id)
			if err != nil {
				t.Fatal(err)
			}
			checkShown(other, id, got, len(sourcesOf))
			other.Sound()
		})
	}
}

// What is changed of evidence where it is stored is in no result.
func TestChangedEvidenceIsNotShown(t *testing.T) {
	for name, change := range map[string]func(tx store.Tx, space *keys.Space, id mapreduce.JobID){
		"the text": func(tx store.Tx, space *keys.Space, id mapreduce.JobID) {
			tx.Set(space.Outputs(id).EvidenceChunk("look_1", 0, 0), []byte(strings.Replace(webPage("bonn"), "1913", "2013", 1)))
		},
		"its end": func(tx store.Tx, space *keys.Space, id mapreduce.JobID) {
			tx.Set(space.Outputs(id).EvidenceChunk("look_1", 0, 1), []byte("more"))
		},
		"all of it": func(tx store.Tx, space *keys.Space, id mapreduce.JobID) {
			tx.ClearRange(space.Outputs(id).EvidenceOf("look_1"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := enginetest.NewCluster(t)
			n := c.Orchestrator(withAgents())
			c.Worker(&changer{seeker: &seeker{}, before: func(task *agent.Task) error {
				return store.NewDB(c.Store, store.Config{}).Update(t.Context(), func(tx store.Tx) error {
					change(tx, keys.New(), task.Job)
					return nil
				})
			}}, tooled, n)
			id := n.Submit(specOf(t, looking), 1)
			end := n.WantEnd(id, mapreduce.JobFailed)
			if !strings.Contains(end.Error, "evidence") && !strings.Contains(end.Error, "evidence_") {
				t.Errorf("the job failed with %q, which does not say that evidence is damaged", end.Error)
			}
			if found := n.Findings(); len(found) == 0 {
				t.Error("doctor finds nothing")
			}
		})
	}
}

// A changer does something before the table is made, when all evidence is there.
type changer struct {
	*seeker
	before func(task *agent.Task) error
}

func (c *changer) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	if task.StageSpec.Name == "table" {
		if err := c.before(task); err != nil {
			return nil, err
		}
	}
	return c.seeker.Run(ctx, task, calls)
}

// A job whose tools no worker has says so at once, and goes on when one comes that has them.
func TestToolsThatNoWorkerHas(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(withAgents())
	c.Worker(&seeker{}, worker.Config{Slots: 2, Tools: []string{"browser"}}, n)
	id := n.Submit(specOf(t, looking), 1)
	n.Until(id, func(j *mapreduce.Job) bool { return j.CompletedUnits == 1 })
	n.Until(id, func(j *mapreduce.Job) bool {
		return slices.ContainsFunc(j.Warnings, func(w string) bool { return strings.Contains(w, `no worker has the tool "fetch"`) })
	})
	c.Worker(&seeker{}, tooled, n)
	end := n.WantEnd(id, mapreduce.JobComplete)
	if len(end.Warnings) > 0 {
		t.Errorf("the job ends with the warnings %q", end.Warnings)
	}
}

// A pipeline with tools is refused where the provider has no agents that use them.
func TestToolsNeedAgents(t *testing.T) {
	n := enginetest.NewCluster(t).Orchestrator(enginetest.Quick(orchestrator.Config{Provider: func(name string) mapreduce.Provider {
		return mapreduce.Provider{Name: name, Models: true, Steps: []string{"extract", "merge", "write"}}
	}}))
	_, err := n.SubmitJob(t.Context(), specOf(t, looking), enginetest.Documents(1))
	if e, ok := errors.AsType[*errs.Error](err); !ok || e.Field != "stages[1].tools" || !strings.Contains(e.Message, "needs a provider with agents") {
		t.Errorf("got %v", err)
	}
}

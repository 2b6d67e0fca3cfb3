package ingest

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/memory"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/internal/text/pack"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// PlanJob goes through the documents as a submission does, cuts them into the very
// units that a run would have, and keeps of each unit its name and size.
func (c *Config) PlanJob(ctx context.Context, q mapreduce.PlanQuery, docs iter.Seq2[*mapreduce.Document, error]) (*mapreduce.Plan, error) {
	completed, err := c.Rules.Complete(q.Spec)
	if err != nil {
		return nil, err
	}

	spec, graph := completed.Spec, completed.Graph
	p := &planning{submission: submission{config: c, spec: spec, graph: graph}, numbers: make(map[mapreduce.DocumentID]int64)}
	p.count = c.Rules.Counter(spec)
	p.size = func(text string) int64 { return int64(p.count.Count(text)) }
	p.cut, p.bundle, p.gather = newCutter(c, spec, graph), newBundle(graph, spec, p.count), newGatherer(c, spec, graph)

	for doc, err := range docs {
		if err == nil {
			err = context.Cause(ctx)
		}

		// Only the items that are kept of a document take room, not its text.
		before := p.countItems()
		if err == nil {
			err = p.planDocument(doc)
		}
		if err == nil {
			err = memory.Hold(ctx, noteBytes(doc.ID)+itemBytes*max(0, p.countItems()-before))
		}
		if err != nil {
			return nil, err
		}
	}

	if err := p.checkBudget(); err != nil {
		return nil, err
	}

	stage, err := p.chooseStage()
	if err != nil {
		return nil, err
	}
	rates := c.planRates(spec)
	dag, err := graph.Build(stage, p.items, rates)
	if err != nil {
		return nil, err
	}

	if err := dag.RequireExact(); q.Exact && err != nil {
		return nil, err
	}
	if err := p.checkDeadline(dag.Estimate.Makespan, dag.Estimate.Parallelism); err != nil {
		return nil, err
	}

	advice := append(c.Rules.Warnings(completed), graph.Pipeline().AdviceFor(p.publication.Documents-p.publication.Skipped)...)
	for _, text := range advice {
		dag.Warnings = append(dag.Warnings, plan.Warning{Kind: plan.Advised, Text: text})
	}

	if text := listAdvice(rates, spec); text != "" {
		dag.Warnings = append(dag.Warnings, plan.Warning{Kind: plan.Lists, Text: text})
	}

	made := dag.Plan()
	made.Deadline = spec.Deadline
	return made, nil
}

// planRates returns what the plan of a job assumes.
func (c *Config) planRates(spec *mapreduce.JobSpec) plan.Rates {
	count := c.Rules.Counter(spec)
	r := c.Rates(spec)
	if r.Model { // its provider counts what it writes, whatever the job does
		r = withSchemaYields(r, spec, c.Count(plan.SampleField))
	} else {
		r = withSchemaYields(r, spec, count.Count(plan.SampleField))
	}

	r.Parallelism = spec.Parallelism
	if r.Model {
		r.Parallelism = min(r.Parallelism, c.MaxCalls)
		r.Prompt = cmp.Or(r.Prompt, int64(count.Count(string(spec.Schema))))
		r.Answer = cmp.Or(r.Answer, AnswerTokens)
	}

	return r
}

// The other sizes of outputs that plans assume before a run. docs/plan.md states them,
// with the measured sizes.
const (
	listYield    = 0.5  // of a token that is read, where a document has any number of records
	nothingYield = 0.05 // of a token that is reduced, where no two records are of one entity
	upperYield   = 1    // of a token of a reduce, where some are: little is left to be merged
)

// withSchemaYields fills in what the schema says of the sizes of outputs, each of whose fields
// has so many tokens.
func withSchemaYields(r plan.Rates, spec *mapreduce.JobSpec, field int) plan.Rates {
	s, err := schema.Shared(spec.Schema)
	if err != nil {
		return r // workers say so
	}

	if s.Kind == schema.KindRecord {
		r.Record = cmp.Or(r.Record, int64(len(s.Fields())*field))
	}

	r.MapYield = cmp.Or(r.MapYield, listYield)
	if len(s.Key) == 0 {
		r.ReduceYield = cmp.Or(r.ReduceYield, nothingYield)
		r.Apart = true
	} else {
		r.UpperYield = cmp.Or(r.UpperYield, upperYield)
	}

	return r
}

// listAdvice says of which fields a plan knows least: how long a list is only its document tells. "" if there are none, or
// no model writes them.
func listAdvice(r plan.Rates, spec *mapreduce.JobSpec) string {
	s, err := schema.Shared(spec.Schema)
	if err != nil || !r.Model || s.Kind != schema.KindRecord {
		return ""
	}

	var names []string
	for _, f := range s.Fields() {
		if f.Property.Type == schema.Array || f.Property.Type == schema.Map {
			names = append(names, f.Path)
		}
	}
	if len(names) == 0 {
		return ""
	}
	shown := strings.Join(names[:min(3, len(names))], ", ")
	if more := len(names) - 3; more > 0 {
		shown = fmt.Sprintf("%s and %d more", shown, more)
	}
	return fmt.Sprintf("lists are reckoned with one element each (%s): documents with long ones cost several times what is expected, and at most what the plan says", shown)
}

// A planning is a submission of which only the units are wanted.
type planning struct {
	submission
	size    func(text string) int64        // tokens of a text
	items   []plan.Item                    // of the stage that cuts documents
	gather  *gatherer                      // of a stage that gathers them; else nil
	held    []gathered                     // documents that it takes
	numbers map[mapreduce.DocumentID]int64 // of the documents that have units, by id
	all     []plan.Item                    // a document each, as a unit takes them that takes all
}

// itemBytes is about what a unit takes in a plan.
const itemBytes = 256

// countItems counts what is kept of documents so far.
func (p *planning) countItems() int64 { return int64(len(p.items) + len(p.held) + len(p.all)) }

// chooseStage returns the stage that gets the documents, and makes the items those that
// it has: documents as they are, if one unit takes all of them.
func (p *planning) chooseStage() (int, error) {
	if p.bundle != nil {
		stage, err := p.graph.DocumentStage(int64(len(p.all)), p.bundle.tokens)
		if err != nil {
			return 0, err
		}
		if stage == p.graph.Bundles() {
			p.items = p.all
			return stage, nil
		}
		return stage, p.gatherHeld()
	}

	cuts := p.graph.Cuts()
	if err := p.gatherHeld(); err != nil {
		return 0, err
	}
	return cuts, p.graph.Takes(cuts, p.publication.Documents-p.publication.Skipped, p.tokens, p.publication.Parse > 0)
}

// gatherHeld makes the items those of a stage that gathers documents, if there is one.
func (p *planning) gatherHeld() (err error) {
	if p.gather != nil {
		p.items, err = p.gather.gatherItems(p.held)
	}
	return err
}

// holdGathered takes a document that is to be gathered with others: of its text, the
// passage that is kept.
func (p *planning) holdGathered(d *mapreduce.Document, it plan.Item) error {
	one, err := p.gather.newGathered(d, p.publication.Documents-1)
	if err != nil {
		return err
	}

	it.Tokens, it.Guessed = p.size(string(one.text)), p.count.IsEstimate()
	p.tokens = pack.Sum(p.tokens, it.Tokens)
	one.text, one.item = nil, it
	p.held = append(p.held, one)
	return nil
}

// joinDirect takes a document into what a direct unit would take, as long as all fit.
func (p *planning) joinDirect(id mapreduce.DocumentID, text string, it plan.Item) error {
	if p.bundle == nil {
		return nil
	}

	it.Unit, it.Tokens, it.Guessed = mapreduce.MapUnit(id), it.Raw, p.count.IsEstimate()
	if it.Parse == "" {
		it.Tokens = p.size(text)
	}
	p.bundle.tokens = pack.Sum(p.bundle.tokens, it.Tokens)
	p.bundle.bytes += len(text)
	p.all = append(p.all, it)

	if p.graph.MayBundle(int64(len(p.all)), p.bundle.tokens) && p.bundle.bytes <= maxDirectBytes {
		return nil
	}

	if p.graph.Cuts() < 0 {
		return tooLarge(p.bundle)
	}

	// They do not fit one unit, so each gets its own.
	p.bundle, p.all = nil, nil
	return nil
}

func (p *planning) planDocument(d *mapreduce.Document) error {
	n := p.publication.Documents
	p.publication.Documents++

	unfit := unfitReason(d, n)
	id := documentID(p.graph.Pipeline(), d.ID)
	if skip := cmp.Or(unfit, p.unprocessableReason(d)); skip != "" {
		p.publication.Skipped++
		p.why = cmp.Or(p.why, fmt.Sprintf("%q: %s", id, skip))
		return nil
	}

	if first, ok := p.numbers[id]; ok {
		return errs.Field("documents", "documents %d and %d have the same id %q; give each its own", first+1, n+1, id)
	}
	p.numbers[id] = n

	if err := p.checkTemplateNames(&mapreduce.Document{ID: id, Metadata: d.Metadata}); err != nil {
		return err
	}

	if needsParsing(d.MediaType) {
		return p.planUnparsed(id, d)
	}
	return p.planTextUnits(&mapreduce.Document{ID: id, Metadata: d.Metadata, Content: d.Content})
}

// planTextUnits takes the units of a document's text. Of one that cannot be too large only
// a bound was needed so far: here its size is what is asked for.
func (p *planning) planTextUnits(d *mapreduce.Document) error {
	id, text := d.ID, string(d.Content)
	if err := p.joinDirect(id, text, plan.Item{}); err != nil || p.cut == nil {
		return err
	}

	if p.gather != nil {
		return p.holdGathered(d, plan.Item{})
	}

	pieces, err := p.cut.cutText(id, text)
	if err != nil {
		return err
	}

	if p.graph.Measures(p.graph.Cuts()) {
		p.tokens = pack.Sum(p.tokens, p.size(text))
	}

	p.addPieces(id, text, pieces)
	for _, piece := range pieces {
		p.noteUnit(&records.Unit{
			Estimate: p.config.Estimate(&p.cut.spec, int64(piece.Tokens)), Source: &records.Source{Chunks: int64(len(pieces))},
		})
	}
	return nil
}

// addPieces takes the units of the pieces that a document's text is cut into.
func (p *planning) addPieces(id mapreduce.DocumentID, text string, pieces []pack.Piece) {
	for i, piece := range pieces {
		tokens := int64(piece.Tokens)
		if !piece.Exact {
			tokens = p.size(text[piece.Start:piece.End])
		}
		p.items = append(p.items, plan.Item{Unit: mapUnit(id, i, len(pieces)), Tokens: tokens, Guessed: p.count.IsEstimate(), Part: len(pieces) > 1})
	}
}

// look returns what a document is expected to come to whose text is not known before it is parsed: a picture
// by its header, and any other as if all of it were text.
func (p *planning) look(d *mapreduce.Document) (tokens int64, shown plan.Look, text string) {
	if p.config.Look != nil {
		if look, isPicture := p.config.Look(p.spec, d.MediaType, d.Content); isPicture {
			return look.Text, look, ""
		}
	}
	text = string(d.Content)
	return p.size(text), plan.Look{}, text
}

// planUnparsed takes a document whose text is not known before it is parsed.
func (p *planning) planUnparsed(id mapreduce.DocumentID, d *mapreduce.Document) error {
	tokens, look, text := p.look(d)
	items, err := plan.Items(id, tokens, p.count.IsEstimate(), int64(p.spec.MaxTokensPerUnit), int64(max(0, p.spec.ChunkOverlap)))
	if err != nil {
		return err
	}

	look.Show(items)
	p.publication.Parse++
	if err := p.joinDirect(id, text, plan.Item{Expected: true, Parse: mapreduce.ParseUnit(id), Raw: tokens}); err != nil {
		return err
	}

	if p.gather != nil {
		one := &mapreduce.Document{ID: id, Metadata: d.Metadata, Content: d.Content}
		return p.holdGathered(one, plan.Item{Expected: true, Parse: mapreduce.ParseUnit(id), Raw: tokens})
	}

	for _, it := range items {
		it.Expected, it.Parse, it.Raw = true, mapreduce.ParseUnit(id), tokens
		p.items = append(p.items, it)
	}
	return nil
}

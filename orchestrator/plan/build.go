package plan

import (
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/pack"
)

// An Item is a unit of the map level, as it is before the run.
type Item struct {
	Unit     mapreduce.UnitID
	Tokens   int64 // of its text
	Guessed  bool  // nobody counted Tokens
	Expected bool  // its document may be cut otherwise: only its size was known
	// Parse is the unit that turns its document into text first, if it needs
	// one. Items of one document follow each other.
	Parse mapreduce.UnitID
	Raw   int64 // tokens that the parse unit reads
}

// maxChunks keeps a document that claims any size from taking all memory.
const maxChunks = 1 << 20

// Items returns the units of a document that has that many tokens: itself, or if
// they are more than most, its chunks. How many these are is a close guess,
// because cuts depend on the text.
func Items(d mapreduce.DocumentID, tokens int64, guessed bool, most, overlap int64) ([]Item, error) {
	most = max(1, most)
	overlap = min(max(0, overlap), most-1)
	if tokens <= most {
		return []Item{{Unit: mapreduce.MapUnit(d), Tokens: tokens, Guessed: guessed}}, nil
	}
	core := most - overlap
	n := (tokens-overlap-1)/core + 1
	if n > maxChunks {
		return nil, errs.Field("documents", "document %q of %d tokens would be cut into %d chunks; at most %d are planned", d, tokens, n, int64(maxChunks))
	}
	items := make([]Item, n)
	for i := range items {
		// The cores are of one size; all chunks but the first and the last hold
		// the overlap too.
		size := tokens / n
		if int64(i) < tokens%n {
			size++
		}
		items[i] = Item{Unit: mapreduce.ChunkUnit(d, i), Tokens: min(most, size+overlap), Guessed: guessed, Expected: true}
	}
	return items, nil
}

// Build returns the DAG of a job with these items: exactly as it will run if it
// does not depend on what units come to, else as it is expected to. The same
// items, planner and rates give the same DAG.
func (p *Planner) Build(items []Item, r Rates) (*DAG, error) {
	if len(items) == 0 {
		return nil, errs.Field("items", "must not be empty: there is nothing to map")
	}
	r = r.withDefaults()
	if err := r.check(); err != nil {
		return nil, err
	}
	b := &builder{p: p, r: r, dag: &DAG{Mode: p.Mode(), Exact: true}}
	if err := b.levels(items); err != nil {
		return nil, err
	}
	b.dag.Estimate = b.estimate()
	return b.dag, nil
}

// A builder makes a DAG.
type builder struct {
	p   *Planner
	r   Rates
	dag *DAG
}

func (b *builder) levels(items []Item) error {
	total := b.guessed(items)
	b.parses(items)
	if b.p.Direct(total) {
		b.direct(items)
		return nil
	}
	b.maps(items)
	for below := (Level{}); ; {
		l := b.dag.Levels[len(b.dag.Levels)-1]
		next, err := b.p.Next(b.ended(l, below))
		if err != nil {
			return err
		}
		b.reduce(l, next)
		if next.Final {
			return nil
		}
		below = l
	}
}

// guessed returns the tokens of all items, and warns of those that nobody
// counted.
func (b *builder) guessed(items []Item) (total int64) {
	w := Warning{Kind: GuessedSize}
	for _, it := range items {
		total = pack.Sum(total, it.Tokens)
		if it.Guessed {
			w.Outputs++
			w.Tokens = pack.Sum(w.Tokens, it.Tokens)
		}
		b.dag.Exact = b.dag.Exact && !it.Expected
	}
	if w.Outputs > 0 {
		b.dag.Warnings = append(b.dag.Warnings, w)
	}
	return total
}

// parses plans the units that turn documents into text.
func (b *builder) parses(items []Item) {
	b.dag.Nodes = make([]Node, 0, len(items)+len(items)/2+1)
	for i, it := range items {
		if it.Parse == "" || i > 0 && items[i-1].Parse == it.Parse {
			continue
		}
		size := []int64{max(0, it.Raw)}
		b.add(Node{ID: it.Parse, Kind: mapreduce.KindParse, Level: -1, Items: 1}, size, size, 1)
	}
	if len(b.dag.Nodes) > 0 {
		b.end(-1, 0, false)
	}
}

// direct plans one unit for all items.
func (b *builder) direct(items []Item) {
	sizes := make([]int64, len(items))
	for i, it := range items {
		sizes[i] = max(0, it.Tokens)
	}
	first := len(b.dag.Nodes)
	node := Node{ID: mapreduce.DirectUnit, Kind: mapreduce.KindDirect, Items: len(items)}
	for i := range first {
		node.Inputs = append(node.Inputs, int32(i))
	}
	b.dag.Exact = first == 0 // else texts may turn out not to fit
	b.add(node, sizes, sizes, b.r.MapYield)
	b.end(0, first, first > 0)
}

func (b *builder) maps(items []Item) {
	first := len(b.dag.Nodes)
	parse := int32(-1) // the latest unit that a document is parsed by
	for i, it := range items {
		size := []int64{max(0, it.Tokens)}
		node := Node{ID: it.Unit, Kind: mapreduce.KindMap, Items: 1}
		if it.Parse != "" {
			if i == 0 || items[i-1].Parse != it.Parse {
				parse++
			}
			node.Inputs, node.Items = []int32{parse}, 0
		}
		b.add(node, size, size, b.r.MapYield)
	}
	b.end(0, first, !b.dag.Exact)
}

// ended returns a level as if it had run.
func (b *builder) ended(l, below Level) Ended {
	n := int64(l.Count())
	return Ended{
		Level: int64(l.Level), Units: n, Completed: n, Size: b.size(l),
		BelowCompleted: int64(below.Count()), BelowSize: b.size(below),
		Outputs: func() ([]Output, error) {
			out := make([]Output, l.Count())
			for i := range out {
				node := &b.dag.Nodes[l.First+i]
				out[i] = Output{Index: int64(i), Tokens: node.Load.Size, Unit: node.ID}
			}
			return out, nil
		},
	}
}

func (b *builder) size(l Level) (total int64) {
	for _, n := range b.dag.Nodes[l.First:l.End] {
		total = pack.Sum(total, n.Load.Size)
	}
	return total
}

// reduce adds the level above l.
func (b *builder) reduce(l Level, next Next) {
	first, level := len(b.dag.Nodes), l.Level+1
	yield := b.r.ReduceYield
	if l.Level > 0 {
		yield = b.r.UpperYield
	}
	// One array holds the inputs of all units, as each output is taken once.
	inputs := make([]int32, 0, l.Count())
	for i := range int(next.Units) {
		from := len(inputs)
		inputs = appendInputs(inputs, l, next, i)
		node := Node{ID: mapreduce.ReduceUnit(level, i), Kind: mapreduce.KindReduce, Level: level, Inputs: inputs[from:len(inputs):len(inputs)]}
		if next.Final {
			node.ID, node.Kind = mapreduce.FinalUnit, mapreduce.KindFinal
		}
		sizes, most := b.sizes(node.Inputs)
		b.add(node, sizes, most, yield)
	}
	b.dag.Warnings = append(b.dag.Warnings, next.Warnings...)
	expected := b.p.strategy == Adaptive || b.p.strategy == Batches && int64(b.dag.Levels[0].Count()) > b.p.group
	b.dag.Exact = b.dag.Exact && !expected
	b.end(level, first, expected || l.Expected)
}

// appendInputs appends the nodes that the i-th unit above l takes.
func appendInputs(to []int32, l Level, next Next, i int) []int32 {
	from, end := 0, l.Count()
	switch {
	case next.Bins != nil:
		for _, at := range next.Bins[i] {
			to = append(to, int32(l.First)+int32(at))
		}
		return to
	case next.Group > 0:
		from = i * int(next.Group)
		end = min(end, from+int(next.Group))
	}
	for at := from; at < end; at++ {
		to = append(to, int32(l.First+at))
	}
	return to
}

func (b *builder) sizes(inputs []int32) (expected, most []int64) {
	expected, most = make([]int64, len(inputs)), make([]int64, len(inputs))
	for i, in := range inputs {
		expected[i], most[i] = b.dag.Nodes[in].Load.Size, b.dag.Nodes[in].Most.Size
	}
	return expected, most
}

func (b *builder) add(n Node, sizes, most []int64, yield float64) {
	n.Load = b.p.load(b.r, n.Kind, sizes, yield, false)
	n.Most = b.p.load(b.r, n.Kind, most, yield, true)
	b.dag.Nodes = append(b.dag.Nodes, n)
}

func (b *builder) end(level, first int, expected bool) {
	b.dag.Levels = append(b.dag.Levels, Level{Level: level, First: first, End: len(b.dag.Nodes), Expected: expected})
}

func (b *builder) estimate() Estimate {
	e := b.dag.count()
	e.Parallelism = b.r.Parallelism
	for i := range b.dag.Nodes {
		n := &b.dag.Nodes[i]
		e.Expected.add(n.Load)
		e.High.add(n.Most)
		if n.Level <= 0 || b.r.Merge == MergeModel {
			e.Low.add(n.Load)
		}
	}
	for _, s := range []*Spend{&e.Low, &e.Expected, &e.High} {
		b.r.price(s)
	}
	e.Makespan = b.dag.makespan(b.r, b.p.strategy != Static)
	return e
}

// count returns the sizes of a DAG.
func (d *DAG) count() (e Estimate) {
	for i := range d.Nodes {
		e.Count(d.Nodes[i].Level)
	}
	return e
}

package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/internal/text/pack"
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
	Part  bool  // it is a part of its document
	Shown int64 // tokens of pictures of its pages that a model is shown beside its text
	// Of are the documents of a unit that works on several, each with its Tokens,
	// Parse and Raw. The unit's own Parse is empty then.
	Of []Item
}

// documents are those that the unit works on.
func (it *Item) documents() []Item {
	if len(it.Of) > 0 {
		return it.Of
	}
	return []Item{*it}
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
		items[i] = Item{Unit: mapreduce.ChunkUnit(d, i), Tokens: min(most, size+overlap), Guessed: guessed, Expected: true, Part: true}
	}
	return items, nil
}

// Build returns the DAG of a job whose documents a stage gets as these items: as it
// will run exactly if it does not depend on what units come to, else as it is
// expected to. The same items, graph and rates give the same DAG.
func (g *Graph) Build(stage int, items []Item, r Rates) (*DAG, error) {
	if len(items) == 0 {
		return nil, errs.Field("items", "must not be empty: there is nothing to map")
	}

	r = r.withDefaults()
	if err := r.checkRates(); err != nil {
		return nil, err
	}

	b := &builder{g: g, r: r, dag: &DAG{Mode: g.treeMode(), Exact: true}}
	if err := b.addStageLevels(stage, items); err != nil {
		return nil, err
	}

	b.dag.Estimate = b.makeEstimate()
	return b.dag, nil
}

// treeMode returns how the trees of a job come about: that of its last one.
func (g *Graph) treeMode() Mode {
	for _, s := range slices.Backward(g.stages) {
		if s.Each == pipeline.EachGroup {
			return s.tree.Mode()
		}
	}
	return g.tree.Mode()
}

// A builder makes a DAG.
type builder struct {
	g       *Graph
	r       Rates
	dag     *DAG
	base    int   // levels of the DAG before level 0
	cut     bool  // some documents have several units
	short   int64 // maps that are answered with values alone
	parses  map[mapreduce.UnitID]int32
	planned []Planned // levels from 0 on
}

func (b *builder) addStageLevels(stage int, items []Item) error {
	b.warnUncounted(items)
	b.planParses(items)
	b.base = len(b.dag.Levels)

	first := b.g.First(stage)
	if first.All {
		b.planDirect(first, items)
	} else {
		b.planMaps(first, items)
	}

	// The levels above are planned as those of a run are, from expected sizes.
	b.planned = []Planned{{Stage: stage}}
	for {
		step, err := b.g.Next(b.planned, b)
		if err != nil || step == nil {
			return err
		}
		b.addLevel(step)
		b.planned = append(b.planned, Planned{Stage: step.Stage, Depth: step.Depth, Root: step.All})
	}
}

// warnUncounted warns of items whose tokens nobody counted.
func (b *builder) warnUncounted(items []Item) {
	w := Warning{Kind: GuessedSize}
	for _, it := range items {
		if it.Guessed {
			w.Outputs++
			w.Tokens = pack.Sum(w.Tokens, it.Tokens)
		}
		b.dag.Exact = b.dag.Exact && !it.Expected
	}

	if w.Outputs > 0 {
		b.dag.Warnings = append(b.dag.Warnings, w)
	}
}

// planParses plans the units that turn documents into text.
func (b *builder) planParses(items []Item) {
	b.dag.Nodes = make([]Node, 0, len(items)+len(items)/2+1)
	b.parses = make(map[mapreduce.UnitID]int32)

	for i := range items {
		for _, it := range items[i].documents() {
			if _, planned := b.parses[it.Parse]; planned || it.Parse == "" {
				continue
			}
			b.parses[it.Parse] = int32(len(b.dag.Nodes))
			size := []int64{max(0, it.Raw)}
			b.appendUnit(0, Node{ID: it.Parse, Kind: mapreduce.KindParse, Level: -1, Items: 1}, unitSizes{expected: size, most: size, yield: 1})
		}
	}

	if len(b.dag.Nodes) > 0 {
		b.endLevel(-1, 0, false)
	}
}

// planDirect plans one unit for all items.
func (b *builder) planDirect(step *Step, items []Item) {
	sizes := make([]int64, len(items))
	for i, it := range items {
		sizes[i] = max(0, it.Tokens)
	}

	first := len(b.dag.Nodes)
	node := Node{ID: step.Unit, Kind: step.Kind, Stage: b.g.stages[step.Stage].Name, Items: len(items)}
	for i := range first {
		node.Inputs = append(node.Inputs, int32(i))
	}

	b.dag.Exact = first == 0 // else texts may turn out not to fit
	b.appendUnit(step.Stage, node, unitSizes{expected: sizes, most: sizes, yield: b.r.MapYield})
	// If documents are parsed first, the unit is only expected.
	b.endLevel(0, first, first > 0)
}

func (b *builder) planMaps(step *Step, items []Item) {
	first := len(b.dag.Nodes)
	for i := range items {
		b.cut = b.cut || items[i].Part
		node := Node{ID: items[i].Unit, Kind: step.Kind, Stage: b.g.stages[step.Stage].Name}
		var sizes []int64
		var shown int64
		for _, it := range items[i].documents() {
			sizes = append(sizes, max(0, it.Tokens))
			shown = pack.Sum(shown, max(0, it.Shown))
			if it.Parse == "" {
				node.Items++
			} else {
				node.Inputs = append(node.Inputs, b.parses[it.Parse])
			}
		}

		b.appendUnit(step.Stage, node, unitSizes{expected: sizes, most: sizes, yield: b.r.MapYield, shown: shown, again: b.asksAgain(sizes)})
	}

	b.endLevel(0, first, !b.dag.Exact)
}

// asksAgain reports whether the next map, of texts of these sizes, is reckoned to be asked once more
// where its values stand.
func (b *builder) asksAgain(sizes []int64) bool {
	if !b.r.Short.isFor(pack.Sum(sizes...)) {
		return false
	}
	b.short++
	return b.r.Short.asksAgain(b.short - 1)
}

// ratesOf returns the rates of a stage: values that are no records are written as they are read.
func (b *builder) ratesOf(stage int) Rates {
	r := b.r
	if b.g.stages[stage].Output.Kind != pipeline.OutputRecords {
		r.Written = 1
		if r.Short != nil {
			r.Short, r.Rounds = nil, 0
		}
	}
	return r
}

// isSettled reports whether rules leave nothing open of what a unit merges: records of different
// documents stay apart, and those of parts of one document too, unless all are one record.
func (b *builder) isSettled(stage int, kind mapreduce.UnitKind) bool {
	s := &b.g.stages[stage]
	records := s.Output.Kind == pipeline.OutputRecords && s.Output.Schema == nil && len(s.Tools) == 0
	merges := kind == mapreduce.KindFinal || kind == mapreduce.KindReduce
	return b.r.Apart && records && merges && (b.r.Record == 0 || !b.cut)
}

// Sizes implements History with the expected outputs of a level.
func (b *builder) Sizes(level int) (Sizes, error) {
	l := b.dag.Levels[b.base+level]
	n := int64(l.Count())
	return Sizes{Units: n, Completed: n, Tokens: b.levelSize(l)}, nil
}

// Outputs implements History.
func (b *builder) Outputs(level int) ([]Output, error) {
	l := b.dag.Levels[b.base+level]
	out := make([]Output, l.Count())
	for i := range out {
		node := &b.dag.Nodes[l.First+i]
		out[i] = Output{Index: int64(i), Tokens: node.Load.Size, Unit: node.ID}
	}
	return out, nil
}

// expectedElements is how many elements a list is expected to have that a unit
// comes to.
const expectedElements = 10

// Items implements History: nobody knows the lists before they are made.
func (b *builder) Items(level int, _ []string) ([]Element, error) {
	var all []Element
	l := b.dag.Levels[b.base+level]

	if b.g.makesPassages(b.planned[level].Stage) { // one of each unit, about
		for i := range l.Count() {
			value := fmt.Sprintf(`{"size":%d}`, charactersOfToken*b.dag.Nodes[l.First+i].Load.Read)
			all = append(all, Element{Source: int64(i), Value: json.RawMessage(value)})
		}
		return all, nil
	}

	for i := range l.Count() {
		for range expectedElements {
			all = append(all, Element{Source: int64(i)})
		}
	}
	return all, nil
}

// Fields implements History.
func (b *builder) Fields(level int, _ string) ([]Element, error) {
	all := make([]Element, b.dag.Levels[b.base+level].Count())
	for i := range all {
		all[i].Source = int64(i)
	}
	return all, nil
}

func (b *builder) levelSize(l Level) (total int64) {
	for _, n := range b.dag.Nodes[l.First:l.End] {
		total = pack.Sum(total, n.Load.Size)
	}
	return total
}

// addLevel adds a level.
func (b *builder) addLevel(step *Step) {
	source := b.dag.Levels[b.base+step.Source]
	first, level := len(b.dag.Nodes), len(b.planned)
	yield := b.r.ReduceYield
	if step.Depth > 1 {
		yield = b.r.UpperYield
	}

	// One array holds the inputs of all units, as most take each output once.
	inputs := make([]int32, 0, source.Count())
	for i := range int(step.Units) {
		from := len(inputs)
		inputs = appendInputs(inputs, source, step, i)
		node := Node{
			ID: step.UnitAt(int64(i)), Kind: step.Kind, Stage: b.g.stages[step.Stage].Name, Level: level,
			Inputs: inputs[from:len(inputs):len(inputs)],
		}
		sizes, most := b.inputSizes(node.Inputs)
		b.appendUnit(step.Stage, node, unitSizes{expected: sizes, most: most, yield: yield})
	}

	b.dag.Warnings = append(b.dag.Warnings, step.Warnings...)
	expected := b.dependsOnOutputs(step)
	b.dag.Exact = b.dag.Exact && !expected
	b.endLevel(level, first, expected || source.Expected)
}

// dependsOnOutputs reports whether a level depends on the outputs of units, and not only
// on their number.
func (b *builder) dependsOnOutputs(step *Step) bool {
	s := &b.g.stages[step.Stage]
	if s.When != "" || step.Each != nil || step.Items != nil || s.Select != "" && s.Select != pipeline.SelectAll || s.Order != "" {
		return true
	}
	if step.Depth == 0 {
		return false
	}
	leaves := b.dag.Levels[b.base+b.g.sourceLevel(step.Stage, b.planned[:len(b.planned)-step.Depth+1])].Count()
	return s.tree.strategy == Adaptive || s.tree.strategy == Batches && int64(leaves) > s.tree.group
}

// UnitAt returns the id of a unit of the level.
func (s *Step) UnitAt(index int64) mapreduce.UnitID {
	if s.Unit != "" {
		return s.Unit
	}
	return mapreduce.UnitID(s.Prefix + strconv.FormatInt(index, 10))
}

// appendInputs appends the nodes that the i-th unit of a level takes of its source.
func appendInputs(to []int32, source Level, step *Step, i int) []int32 {
	from, end := 0, source.Count()
	switch {
	case step.Bins != nil:
		for _, at := range step.Bins[i] {
			to = append(to, int32(source.First)+int32(at))
		}
		return to
	case step.Items != nil:
		from = int(step.Items[i].Source)
		end = from + 1
	case step.Group > 0:
		from = i * int(step.Group)
		end = min(end, from+int(step.Group))
	}

	for at := from; at < end; at++ {
		to = append(to, int32(source.First+at))
	}
	return to
}

func (b *builder) inputSizes(inputs []int32) (expected, most []int64) {
	expected, most = make([]int64, len(inputs)), make([]int64, len(inputs))
	for i, in := range inputs {
		expected[i], most[i] = b.dag.Nodes[in].Load.Size, b.dag.Nodes[in].Most.Size
	}
	return expected, most
}

// unitSizes are the sizes of what a unit reads.
type unitSizes struct {
	expected, most []int64 // tokens of its inputs
	yield          float64 // tokens of its output for one of an input
	shown          int64   // tokens of pictures
	again          bool    // it is asked once more where its values stand
	settled        bool    // rules leave nothing of it open
}

// appendUnit adds a unit of a stage that reads texts or outputs of these sizes.
func (b *builder) appendUnit(stage int, n Node, s unitSizes) {
	s.settled = b.isSettled(stage, n.Kind)
	tree := b.g.stages[stage].tree
	r := b.ratesOf(stage)
	n.Load = tree.unitLoad(r, n.Kind, s, false)
	n.Most = tree.unitLoad(r, n.Kind, s, true)
	b.dag.Nodes = append(b.dag.Nodes, n)
}

func (b *builder) endLevel(level, first int, expected bool) {
	b.dag.Levels = append(b.dag.Levels, Level{Level: level, First: first, End: len(b.dag.Nodes), Expected: expected})
}

func (b *builder) makeEstimate() Estimate {
	e := b.dag.countSizes()
	e.Parallelism = b.r.Parallelism

	for i := range b.dag.Nodes {
		n := &b.dag.Nodes[i]
		e.Expected.addLoad(n.Load)
		e.High.addLoad(n.Most)
		if n.Level <= 0 || b.r.Merge == MergeModel {
			e.Low.addLoad(n.Load)
		}
	}

	for _, s := range []*Spend{&e.Low, &e.Expected, &e.High} {
		b.r.priceSpend(s)
	}

	e.Makespan = b.dag.estimateMakespan(b.r, b.g.treeMode() != ModeStatic)
	return e
}

// countSizes returns the sizes of a DAG.
func (d *DAG) countSizes() (e Estimate) {
	for i := range d.Nodes {
		e.Count(d.Nodes[i].Level)
	}
	return e
}

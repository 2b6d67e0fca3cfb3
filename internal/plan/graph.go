package plan

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/pipeline/condition"
)

// A Graph is a pipeline made ready to be planned: the levels of a job follow from
// it one after the other, each from what the levels before it came to. Stages run
// in the order of the file; one whose condition does not hold is skipped, and so is
// one that reads skipped stages alone. It never changes.
type Graph struct {
	pipeline *pipeline.Pipeline
	tree     *Planner  // of the run
	stages   []stageOf // like pipeline.Stages
}

// A stageOf is what a stage of the pipeline is planned by.
type stageOf struct {
	*pipeline.Stage
	when  condition.Condition
	tree  *Planner // of a stage that reduces groups; else the run's
	phase mapreduce.JobState
}

// NewGraph returns the graph of a pipeline, for a run that asks for a tree. An
// error names the field and the rule that it breaks.
func NewGraph(p *pipeline.Pipeline, run Config) (*Graph, error) {
	for _, s := range p.Stages.OfDocuments() {
		when, err := condition.Parse(s.When)
		if err != nil {
			return nil, errs.Field("stages."+s.Name+".when", "%s", err)
		}

		// A condition on the budget needs a tree that has one.
		run.Direct = run.Direct || s.Each == pipeline.EachAll && when.Budget()
	}

	g := &Graph{pipeline: p}
	var err error
	if g.tree, err = New(run); err != nil {
		return nil, err
	}

	for i, s := range p.Stages {
		one := stageOf{Stage: s, tree: g.tree, phase: phases[p.Stages.Phase(i)]}
		if one.when, err = condition.Parse(s.When); err != nil {
			return nil, errs.Field("stages."+s.Name+".when", "%s", err)
		}
		if s.Each == pipeline.EachGroup {
			if one.tree, err = New(run.forStage(s)); err != nil {
				return nil, err
			}
		}

		g.stages = append(g.stages, one)
	}
	return g, nil
}

var phases = map[pipeline.Phase]mapreduce.JobState{
	pipeline.Decomposition: mapreduce.Decomposition, pipeline.Mapping: mapreduce.Mapping, pipeline.Reducing: mapreduce.Reducing,
}

// forStage returns the configuration of a stage's tree: the stage's own, or else the
// run's.
func (c Config) forStage(s *pipeline.Stage) Config {
	own := s.Strategy != "" || s.ChunkSize != nil || s.TargetTokenBudget != nil || s.ContextWindow != nil ||
		s.BudgetRatio != nil || s.MaxReduceLevels != nil || s.ReduceContextLimit != nil || s.ReduceBatchSize != nil
	if own { // one size must not be the stage's and another the run's
		c = Config{Strategy: Strategy(s.Strategy), Fallback: c.Fallback, PromptOverhead: c.PromptOverhead, ReservedOutput: c.ReservedOutput}
		c.ChunkSize, c.TargetTokenBudget, c.ContextWindow = s.ChunkSize, s.TargetTokenBudget, s.ContextWindow
		c.BudgetRatio, c.MaxReduceLevels = s.BudgetRatio, s.MaxReduceLevels
		c.ReduceContextLimit, c.ReduceBatchSize = s.ReduceContextLimit, s.ReduceBatchSize
	}
	c.Ordered = c.Ordered || s.Fold
	return c
}

// Pipeline returns what the graph was made of.
func (g *Graph) Pipeline() *pipeline.Pipeline { return g.pipeline }

// Tree returns the planner of the trees of the run. Those of stages that say
// themselves what they want may be others.
func (g *Graph) Tree() *Planner { return g.tree }

// TreeOf returns the planner of the tree of a stage, given by its index.
func (g *Graph) TreeOf(stage int) *Planner { return g.stages[stage].tree }

// DocumentStage returns the index of the stage that gets the documents of a job:
// the first whose condition holds of so many documents with so many tokens. None
// is an error.
func (g *Graph) DocumentStage(count, tokens int64) (int, error) {
	var whens []string
	for i := range g.stages {
		s := &g.stages[i]
		if s.From != pipeline.Documents {
			continue
		}

		if s.when.Holds(count, tokens, g.tree.budget) {
			return i, nil
		}
		whens = append(whens, s.Name+" when "+s.When)
	}

	return 0, errs.Field("documents", "no stage of the pipeline takes %d documents of %d tokens: there is %s", count, tokens, strings.Join(whens, ", "))
}

// Bundles returns the index of the stage one unit of which takes all documents, if
// the pipeline has one; else -1.
func (g *Graph) Bundles() int { return g.documentStage(true) }

// Cuts returns the index of the stage that has units for documents, parts of them or
// some of them, if the pipeline has one; else -1.
func (g *Graph) Cuts() int { return g.documentStage(false) }

// Gathers reports whether units of the stage that Cuts returns work on several documents
// each.
func (g *Graph) Gathers() bool {
	at := g.Cuts()
	return at >= 0 && g.stages[at].Stage.Gathers()
}

func (g *Graph) documentStage(bundled bool) int {
	for i := range g.stages {
		if s := &g.stages[i]; s.From == pipeline.Documents && (s.Each == pipeline.EachAll) == bundled {
			return i
		}
	}
	return -1
}

// MayBundle reports whether one unit may take all documents of a job which has at
// least so many, of at least so many tokens: none that come yet can make up for
// documents that are too many or too large. They are always taken together by a
// pipeline that has no other stage for them.
func (g *Graph) MayBundle(count, tokens int64) bool {
	at := g.Bundles()
	return at >= 0 && (g.Cuts() < 0 || g.stages[at].when.MayHold(count, tokens, g.tree.budget))
}

// Takes returns an error if the condition of a stage does not hold of so many
// documents with so many tokens. Of documents that are not parsed yet the tokens are
// not known.
func (g *Graph) Takes(stage int, count, tokens int64, unparsed bool) error {
	s := &g.stages[stage]
	if s.when.Holds(count, tokens, g.tree.budget) || unparsed && s.when.MayHold(count, tokens, g.tree.budget) {
		return nil
	}
	return errs.Field("documents", "no stage of the pipeline takes %d documents of %d tokens: %s does when %s", count, tokens, s.Name, s.When)
}

// Measures reports whether the tokens of documents decide whether a stage takes them.
func (g *Graph) Measures(stage int) bool { return g.stages[stage].When != "" }

// TreeAtOnce returns the stage whose whole tree is planned with the units of the
// stage that gets the documents, before any of these runs; -1 if there is none. It
// has to be static, and the next to run whatever these units come to.
func (g *Graph) TreeAtOnce(documents int) int {
	if g.stages[documents].Stage.Gathers() {
		return -1 // how many units there are is known once all documents are text
	}

	for i := documents + 1; i < len(g.stages); i++ {
		s := &g.stages[i]
		if s.From == pipeline.Documents || !g.readsStage(s, documents) {
			continue // it is skipped
		}

		if s.Each == pipeline.EachGroup && s.tree.strategy == Static && s.When == "" && runsAlike(s.Stage, g.stages[documents].Stage) {
			return i
		}
		return -1
	}
	return -1
}

// runsAlike reports whether units of two stages may run at the same time: all that a
// stage says of how its units run holds for all units of a job that run together.
func runsAlike(a, b *pipeline.Stage) bool {
	return a.Model == b.Model && a.Parallel == b.Parallel && a.OnError == b.OnError && a.Limits.Time == b.Limits.Time &&
		slices.Equal(a.Tools, b.Tools) && a.Parameters.String() == b.Parameters.String()
}

// readsStage reports whether a stage reads another, if of the stages before it just that
// one ran.
func (g *Graph) readsStage(s *stageOf, other int) bool {
	return slices.Contains(s.Sources(), g.stages[other].Name)
}

// A Planned is a level of a job that is planned.
type Planned struct {
	Stage int  // index in the pipeline
	Depth int  // in the stage's tree; 0 if it has none
	Root  bool // it is the last of its stage
}

// A Step is a level that is to be planned. Exactly one of All, Group, Bins, Items
// and Each says what its units take of the source level.
type Step struct {
	Stage  int
	Depth  int              // in the stage's tree, from 1 on; 0 if it has none
	Source int              // the level whose outputs the units take
	Prefix string           // of the ids of the units, before their index
	Unit   mapreduce.UnitID // the id of the only unit; takes the place of Prefix
	Kind   mapreduce.UnitKind
	Phase  mapreduce.JobState // of the job while the units run
	Units  int64

	All   bool      // the only unit takes all outputs
	Group int64     // each unit takes so many units of the level, in order, failed ones too
	Bins  [][]int64 // each unit takes the outputs of the units with these indexes, which grow
	Items []Element // each unit works on an element of an output
	Each  [][]byte  // each unit takes all outputs, and works on this JSON

	Warnings []Warning
}

// An Element is one of the output of a unit.
type Element struct {
	Source int64           // index of the unit in its level
	Value  json.RawMessage // the element
}

// Sizes describes the outputs of a level's units.
type Sizes struct {
	Units     int64 // planned
	Completed int64 // that have an output
	Tokens    int64 // of all outputs
}

// A History gives the outputs of a job's levels, all of which have ended. The graph asks
// it only for the outputs that decide the next level.
type History interface {
	// Sizes returns the sizes of a level.
	Sizes(level int) (Sizes, error)
	// Outputs returns the sizes of the outputs of a level, in order.
	Outputs(level int) ([]Output, error)
	// Items returns the elements of the lists at a path in the outputs of a level,
	// in order.
	Items(level int, path []string) ([]Element, error)
	// Fields returns of each output of a level what it has under a name, in order; no
	// value of one that has nothing there.
	Fields(level int, name string) ([]Element, error)
}

// Next returns the level that follows those that are planned, the last of which has
// ended; nil if the job is complete. The same history gives the same answer. An
// error of kind Precondition means that a stage has nothing to work on.
func (g *Graph) Next(planned []Planned, h History) (*Step, error) {
	last := planned[len(planned)-1]
	if last.Depth > 0 && !last.Root {
		return g.planNextDepth(planned, h)
	}

	for i := last.Stage + 1; i < len(g.stages); i++ {
		step, err := g.planFirstLevel(i, planned, h)
		if step != nil || err != nil {
			return step, err
		}
	}
	return nil, nil
}

// planNextDepth plans the next depth of a tree.
func (g *Graph) planNextDepth(planned []Planned, h History) (*Step, error) {
	at := len(planned) - 1
	now, err := h.Sizes(at)
	if err != nil {
		return nil, err
	}

	below := at - 1 // of the same tree, or what its first depth takes
	if planned[at].Depth == 1 {
		below = g.sourceLevel(planned[at].Stage, planned)
	}
	before, err := h.Sizes(below)
	if err != nil {
		return nil, err
	}

	return g.planReduce(planned[at].Stage, at, planned[at].Depth, now, before, h)
}

// planFirstLevel plans the first level of a stage, or returns nil if the stage is skipped.
func (g *Graph) planFirstLevel(stage int, planned []Planned, h History) (*Step, error) {
	s := &g.stages[stage]
	if s.From == pipeline.Documents {
		return nil, nil // another got the documents
	}

	source := g.sourceLevel(stage, planned)
	if source < 0 {
		return nil, nil
	}

	sizes, err := h.Sizes(source)
	if err != nil {
		return nil, err
	}

	inputs := condition.Size{Count: sizes.Completed, Tokens: sizes.Tokens}
	var items []Element
	passages := g.makesPassages(planned[source].Stage) && s.Stage.Output.Kind != pipeline.OutputPassages
	if _, path, ok := s.ListPath(); ok {
		if items, err = h.Items(source, path); err != nil {
			return nil, err
		}
		inputs.Count = int64(len(items))
	} else if passages {
		if items, inputs, err = passagesOf(source, h); err != nil {
			return nil, err
		}
		if inputs.Count == 0 {
			return nil, errs.New(errs.Precondition, "stage %s has nothing to work on: no passage of the documents bears on the question", s.Name)
		}
	}

	if holds, err := g.holds(s, inputs, planned, h); !holds || err != nil {
		return nil, err
	}
	if s.Each == pipeline.EachGroup {
		return g.planReduce(stage, source, 0, sizes, Sizes{}, h)
	}

	step := g.newStep(stage, source)
	switch s.Each {
	case pipeline.EachAll:
		step.Unit, step.Prefix, step.All, step.Units = mapreduce.UnitID(s.Name), "", true, 1
		step.Kind = mapreduce.KindReduce
		if stage == len(g.stages)-1 {
			step.Kind = mapreduce.KindFinal
		}
	case pipeline.EachBatch:
		if passages {
			return step, step.batchPassages(s.Stage, items)
		}
		step.Group, step.Units, step.Kind = s.Size, (sizes.Units-1)/s.Size+1, mapreduce.KindReduce
		if by, ok := s.Ordering(); ok {
			// A batch of sorted outputs takes them by their indexes.
			fields, err := h.Fields(source, by.Field)
			if err != nil {
				return nil, err
			}
			step.Group, step.Bins = 0, sortedBins(fields, by, s.Size)
			step.Units = int64(len(step.Bins))
		}
	case pipeline.EachAgent:
		if step.Each, err = g.agentInputs(s, planned, h); err != nil {
			return nil, err
		}
		step.Units = int64(len(step.Each))
	default:
		step.Items, step.Units = items, int64(len(items))
	}

	if step.Units == 0 {
		return nil, errs.New(errs.Precondition, "stage %s has nothing to work on: %s is empty; a condition, when: count > 0, would skip it", s.Name, s.Each)
	}
	return step, nil
}

// makesPassages reports whether the units of a stage choose passages.
func (g *Graph) makesPassages(stage int) bool {
	return g.stages[stage].Output.Kind == pipeline.OutputPassages
}

// holds reports whether the condition of a stage holds of its inputs, and of what earlier
// stages made.
func (g *Graph) holds(s *stageOf, inputs condition.Size, planned []Planned, h History) (bool, error) {
	stages := make(map[string]condition.Size)
	for _, name := range s.when.Stages() {
		at := g.pipeline.Stages.Index(name)
		level := lastOf(planned, at)
		if level < 0 {
			continue // it was skipped
		}

		if g.makesPassages(at) {
			_, size, err := passagesOf(level, h)
			if err != nil {
				return false, err
			}
			stages[name] = size
			continue
		}

		sizes, err := h.Sizes(level)
		if err != nil {
			return false, err
		}
		stages[name] = condition.Size{Count: sizes.Completed, Tokens: sizes.Tokens}
	}
	return s.when.HoldsAfter(inputs, stages, s.tree.budget), nil
}

// sortedBins returns the batches of outputs that are sorted by a field, those without it
// last. Of each batch the indexes grow: who reads it sorts it again.
func sortedBins(fields []Element, by pipeline.Order, size int64) (bins [][]int64) {
	slices.SortStableFunc(fields, func(a, b Element) int {
		switch {
		case len(a.Value) > 0 && len(b.Value) > 0:
			return by.Compare(plainText(a.Value), plainText(b.Value))
		case len(a.Value) > 0:
			return -1
		case len(b.Value) > 0:
			return 1
		}
		return 0
	})

	for some := range slices.Chunk(fields, int(size)) {
		bin := make([]int64, len(some))
		for i, f := range some {
			bin[i] = f.Source
		}
		slices.Sort(bin)
		bins = append(bins, bin)
	}
	return bins
}

// plainText is a text without the marks of JSON, and any other value as JSON.
func plainText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// agentInputs returns what the units of a stage work on that has one for each agent.
func (g *Graph) agentInputs(s *stageOf, planned []Planned, h History) ([][]byte, error) {
	chosen := s.Agents
	if stage, path, ok := s.SelectPath(); ok {
		level := lastOf(planned, g.pipeline.Stages.Index(stage))
		if level < 0 {
			return nil, errs.New(errs.Precondition, "stage %s selects agents by %s, which was skipped", s.Name, stage)
		}
		items, err := h.Items(level, path)
		if err != nil {
			return nil, err
		}
		if chosen, err = selectedAgents(s, items); err != nil {
			return nil, err
		}
	}

	var all [][]byte
	for _, name := range chosen {
		one, err := json.Marshal(map[string]string{"agent": name})
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// selectedAgents returns the agents that an earlier output names, in the stage's order. It
// may name none that the stage does not have.
func selectedAgents(s *stageOf, items []Element) ([]string, error) {
	named := make(map[string]bool, len(items))
	for _, item := range items {
		var name string
		if err := json.Unmarshal(item.Value, &name); err != nil {
			return nil, errs.New(errs.Precondition, "stage %s selects agents by name, but %s has %.80s, which is not a name", s.Name, s.Select, item.Value)
		}
		named[name] = true
	}

	var chosen []string
	for _, name := range s.Agents {
		if named[name] {
			chosen = append(chosen, name)
			delete(named, name)
		}
	}

	for name := range named {
		return nil, errs.New(errs.Precondition, "%s names the agent %.80q, which stage %s does not have", s.Select, name, s.Name)
	}
	return chosen, nil
}

// sourceLevel returns the level that a stage reads: the last of the first of its sources
// that was not skipped; -1 if all were.
func (g *Graph) sourceLevel(stage int, planned []Planned) int {
	for _, name := range g.stages[stage].Sources() {
		if level := lastOf(planned, g.pipeline.Stages.Index(name)); level >= 0 {
			return level
		}
	}
	return -1
}

// lastOf returns the last level of a stage, -1 if it has none.
func lastOf(planned []Planned, stage int) int {
	for level, l := range slices.Backward(planned) {
		if l.Stage == stage {
			return level
		}
	}
	return -1
}

// planReduce plans the next depth of a stage's tree over a level.
func (g *Graph) planReduce(stage, source, depth int, now, before Sizes, h History) (*Step, error) {
	s := &g.stages[stage]
	next, err := s.tree.Next(Ended{
		Level: int64(depth), Units: now.Units, Completed: now.Completed, Size: now.Tokens,
		BelowCompleted: before.Completed, BelowSize: before.Tokens,
		Outputs: func() ([]Output, error) { return h.Outputs(source) },
	})
	if err != nil {
		return nil, err
	}

	step := g.newStep(stage, source)
	step.Depth, step.Kind, step.Prefix = depth+1, mapreduce.KindReduce, mapreduce.TreePrefix(s.Name, depth+1)
	step.Group, step.Bins, step.Units, step.Warnings = next.Group, next.Bins, next.Units, next.Warnings

	if next.Final {
		step.All, step.Kind, step.Unit, step.Prefix = true, mapreduce.KindFinal, g.Root(stage), ""
	}
	return step, nil
}

// Root returns the id of the unit that a stage's tree comes to.
func (g *Graph) Root(stage int) mapreduce.UnitID {
	if stage == len(g.stages)-1 {
		return mapreduce.FinalUnit
	}
	return mapreduce.UnitID(g.stages[stage].Name)
}

func (g *Graph) newStep(stage, source int) *Step {
	s := &g.stages[stage]
	return &Step{
		Stage: stage, Source: source, Prefix: mapreduce.StagePrefix(s.Name), Kind: mapreduce.KindMap, Phase: s.phase,
	}
}

// Phase returns the phase of a job while the units of a stage run.
func (g *Graph) Phase(stage int) mapreduce.JobState { return g.stages[stage].phase }

// First returns level 0 of a job whose documents a stage gets.
func (g *Graph) First(stage int) *Step {
	s := &g.stages[stage]
	step := &Step{Stage: stage, Kind: mapreduce.KindMap, Phase: s.phase}
	switch s.Each {
	case pipeline.EachBatch, pipeline.EachAgent:
		step.Prefix = mapreduce.StagePrefix(s.Name)
	case pipeline.EachAll:
		step.Kind, step.Unit, step.Units, step.All = mapreduce.KindDirect, mapreduce.UnitID(s.Name), 1, true
	}
	return step
}

package pipeline

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/pipeline/condition"
	"github.com/coditect/mapreduce/api/pipeline/internal/filetree"
	"github.com/coditect/mapreduce/api/pipeline/internal/naming"
	"github.com/coditect/mapreduce/api/pipeline/internal/template"
	"github.com/coditect/mapreduce/api/schema"
)

// Bounds on what files may say.
const (
	maxStages = 32
	maxText   = 16 << 10 // bytes of a template

	// MaxTools bounds the tools of a stage or an agent, and MaxInstructions the instructions of an agent, in bytes.
	MaxTools        = 64
	MaxInstructions = 64 << 10
)

// stageName is the form of a stage's name. It has no underscore, since the id of a unit
// is a stage's name, an underscore and numbers.
var stageName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// unitNames are names that units have whatever the stages are.
var unitNames = []string{Documents, "final", "parse"}

// checkStages refuses what makes no sense. The error names the key, the rule and the line.
func (p *Pipeline) checkStages() error {
	if !naming.IsName(p.Name) {
		return p.fieldError("name", "must be %s, and is %.80q", naming.Rule, p.Name)
	}
	if len(p.Stages) == 0 {
		return p.fieldError("stages", "is required: a pipeline is a list of stages")
	}
	if err := p.checkNames(); err != nil {
		return err
	}

	p.templates = make(map[string]template.Template)
	for _, agent := range slices.Sorted(maps.Keys(p.Agents)) {
		if err := p.checkAgent("agents."+agent, p.Agents[agent]); err != nil {
			return err
		}
	}

	// When a stage is checked, all stages before it are known to be right.
	for i := range p.Stages {
		c := checker{Pipeline: p, Stage: p.Stages[i], i: i}
		for _, check := range []func() error{
			c.checkSources, c.checkEach, c.checkPassages, c.eachPath, c.checkKeys, c.checkSelects, c.checkCondition, c.checkWords, c.checkWork, c.checkParameters, c.checkOutput, c.checkTools, c.checkCascade, c.checkReview, c.checkGroup, c.checkTree, c.checkTexts,
		} {
			if err := check(); err != nil {
				return err
			}
		}
	}

	if err := p.checkAdvice(); err != nil {
		return err
	}
	return p.checkGraph()
}

// checkParameters refuses parameters of answers where nobody answers.
func (c checker) checkParameters() error {
	if !c.Parameters.IsZero() && c.Output.Kind == OutputPassages && c.Agent == nil {
		return c.fieldError(stageField(c.i, "parameters"), "are those of a model's answers, and no model chooses passages")
	}
	return nil
}

// maxAdvice bounds the advice of a pipeline.
const maxAdvice = 8

// checkAdvice refuses advice for no run that there can be, or about what is not known when a
// run begins.
func (p *Pipeline) checkAdvice() error {
	if len(p.Advice) > maxAdvice {
		return p.fieldError("advice", "there are %d; at most %d are accepted", len(p.Advice), maxAdvice)
	}

	for i, a := range p.Advice {
		field := fmt.Sprintf("advice[%d]", i)
		when, err := condition.Parse(a.When)
		switch {
		case err != nil:
			return p.fieldError(field+".when", "%s", err)
		case a.When == "" || len(when.Stages()) > 0 || strings.Contains(a.When, "tokens"):
			return p.fieldError(field+".when", "must be a condition on the count of documents, such as count < 3")
		case a.Text == "" || len(a.Text) > naming.MaxWord*4:
			return p.fieldError(field+".text", "must be a text of at most %d bytes, and has %d", naming.MaxWord*4, len(a.Text))
		}
	}
	return nil
}

// checkNames refuses stages with equal or reserved names.
func (p *Pipeline) checkNames() error {
	for i, s := range p.Stages {
		field := stageField(i, "name")
		switch {
		case s.Name == "":
			return p.fieldError(field, "is required: the ids of units contain it")
		case !stageName.MatchString(s.Name):
			return p.fieldError(field, "must be 1 to 32 lower-case letters, digits and dashes, a letter first, and is %.80q", s.Name)
		case slices.Contains(unitNames, s.Name):
			return p.fieldError(field, "%q is a reserved word; choose another name", s.Name)
		case p.Stages.Index(s.Name) < i:
			return p.fieldError(field, "%q is the name of stages[%d] already", s.Name, p.Stages.Index(s.Name))
		}
	}
	return nil
}

// checkAgent refuses an agent that says nothing, or too much.
func (p *Pipeline) checkAgent(field string, a *Agent) error {
	if a.Role == "" {
		return p.fieldError(field+".role", "is required: it says who the agent is")
	}

	for _, one := range agentParts(field, a) {
		if len(one.text) > MaxInstructions {
			return p.fieldError(one.field, "has %d bytes; at most %d are accepted", len(one.text), MaxInstructions)
		}
		t, err := template.Parse(one.text)
		if err != nil {
			return p.fieldError(one.field, "%s", err)
		}
		p.templates[one.field] = t
	}
	return nil
}

// A checker looks at the i-th stage. All stages before it are known to be right.
type checker struct {
	*Pipeline
	*Stage
	i int
}

// keyError returns an error about a key of the stage.
func (c *checker) keyError(key, format string, args ...any) error {
	return c.fieldError(stageField(c.i, key), format, args...)
}

// checkSources refuses a stage that reads a stage which does not exist or comes later.
func (c *checker) checkSources() error {
	sources := c.Sources()
	for n, source := range sources {
		at := c.Stages.Index(source)
		switch {
		case slices.Contains(sources[:n], source):
			return c.keyError("from", "names %q twice", source)
		case source == Documents && len(sources) > 1:
			return c.keyError("from", "documents always exist, so no other source can be an alternative to them; name them alone")
		case source == Documents:
		case source == c.Stage.Name:
			return c.keyError("from", "%q is this stage itself: a stage reads documents or earlier stages", source)
		case at > c.i:
			return c.keyError("from", "%q is a later stage: a stage reads documents or earlier stages, which here are %s", source, filetree.ListNames(append([]string{Documents}, c.earlierStages()...)))
		case at < 0:
			return c.keyError("from", "%.80q is neither documents nor an earlier stage%s", source, c.listEarlier(", which are "))
		}
	}

	if c.From == Documents && c.i > 0 && c.Stages[c.i-1].From != Documents {
		return c.keyError("from", "stages that read documents must stand before all others")
	}

	// Of several sources, the later ones are read if those before them are skipped.
	optional := c.Stages.optional()
	for _, source := range sources[:len(sources)-1] {
		if !optional[c.Stages.Index(source)] {
			return c.keyError("from", "%q is never skipped, so the sources after it would never be read; leave them out, or give that stage a condition (when)", source)
		}
	}
	return nil
}

// earlierStages returns the names of the stages before this one.
func (c *checker) earlierStages() []string {
	var names []string
	for _, s := range c.Stages[:c.i] {
		names = append(names, s.Name)
	}
	return names
}

// listEarlier returns the stages before this one behind some words, or says that there are none.
func (c *checker) listEarlier(words string) string {
	if names := c.earlierStages(); len(names) > 0 {
		return words + filetree.ListNames(names)
	}
	return ": there is none before it"
}

// checkEach refuses an each that is unknown, or that does not fit what the stage reads.
func (c *checker) checkEach() error {
	documents := c.From == Documents
	switch c.Each {
	case "":
		return c.keyError("each", "is required: it says what one unit gets: %s", eachForm)
	case EachDocument, EachChunk:
		if !documents {
			return c.keyError("each", "%s is for stages that read documents, and this one reads %s", c.Each, c.From)
		}
	case EachGroup:
		if documents {
			return c.keyError("each", "group is for stages that read the outputs of others, and this one reads documents")
		}
	case EachBatch, EachAgent, EachAll:
	default:
		if _, _, ok := c.ListPath(); !ok {
			return c.keyError("each", "%.80q is not one of %s", c.Each, eachForm)
		}
	}

	return nil
}

const eachForm = "document, chunk, batch, agent, group, all, or the path of a list as in STAGE.PATH"

// eachPath refuses a path that leads to no list.
func (c *checker) eachPath() error {
	stage, path, ok := c.ListPath()
	if !ok {
		return nil
	}

	if at := c.Stages.Index(stage); at < 0 || at >= c.i {
		return c.keyError("each", "%.80q is no earlier stage%s", stage, c.listEarlier(": those are "))
	}
	if c.From != stage {
		return c.keyError("from", "must be %s, whose list each names, or be left out", stage)
	}

	if _, err := c.Pipeline.Stage(stage).Output.listProperty(path); err != nil {
		return c.keyError("each", "%s has no list at %s: %s", stage, strings.Join(path, "."), err)
	}
	return nil
}

// listProperty returns the property that is the list at a path in outputs; nil for records,
// whose schema may be the run's.
func (o *Output) listProperty(path []string) (*schema.Property, error) {
	if o.Kind == OutputRecords {
		if len(path) != 1 || path[0] != OutputRecords {
			return nil, fmt.Errorf("its output is records, which have one list, records")
		}
		return nil, nil
	}
	if o.Kind == OutputReport && o.parsed == nil {
		return nil, fmt.Errorf("its output is a report, which is text")
	}
	if o.Kind == OutputPassages {
		if len(path) != 1 || path[0] != OutputPassages {
			return nil, fmt.Errorf("its output is passages, which have one list, passages")
		}
		return nil, nil
	}

	if o.parsed == nil {
		return nil, fmt.Errorf("its output has no schema that names one")
	}
	if o.parsed.Kind != schema.KindRecord {
		return nil, fmt.Errorf("its schema is a list without a name; make it an object with that list as a property")
	}

	inside := o.parsed.Properties
	for n, key := range path {
		at := slices.IndexFunc(inside, func(p schema.Property) bool { return p.Name == key })
		switch {
		case at < 0:
			return nil, fmt.Errorf("the schema has no %.80q there; it has %s", key, filetree.ListNames(propertyNames(inside)))
		case n == len(path)-1 && inside[at].Type != schema.Array:
			return nil, fmt.Errorf("%s is of type %s in the schema", key, inside[at].Type)
		case n == len(path)-1:
			return &inside[at], nil
		case inside[at].Type != schema.Object:
			return nil, fmt.Errorf("%s is of type %s in the schema, so it has no properties", key, inside[at].Type)
		}
		inside = inside[at].Properties
	}

	return nil, fmt.Errorf("the path is empty")
}

func propertyNames(all []schema.Property) []string {
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = p.Name
	}
	return names
}

// checkKeys refuses keys that mean nothing to a stage of this kind.
func (c *checker) checkKeys() error {
	for _, k := range []struct {
		key  string
		set  bool
		each string
	}{
		{"size", c.Size != 0 && c.Output.Kind != OutputPassages && !c.selectsDocuments(), EachBatch},
		{"order", c.Order != "", EachBatch},
		{"passage", c.Passage != 0 && c.Output.Kind != OutputPassages, EachBatch},
		{"tokens", c.Tokens != 0, EachBatch},
		{"agents", len(c.Stage.Agents) > 0, EachAgent},
		{"select", c.Select != "", EachAgent},
		{"merge", c.Merge != "", EachGroup},
		{"fold", c.Fold, EachGroup},
		{"strategy", c.Strategy != "", EachGroup},
		{"chunk_size", c.ChunkSize != nil, EachGroup},
		{"target_token_budget", c.TargetTokenBudget != nil, EachGroup},
		{"context_window", c.ContextWindow != nil, EachGroup},
		{"budget_ratio", c.BudgetRatio != nil, EachGroup},
		{"max_reduce_levels", c.MaxReduceLevels != nil, EachGroup},
		{"reduce_context_limit", c.ReduceContextLimit != nil, EachGroup},
		{"reduce_batch_size", c.ReduceBatchSize != nil, EachGroup},
	} {
		if k.set && c.Each != k.each {
			return c.keyError(k.key, "is only for stages with each: %s, and this one has each: %s", k.each, c.Each)
		}
	}

	switch {
	case c.Each == EachBatch && c.Size == 0:
		return c.keyError("size", "is required with each: batch: how many inputs one unit gets")
	case c.Order != "" && !order.MatchString(c.Order):
		return c.keyError("order", `must be the name of a field of the inputs, "relevance asc" or "relevance desc" for instance, and is %.80q`, c.Order)
	}

	return c.checkBatchedOutputs()
}

// selectsDocuments reports whether the units choose some of the documents that they read.
func (c *checker) selectsDocuments() bool {
	o := c.Output.parsed
	return o != nil && slices.ContainsFunc(o.Properties, func(p schema.Property) bool { return p.Hints.Select })
}

// checkBatchedOutputs refuses to sort outputs by a field that they cannot have, and to cut
// what is no text.
func (c *checker) checkBatchedOutputs() error {
	if c.Order == "" && c.Passage == 0 || c.From == Documents {
		return nil
	}

	if c.ReadsPassages(c.Stage) {
		if by, ok := c.Ordering(); ok && by.Field != "relevance" && by.Field != "size" {
			return c.keyError("order", "passages have relevance and size, and no %.80q", by.Field)
		}
		return nil
	}
	if c.Passage > 0 && (c.Output.Kind == OutputRecords) {
		return c.keyError("passage", "is for stages that read texts, and this one merges records of %s", c.From)
	}

	by, ok := c.Ordering()
	if !ok {
		return nil
	}

	for _, name := range c.Sources() {
		o := &c.Pipeline.Stage(name).Output
		if o.Kind != OutputItems {
			return c.keyError("order", "is for documents and items, which have fields, and %s makes %s", name, o.Kind)
		}
		if o.parsed != nil && !slices.ContainsFunc(o.parsed.Properties, func(p schema.Property) bool { return p.Name == by.Field }) {
			return c.keyError("order", "the schema of %s has no %.80q at its top; it has %s", name, by.Field, filetree.ListNames(propertyNames(o.parsed.Properties)))
		}
	}
	return nil
}

// checkOwn refuses an agent of the stage whose own tools or model cannot be had there.
func (c *checker) checkOwn(key string, a *Agent) error {
	for _, tool := range a.Tools {
		if !coversTool(c.Tools, tool) {
			return c.keyError(key, "%s may use %.80q, which is not among the tools of the stage: %s", a.Name, tool, filetree.ListNames(c.Tools))
		}
	}

	if a.Model != "" && !naming.IsWord(a.Model) {
		return c.keyError(key, "the model of %s must be provider/model or an alias, at most %d bytes without spaces, and is %.80q", a.Name, naming.MaxWord, a.Model)
	}
	if a.Model != "" && len(c.Tools) == 0 {
		return c.keyError(key, "%s has a model of its own, which only agents of a stage with tools have", a.Name)
	}
	return nil
}

// order names a field by which inputs are sorted, ascending unless it ends with desc.
var order = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}( (asc|desc))?$`)

// checkSelects refuses agents that there are not, and a selection out of no list of names.
func (c *checker) checkSelects() error {
	if c.Each != EachAgent {
		return nil
	}

	if len(c.Stage.Agents) == 0 {
		return c.keyError("agents", "is required: each: agent needs the names of the agents that may work")
	}

	for n, agent := range c.Stage.Agents {
		key := fmt.Sprintf("agents[%d]", n)
		switch {
		case c.Pipeline.Agents[agent] == nil:
			return c.keyError(key, "%.80q is none of the pipeline's agents: %s", agent, filetree.ListNames(slices.Sorted(maps.Keys(c.Pipeline.Agents))))
		case slices.Contains(c.Stage.Agents[:n], agent):
			return c.keyError(key, "%q is listed twice", agent)
		}
		if err := c.checkOwn(key, c.Pipeline.Agents[agent]); err != nil {
			return err
		}
	}

	if c.Select == SelectAll {
		return nil
	}

	stage, path, ok := c.SelectPath()
	if !ok {
		return c.keyError("select", "must be all, or the path of a list of names as in STAGE.PATH, and is %.80q", c.Select)
	}
	if at := c.Stages.Index(stage); at < 0 || at >= c.i {
		return c.keyError("select", "%.80q is no earlier stage: those are %s", stage, filetree.ListNames(c.earlierStages()))
	}
	if c.From == Documents {
		return c.keyError("select", "must be all in a stage that reads documents: if %s ran, it got the documents, and this stage does not run", stage)
	}

	list, err := c.Pipeline.Stage(stage).Output.listProperty(path)
	if err != nil {
		return c.keyError("select", "%s has no list at %s: %s", stage, strings.Join(path, "."), err)
	}

	if list == nil || list.Items == nil || list.Items.Type != schema.String {
		return c.keyError("select", "the list %s must be of strings, the names of agents", c.Select)
	}
	return nil
}

func (c *checker) checkCondition() error {
	when, err := condition.Parse(c.When)
	if err != nil {
		return c.keyError("when", "%s", err)
	}

	for _, name := range when.Stages() {
		switch at := c.Stages.Index(name); {
		case c.From == Documents:
			return c.keyError("when", "names the stage %s, and this one reads documents before any stage ran", name)
		case at < 0 || at >= c.i:
			return c.keyError("when", "%.80q is no earlier stage: those are %s", name, filetree.ListNames(c.earlierStages()))
		}
	}
	return nil
}

// checkPassages refuses keys that do not fit what passages are chosen out of, or for.
func (c *checker) checkPassages() error {
	chooses := c.Output.Kind == OutputPassages

	switch {
	case c.selectsDocuments() && (c.From != Documents || c.Each != EachAll):
		return c.keyError("output.schema", "the hint select chooses out of documents, in a stage from documents with each: all")
	case !chooses && c.Query != "" && len(c.Tools) == 0:
		return c.keyError("query", "is for stages with output: passages, or with tools, and this one makes %s", c.Output.Kind)
	case c.Check && (c.Output.Kind != OutputReport || c.Agent == nil):
		return c.keyError("check", "is for stages with output: report and an agent")
	case !chooses && c.ReadsPassages(c.Stage) && c.Each == EachGroup:
		return c.keyError("each", "group merges several outputs, but each passage is an input by itself; use batch or all")
	case !chooses && c.ReadsPassages(c.Stage) && (c.Output.Kind == OutputRecords || len(c.Sources()) > 1):
		return c.keyError("from", "passages must be the only source of a stage, and its output must be items, table or report")
	case !chooses && c.Query != "":
		return c.checkQuery()
	case !chooses:
		return nil
	case c.Output.Schema != nil:
		return c.keyError("output.schema", "must be left out: passages have a schema of their own")
	case len(c.Tools) > 0 && c.Each == EachBatch:
		return c.keyError("each", "batch cannot be combined with output: passages: size would mean both the size of a batch and the number of passages")
	case len(c.Tools) == 0 && (c.From != Documents || c.Each != EachDocument && c.Each != EachChunk):
		return c.keyError("output", "passages are chosen out of documents, with each: document or each: chunk; or by an agent with tools")
	case len(c.Tools) == 0 && c.Agent != nil:
		return c.keyError("output", "passages are chosen without an agent, unless it has tools")
	case len(c.Tools) == 0 && c.Query == "":
		return c.keyError("query", "is required: it says what passages are chosen for")
	}
	return c.checkQuery()
}

// checkQuery refuses a query that names what is not among the inputs of the run.
func (c *checker) checkQuery() error {
	t, err := template.Parse(c.Query)
	if err != nil {
		return c.keyError("query", "%s", err)
	}

	for _, v := range t.Variables() {
		if _, ok := c.Inputs[v.Name]; v.Space != template.Input || !ok {
			return c.keyError("query", "names %s, which is not among inputs: %s", v, filetree.ListNames(slices.Sorted(maps.Keys(c.Inputs))))
		}
	}

	c.templates[stageField(c.i, "query")] = t
	return nil
}

// checkTools refuses tools where no agent would use them, and limits of their use without
// tools.
func (c *checker) checkTools() error {
	switch {
	case len(c.Tools) == 0 && c.Limits.Turns != 0:
		return c.keyError("limits.turns", "is for stages with tools: an agent without tools takes one turn")
	case len(c.Tools) == 0 && c.Limits.ToolCalls != 0:
		return c.keyError("limits.tool_calls", "is for stages with tools")
	case len(c.Tools) == 0:
		return nil
	case c.Each == EachGroup:
		return c.keyError("tools", "are for stages whose agents find something; a group merges what others found")
	case c.Agent == nil && c.Each != EachAgent:
		return c.keyError("agent", "is required beside tools, and task: they say who uses the tools, and for what")
	case c.Output.Kind == OutputRecords && c.From != Documents:
		return c.keyError("output", "must be items, table, report or passages in a stage with tools that reads %s: records are found in documents", c.From)
	}
	return nil
}

// merges are the ways to merge; empty leaves it to the run.
var merges = []string{"", "typed", "model", "typed-then-model"}

// checkWords refuses words that are not among those that mean something, and names that
// cannot be names.
func (c *checker) checkWords() error {
	switch {
	case !slices.Contains(merges, c.Merge):
		return c.keyError("merge", "must be typed, model or typed-then-model, and is %.40q", c.Merge)
	case !slices.Contains([]string{"", "static", "adaptive"}, c.Strategy):
		return c.keyError("strategy", "must be static or adaptive, and is %.40q", c.Strategy)
	case !slices.Contains([]string{"", "continue", "fail-fast"}, c.OnError):
		return c.keyError("on_error", "must be continue or fail-fast, and is %.40q", c.OnError)
	case c.Model != "" && !naming.IsWord(c.Model):
		return c.keyError("model", "must be provider/model or an alias, at most %d bytes without spaces, and is %.80q", naming.MaxWord, c.Model)
	case len(c.Tools) > MaxTools:
		return c.keyError("tools", "there are %d; at most %d are accepted", len(c.Tools), MaxTools)
	}

	for n, tool := range c.Tools {
		key := fmt.Sprintf("tools[%d]", n)
		switch {
		case !naming.IsWord(tool):
			return c.keyError(key, "must be the name of a tool, at most %d bytes without spaces, and is %.80q", naming.MaxWord, tool)
		case slices.Contains(c.Tools[:n], tool):
			return c.keyError(key, "%q is listed twice", tool)
		}
	}
	return nil
}

// checkWork refuses a stage with an agent and no task, a task and no agent, or neither
// where it needs both.
func (c *checker) checkWork() error {
	if c.Each == EachAgent && c.Agent != nil {
		return c.keyError("agent", "cannot be set together with agents, which do the work")
	}

	agent := c.Agent != nil || c.Each == EachAgent
	switch {
	case agent && c.Task == nil:
		return c.keyError("task", "is required beside the agent: it says what to do")
	case !agent && c.Task != nil:
		return c.keyError("agent", "is required beside task: it says who does the work")
	case !agent && c.Output.Kind != OutputRecords && c.Output.Kind != OutputPassages && c.Merge != "typed":
		return c.keyError("agent", "is required, and so is task; only a stage with output: records, passages or report, or with merge: typed, needs neither")
	case c.Agent != nil && (len(c.Agent.Tools) > 0 && !slices.Equal(c.Agent.Tools, c.Tools) || c.Agent.Model != "" && c.Agent.Model != c.Model):
		return c.keyError("agent", "has tools or a model of its own, which only agents of a stage with each: agent have; set them in the stage")
	case c.Agent != nil && c.Agent.Name != "" && c.Pipeline.Agents[c.Agent.Name] == nil:
		return c.keyError("agent", "%.80q is none of the pipeline's agents: %s", c.Agent.Name, filetree.ListNames(slices.Sorted(maps.Keys(c.Pipeline.Agents))))
	case c.Task != nil && c.Task.Description == "":
		return c.keyError("task.description", "is required: it says what to do")
	case len(c.Examples) > 0 && (c.From != Documents || c.Output.Kind != OutputRecords):
		return c.keyError("examples", "belong to stages that find records in documents; this stage makes %s from %s", c.Output.Kind, c.From)
	case len(c.Examples) > maxExamples:
		return c.keyError("examples", "there are %d; at most %d are accepted", len(c.Examples), maxExamples)
	}

	// An agent with a name is checked with the others of the pipeline.
	if c.Agent == nil || c.Agent.Name != "" {
		return nil
	}
	return c.checkAgent(stageField(c.i, "agent"), c.Agent)
}

func (c *checker) checkOutput() error {
	o := &c.Output
	switch {
	case !slices.Contains([]string{OutputRecords, OutputItems, OutputTable, OutputReport, OutputPassages}, o.Kind):
		return c.keyError("output", "must be records, items, table, report or passages, and is %.40q", o.Kind)
	case o.File != "" && (o.Kind != OutputReport || c.Stages.isRead(c.i)):
		return c.keyError("output.file", "is for a report that is the result: of a stage that no other stage reads")
	case o.File != "" && !reportFile.MatchString(o.File):
		return c.keyError("output.file", "must be a name such as report_XXXXX.md: letters, digits, - and _, once 5 to 16 X for what differs, then .md; it is %.80q", o.File)
	case o.Kind == OutputReport && o.parsed != nil && o.parsed.Kind != schema.KindRecord:
		return c.keyError("output.schema", "must be of an object, whose properties are the sections of the report")
	case o.Kind == OutputItems && o.parsed != nil && o.parsed.Kind != schema.KindRecord:
		return c.keyError("output.schema", "must be of an object, in which items are lists")
	}
	return nil
}

// checkGroup refuses a group of outputs of different forms.
func (c *checker) checkGroup() error {
	if c.Each != EachGroup {
		return nil
	}

	first := c.Pipeline.Stage(c.Sources()[0])
	for _, source := range c.Sources()[1:] {
		if s := c.Pipeline.Stage(source); s.Output.Kind != first.Output.Kind || !bytes.Equal(s.Output.Schema, first.Output.Schema) {
			return c.keyError("from", "a group needs inputs with the same output and schema; %s makes %s, %s makes %s", first.Name, first.Output.Kind, s.Name, s.Output.Kind)
		}
	}

	switch {
	case c.Output.Kind != first.Output.Kind:
		return c.keyError("output", "a group merges several outputs into one of the same kind: it must be %s, as in stage %s, and not %s", first.Output.Kind, first.Name, c.Output.Kind)
	case !bytes.Equal(c.Output.Schema, first.Output.Schema):
		return c.keyError("output.schema", "a group merges several outputs into one with the same schema: it must be that of stage %s, or be left out", first.Name)
	}
	return nil
}

// checkTree refuses settings of a tree that exclude each other.
func (c *checker) checkTree() error {
	static := c.Strategy == "static" || c.ChunkSize != nil
	adaptive := c.Strategy == "adaptive" || c.TargetTokenBudget != nil || c.ContextWindow != nil || c.BudgetRatio != nil || c.MaxReduceLevels != nil
	batches := c.ReduceContextLimit != nil || c.ReduceBatchSize != nil

	switch {
	case static && adaptive:
		return c.keyError("strategy", "chunk_size is for a static tree; target_token_budget, context_window, budget_ratio and max_reduce_levels are for an adaptive one")
	case batches && (static || adaptive):
		return c.keyError("strategy", "reduce_context_limit and reduce_batch_size are for a tree without a strategy")
	case c.TargetTokenBudget != nil && c.ContextWindow != nil:
		return c.keyError("context_window", "cannot be set together with target_token_budget: both say the budget")
	case c.BudgetRatio != nil && c.ContextWindow == nil:
		return c.keyError("budget_ratio", "needs context_window, which it is a part of")
	}
	return nil
}

// checkTexts refuses templates with variables that the stage's units do not have.
func (c *checker) checkTexts() error {
	parts := c.stageParts(c.i)
	own := len(parts)
	for _, agent := range c.Stage.Agents {
		parts = append(parts, agentParts("agents."+agent, c.Pipeline.Agents[agent])...)
	}

	for i, one := range parts {
		// Texts of the pipeline's agents have a bound of their own.
		if i < own && len(one.text) > maxText && !strings.HasSuffix(one.field, ".instructions") {
			return c.fieldError(one.field, "has %d bytes; at most %d are accepted", len(one.text), maxText)
		}
		t, err := template.Parse(one.text)
		if err != nil {
			return c.fieldError(one.field, "%s", err)
		}
		if err := c.checkVariables(one.field, t); err != nil {
			return err
		}
		c.templates[one.field] = t
	}
	return nil
}

// checkVariables refuses variables that the templates of the stage cannot have.
func (c *checker) checkVariables(field string, t template.Template) error {
	for _, v := range t.Variables() {
		if !slices.Contains(c.variableSpaces(), v.Space) {
			return c.fieldError(field, "names %s, and templates of the stage %s know %s alone", v, c.Stage.Name, strings.Join(c.variableSpaces(), " and "))
		}
		if _, ok := c.Inputs[v.Name]; v.Space == template.Input && !ok {
			return c.fieldError(field, "names %s, which is not among inputs: %s", v, filetree.ListNames(slices.Sorted(maps.Keys(c.Inputs))))
		}
		if of := c.Pipeline.Stage(v.Name); v.Space == template.OfAgents && (of == nil || of.Each != EachAgent) {
			return c.fieldError(field, "names %s, and no stage %s has each: agent", v, v.Name)
		}
	}

	return nil
}

// checkGraph refuses stages that never run, and results that nobody puts together.
func (p *Pipeline) checkGraph() error {
	documents := p.Stages.OfDocuments()
	for i, s := range documents[:len(documents)-1] {
		if s.When == "" {
			return p.fieldError(stageField(i, "when"), "is required: the first stage whose condition holds gets the documents, so a stage without a condition must be the last of them")
		}
	}

	for i, s := range p.Stages {
		if !p.Stages.isRead(i) && s.Each != EachAll && s.Each != EachGroup {
			return p.fieldError(stageField(i, "each"), "must be all or group in a stage that no other reads: the result is one output")
		}
	}
	return nil
}

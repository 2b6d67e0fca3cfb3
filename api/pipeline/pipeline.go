// Package pipeline reads pipeline files, in YAML or JSON. A pipeline is a list of
// stages. Each stage says what it reads, what one of its units gets, who does the work,
// and what the stage produces. The texts of agents and tasks are templates; a template
// can contain variables of the item and of the run, and nothing else.
//
// The package also holds the pipelines that come with the program, as files; package
// agentfile reads the files that agents may have of their own. It is pure. It imports nothing of the project but api/errs, api/parameters, and api/schema to
// check outputs and examples.
package pipeline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/api/pipeline/cascading"
	"github.com/coditect/mapreduce/api/pipeline/condition"
	"github.com/coditect/mapreduce/api/pipeline/internal/filetree"
	"github.com/coditect/mapreduce/api/pipeline/internal/template"
	"github.com/coditect/mapreduce/api/pipeline/waiting"
	"github.com/coditect/mapreduce/api/schema"
)

// MaxBytes bounds a pipeline in its canonical form: the record of a job holds it.
const MaxBytes = 48 << 10

// A Pipeline is a pipeline file that was checked. It does not change.
type Pipeline struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Inputs are the variables that a run gives, each with its default. A nil
	// default means that the run has to give the variable.
	Inputs map[string]*string `json:"inputs,omitempty"`
	// Agents are agents that stages refer to by name.
	Agents map[string]*Agent `json:"agents,omitempty"`
	// Stages are in the order of the file.
	Stages Stages `json:"stages"`
	// Advice is for runs over few documents, or over many.
	Advice []Advice `json:"advice,omitempty"`
	// Deadline is how long a run may take that asks models, such as 4h30m, unless it says so itself, or names a
	// tier; empty is no bound.
	Deadline string `json:"deadline,omitempty"`

	file      string
	root      *filetree.Node               // of the file, for the lines of faults
	templates map[string]template.Template // by field, such as stages[0].agent.role
}

// An Advice is a text for the owner of a run, given if a condition holds on the number of
// its
// documents. The run goes on.
type Advice struct {
	When string `json:"when"` // see condition.Parse; of count alone
	Text string `json:"text"`
}

// AdviceFor returns the advice for a run over so many documents.
func (p *Pipeline) AdviceFor(documents int64) (all []string) {
	for _, a := range p.Advice {
		if when, err := condition.Parse(a.When); err == nil && when.Holds(documents, 0, 0) {
			all = append(all, a.Text)
		}
	}
	return all
}

// Due returns by when a run is to end that begins at a moment; the zero time if the pipeline does not say.
func (p *Pipeline) Due(begun time.Time) time.Time {
	takes, err := time.ParseDuration(p.Deadline)
	if err != nil { // there is none: others are refused when the pipeline is read
		return time.Time{}
	}
	return begun.Add(takes)
}

// A Stage is one step of a pipeline. Its units all do the same, each over its own part
// of what the stage reads.
type Stage struct {
	Name string `json:"name"`
	// From is what the stage reads: Documents, an earlier stage, or alternatives
	// joined by " or ". The first alternative that was not skipped counts.
	From string `json:"from"`
	// Each says what one unit gets: one of the Each constants, or the path of a list
	// in the output of an earlier stage, as in plan.sources; a unit then gets one
	// element of the list.
	Each string `json:"each"`

	// Size, Order, Passage and Tokens are of EachBatch: the inputs of one unit; how
	// inputs are sorted, empty if not; the characters that are kept of an input's text,
	// 0 if all are; and the tokens of the inputs of one unit, 0 for any number. Size and
	// Passage are of OutputPassages as well: the passages that one unit chooses at most,
	// and the characters that one of them has about.
	Size    int64  `json:"size,omitempty"`
	Order   string `json:"order,omitempty"`
	Passage int64  `json:"passage,omitempty"`
	Tokens  int64  `json:"tokens,omitempty"`

	// Query is of OutputPassages: what passages are chosen for, a template over the
	// inputs of the run.
	Query string `json:"query,omitempty"`

	// Progress is noted in the trail of the job when the stage begins; empty for nothing
	// but the number of its units.
	Progress string `json:"progress,omitempty"`

	// Check says that the claims of a report are checked by the model that wrote it, and
	// not only by what can be computed.
	Check bool `json:"check,omitempty"`

	// Agents and Select are of EachAgent: the names of the agents that may work, and
	// which of them do: all, or those that a list in an earlier output names.
	Agents []string `json:"agents,omitempty"`
	Select string   `json:"select,omitempty"`

	// When is a condition on what the stage reads; see condition.Parse. A stage whose
	// condition does not hold is skipped.
	When string `json:"when,omitempty"`

	Agent    *Agent    `json:"agent,omitempty"` // nil if the schema alone says what to do
	Task     *Task     `json:"task,omitempty"`  // likewise
	Examples []Example `json:"examples,omitempty"`

	Model string `json:"model,omitempty"` // provider/model, or an alias that the run resolves; empty is the run's
	// Parameters are those of the model's answers. What they leave out is the run's.
	Parameters parameters.Set `json:"parameters,omitzero"`

	cascading.Cascade // who does the units, where several may

	// Review says which values wait for a person.
	Review waiting.Rule `json:"review,omitzero"`

	Output Output   `json:"output"`
	Tools  []string `json:"tools,omitempty"` // the names of the tools that an agent may use; one with OptionalTool where a worker has it
	Limits Limits   `json:"limits,omitzero"`

	Parallel int64  `json:"parallel,omitempty"` // units at a time; 0 is the run's
	OnError  string `json:"on_error,omitempty"` // continue or fail-fast; empty is the run's

	// The fields below are of EachGroup. Merge says who merges; empty is the run's.
	// Fold has inputs read in their order, with a scratchpad. The others are the flags
	// of the run of the same names; empty and nil are the run's.
	Merge              string   `json:"merge,omitempty"`
	Fold               bool     `json:"fold,omitempty"`
	Strategy           string   `json:"strategy,omitempty"`
	ChunkSize          *int64   `json:"chunk_size,omitempty"`
	TargetTokenBudget  *int64   `json:"target_token_budget,omitempty"`
	ContextWindow      *int64   `json:"context_window,omitempty"`
	BudgetRatio        *float64 `json:"budget_ratio,omitempty"`
	MaxReduceLevels    *int64   `json:"max_reduce_levels,omitempty"`
	ReduceContextLimit *int64   `json:"reduce_context_limit,omitempty"`
	ReduceBatchSize    *int64   `json:"reduce_batch_size,omitempty"`

	// Settings are the keys that inputs of the run set, each as the template that the
	// file has: see Bind.
	Settings map[string]string `json:"-"`
}

// Documents is the name under which stages read the documents of the job.
const Documents = "documents"

// The values of Each: what one unit of a stage gets.
const (
	EachDocument = "document" // one document, whole
	EachChunk    = "chunk"    // one document, or a part of one that is too long
	EachBatch    = "batch"    // several inputs
	EachAgent    = "agent"    // all inputs; there is one unit for each agent
	EachGroup    = "group"    // several outputs, level by level until one is left
	EachAll      = "all"      // all inputs; there is one unit
)

// The kinds of outputs.
const (
	OutputRecords = "records" // records of a schema, the run's unless the stage has one
	OutputItems   = "items"   // an object of the stage's schema
	OutputTable   = "table"   // rows of the stage's schema
	OutputReport  = "report"  // a text, or its sections by the stage's schema
	// OutputPassages are places of documents, chosen for a query. A stage that reads
	// them has each passage as an input.
	OutputPassages = "passages"
)

// An Output is the form of the output of each unit of a stage.
type Output struct {
	Kind string
	// Schema is the canonical JSON of the schema of the output; nil if the stage
	// names none. Records are those of the run's schema then.
	Schema json.RawMessage
	// File is the name of a file of its own that a report gets among the results, as in
	// report_XXXXX.md: what stands in place of the X follows from the report. It is empty if
	// the report gets none.
	File string

	parsed *schema.Schema
}

// FileName returns the name of the file of a report by a code, of which at least as many
// characters are used as the name has X; more says how many more.
func (o Output) FileName(code string, more int) string {
	at := fileCode.FindStringIndex(o.File)
	if at == nil {
		return o.File
	}
	return o.File[:at[0]] + code[:min(len(code), at[1]-at[0]+more)] + o.File[at[1]:]
}

// reportFile is the form of the name of a file; fileCode is the part of it that differs.
var (
	reportFile = regexp.MustCompile(`^[A-WYZa-z0-9][A-WYZa-z0-9_-]{0,40}X{5,16}[A-WYZa-z0-9_-]{0,20}\.md$`)
	fileCode   = regexp.MustCompile(`X{5,16}`)
)

// TopicInput returns the name of the input that says what the pipeline is about: topic, or else
// question; false if it has neither.
func (p *Pipeline) TopicInput() (name string, ok bool) {
	for _, name := range []string{"topic", "question"} {
		if _, ok := p.Inputs[name]; ok {
			return name, true
		}
	}
	return "", false
}

// ReportFile returns the output of the stage whose report gets a file of its own, if there is
// one.
func (p *Pipeline) ReportFile() (Output, bool) {
	for _, s := range p.Stages {
		if s.Output.File != "" {
			return s.Output, true
		}
	}
	return Output{}, false
}

// MarshalJSON writes an output as pipeline files have it: the kind alone if there is
// nothing else.
func (o Output) MarshalJSON() ([]byte, error) {
	if o.Schema == nil && o.File == "" {
		return json.Marshal(o.Kind)
	}
	var b bytes.Buffer
	err := filetree.EncodeJSON(&b, struct {
		Kind   string          `json:"kind"`
		File   string          `json:"file,omitempty"`
		Schema json.RawMessage `json:"schema,omitempty"`
	}{o.Kind, o.File, o.Schema})
	return b.Bytes(), err
}

// Limits end the work of one unit. Zero is the run's limit, or none.
type Limits struct {
	Turns     int64  `json:"turns,omitempty"`      // of a model
	ToolCalls int64  `json:"tool_calls,omitempty"` // in all turns
	Tokens    int64  `json:"tokens,omitempty"`     // in and out, of all turns
	Time      string `json:"time,omitempty"`       // as time.ParseDuration reads it
	Context   int64  `json:"context,omitempty"`    // bytes that a prompt may have
}

// limitsWith are limits whose context an input of the run sets.
type limitsWith struct {
	Limits

	Context string `json:"context"` // in place of the field of the same name
}

// An Agent does the work of a stage. Its texts are templates.
type Agent struct {
	// Name is the agent's name among Pipeline.Agents; empty for an agent that is
	// defined in its stage.
	Name string `json:"-"`

	Role       string `json:"role,omitempty"`
	Goal       string `json:"goal,omitempty"`
	Background string `json:"background,omitempty"`
	// Instructions are given to the agent beside its task, as the file of an agent has
	// them.
	Instructions string `json:"instructions,omitempty"`

	// The fields below are of agents of stages with each: agent. Description says when the
	// agent is of use. Tools are those of the stage's that it may use; nil is all of them.
	// Model is one of the stage's provider, as Stage.Model; empty is the stage's.
	Description string   `json:"description,omitempty"`
	Tools       []string `json:"tools,omitempty"`
	Model       string   `json:"model,omitempty"`
}

// A Task is the work of a stage. Its texts are templates.
type Task struct {
	Description string `json:"description,omitempty"`
	Expected    string `json:"expected_output,omitempty"`
}

// An Example shows the records to find in a text.
type Example struct {
	Document string `json:"document"`
	// Records are the records of the text; a schema of one record has one.
	Records []Record `json:"records"`
}

// A Record holds the findings of an example, by the path of their field.
type Record map[string][]Finding

// A Finding is a value, and the passage of the example's document that shows it.
type Finding struct {
	Value any    `json:"value"`
	Quote string `json:"quote"`
}

// Parse reads a pipeline file. The name is used in messages. An error is of kind
// Invalid: its field is the key that is wrong, its operation names file and line.
func Parse(file string, data []byte) (*Pipeline, error) {
	p, err := parseFile(file, data)
	if err != nil {
		return nil, err
	}
	return p, p.checkUnreserved()
}

// parseFile reads a pipeline file whatever the pipeline's name is.
func parseFile(file string, data []byte) (*Pipeline, error) { return parseFound(file, data, nil) }

// parseFound is parseFile for a file that names agents which find finds; nil finds none.
func parseFound(file string, data []byte, find func(name string) (*Agent, error), given ...*Agent) (*Pipeline, error) {
	r := newReader(file)
	if len(data) > 4*MaxBytes {
		r.RecordFault("pipeline", 0, "has %d bytes; at most %d are accepted", len(data), MaxBytes)
		return nil, r.Err
	}

	p := &Pipeline{file: file, root: r.ReadTree(data)}
	if r.Err == nil {
		r.readPipeline(p.root, p)
	}
	if r.Err != nil {
		return nil, r.Err
	}

	made := draft{p}
	if find != nil {
		if err := made.findAgents(find, given); err != nil {
			return nil, err
		}
	}

	// All agents are known now, so stages can take defaults from theirs.
	made.fillDefaults()
	if err := p.bindDefaults(); err != nil {
		return nil, err
	}
	if err := p.checkStages(); err != nil {
		return nil, err
	}

	if n := len(p.Canonical()); n > MaxBytes {
		return nil, p.fieldError("pipeline", "has %d bytes as JSON; at most %d are accepted%s", n, MaxBytes, adviseShorter(p))
	}

	return p, nil
}

// adviseShorter says what to do about a pipeline that is too long for its agents: the instructions of each are
// stored with the job. It is empty if they are less than half of it.
func adviseShorter(p *Pipeline) string {
	longest, most, total := "", 0, 0
	for _, name := range slices.Sorted(maps.Keys(p.Agents)) {
		raw, err := json.Marshal(p.Agents[name])
		if err != nil {
			return ""
		}
		if total += len(raw); len(raw) > most {
			longest, most = name, len(raw)
		}
	}

	if total < MaxBytes/2 {
		return ""
	}
	return fmt.Sprintf(": %d are of its %d agents, so name fewer in agents, or shorten the longest, %s (%d bytes)", total, len(p.Agents), longest, most)
}

// fieldError returns an error about a field of the pipeline, with the line of the file.
func (p *Pipeline) fieldError(field, format string, args ...any) error {
	r := newReader(p.file)
	line := 0
	if field != "pipeline" {
		line = p.root.LineOf(field)
	}
	r.RecordFault(field, line, format, args...)
	return r.Err
}

// Locate returns an error about a key of a stage with the line of the file; ok is false if
// err is about something else.
func (p *Pipeline) Locate(err error) (located error, ok bool) {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || !strings.HasPrefix(e.Field, "stages[") {
		return nil, false
	}
	return p.fieldError(e.Field, "%s", e.Message), true
}

// A draft is a pipeline as its file has it, which is yet to be completed.
type draft struct{ *Pipeline }

// fillDefaults sets the keys that the file leaves out to their defaults.
func (p draft) fillDefaults() {
	for i, s := range p.Stages {
		if s.From == "" {
			s.From = Documents
			if stage, _, ok := s.ListPath(); ok {
				s.From = stage
			} else if i > 0 {
				s.From = p.Stages[i-1].Name
			}
		}

		s.From = strings.Join(s.Sources(), " or ")
		if s.Agent != nil && s.Agent.Name != "" && p.Agents[s.Agent.Name] != nil {
			s.Agent = p.Agents[s.Agent.Name]
		}

		if s.Each == EachAgent && s.Select == "" {
			s.Select = SelectAll
		}

		p.completeOutput(s)
		p.completeReport(s)
		s.setCascade(s.Cascade)
	}
}

// completeOutput sets a missing output: for a group to the output of its source, and
// for any other stage to records.
func (p draft) completeOutput(s *Stage) {
	source := p.Stage(s.Sources()[0])
	if s.Each == EachGroup && source != nil && s.Output.Schema == nil {
		if s.Output.Kind == "" || s.Output.Kind == source.Output.Kind {
			// The file of its own is not the source's.
			own := s.Output.File
			s.Output = source.Output
			s.Output.File = own
		}
	}

	if s.Output.Kind == "" {
		s.Output.Kind = OutputRecords
	}
}

// completeReport sets who writes a report, and how, if the stage says neither: the sections are
// in its schema, and the rest is the same for every report.
func (p draft) completeReport(s *Stage) {
	if s.Output.Kind != OutputReport || s.Agent != nil || s.Task != nil || s.Each == EachAgent || s.Merge != "" {
		return
	}

	goal := "Report what the inputs say, and nothing else"
	if _, asked := p.Inputs["question"]; asked {
		goal = "Answer this question by the inputs alone: {{input.question}}"
	}
	s.Agent = &Agent{Role: "Writer of reports", Goal: goal}
	s.Task = &Task{
		Description: "Write a report of what you are given, and of nothing else. Behind each statement stand the references " +
			"that it rests on, spelled as in the list of references; use no other. Where the inputs disagree, say so with " +
			"the references of both sides. Do not state what no input says. Do not begin with a heading.",
	}
}

// SelectAll selects all agents of a stage.
const SelectAll = "all"

// Canonical returns the pipeline as JSON, the same for equal pipelines. Parse makes
// an equal pipeline of it.
func (p *Pipeline) Canonical() []byte {
	var b bytes.Buffer
	if filetree.EncodeJSON(&b, p) != nil {
		return nil // it was decoded, so that it can be encoded
	}
	return b.Bytes()
}

// setting returns a number as the file has it: the template that an input of the run
// fills, or the number; nil for none.
func (s *Stage) setting(key string, number int64) any {
	switch text := s.Settings[key]; {
	case text != "":
		return text
	case number == 0:
		return nil
	}
	return number
}

// MarshalJSON writes a stage as pipeline files have it: an agent that has a name is
// referred to by its name.
func (s *Stage) MarshalJSON() ([]byte, error) {
	type fields Stage // without this method
	named := struct {
		*fields
		// These stand in place of the fields of the same names.
		Agent     any `json:"agent,omitempty"`
		Size      any `json:"size,omitempty"`
		Passage   any `json:"passage,omitempty"`
		Tokens    any `json:"tokens,omitempty"`
		ChunkSize any `json:"chunk_size,omitempty"`
		When      any `json:"when,omitempty"`
		Limits    any `json:"limits,omitempty"`
	}{
		fields: (*fields)(s), Size: s.setting("size", s.Size), Passage: s.setting("passage", s.Passage), Tokens: s.setting("tokens", s.Tokens),
		When: s.Settings["when"],
	}

	if s.ChunkSize != nil {
		named.ChunkSize = s.setting("chunk_size", *s.ChunkSize)
	}

	if named.When == "" {
		named.When = s.When
	}
	if named.When == "" {
		named.When = nil
	}

	switch text := s.Settings[limitsContext]; {
	case text != "":
		named.Limits = limitsWith{Limits: s.Limits, Context: text}
	case s.Limits != Limits{}:
		named.Limits = s.Limits
	}

	switch {
	case s.Agent == nil:
	case s.Agent.Name != "":
		named.Agent = s.Agent.Name
	default:
		named.Agent = s.Agent
	}

	var b bytes.Buffer
	err := filetree.EncodeJSON(&b, named)
	return b.Bytes(), err
}

// Stage returns the stage of a name, or nil.
func (p *Pipeline) Stage(name string) *Stage {
	if i := p.Stages.Index(name); i >= 0 {
		return p.Stages[i]
	}
	return nil
}

// Sources returns Documents, or the names of the stages that the stage may read. The
// first of these that was not skipped counts.
func (s *Stage) Sources() []string {
	all := strings.Split(s.From, " or ")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

// FansOut reports whether the stage has as many units as there are inputs, elements,
// batches or agents, which is known when it begins.
func (s *Stage) FansOut() bool {
	switch s.Each {
	case EachDocument, EachChunk, EachBatch, EachAgent:
		return true
	}
	_, _, ok := s.ListPath()
	return ok
}

// ListPath returns the stage and the path of the list in its output that Each names.
func (s *Stage) ListPath() (stage string, path []string, ok bool) { return splitPath(s.Each) }

// SelectPath returns the stage and the path of the list in its output that Select
// names.
func (s *Stage) SelectPath() (stage string, path []string, ok bool) { return splitPath(s.Select) }

func splitPath(text string) (stage string, path []string, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) < 2 || slices.Contains(parts, "") {
		return "", nil, false
	}
	return parts[0], parts[1:], true
}

// Reserves reports whether the id of a document equals, or begins like, the id of a
// unit that is not of one document.
func (p *Pipeline) Reserves(documentID string) bool {
	if documentID == "final" || strings.HasPrefix(documentID, "parse_") {
		return true
	}
	for _, s := range p.Stages {
		rest, ok := strings.CutPrefix(documentID, s.Name)
		if ok && s.Each != EachDocument && s.Each != EachChunk && numbered.MatchString(rest) {
			return true
		}
	}
	return false
}

// numbered matches the part of a unit's id after the name of its stage.
var numbered = regexp.MustCompile(`^(_[0-9]|_L[0-9]+_[0-9]|$)`)

// stageField names a key of the i-th stage.
func stageField(i int, key string) string { return fmt.Sprintf("stages[%d].%s", i, key) }

// OptionalTool ends the name of a tool in a stage whose units run without it as well.
const OptionalTool = "?"

// RequiredTools returns the tools without which units of the stage cannot run.
func (s *Stage) RequiredTools() []string {
	return slices.DeleteFunc(slices.Clone(s.Tools), func(name string) bool { return strings.HasSuffix(name, OptionalTool) })
}

// GoesByBatch reports whether calls of units of the stage go by batch, in a job with the given
// variables, which say so for stages that say nothing.
func (s *Stage) GoesByBatch(vars map[string]string) bool {
	return cmp.Or(s.Parameters.Tier, vars[string(parameters.Tier)]) == parameters.Batch
}

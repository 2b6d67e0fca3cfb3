package pipeline

import (
	"bytes"
	"errors"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/api/pipeline/internal/filetree"
	"github.com/coditect/mapreduce/api/pipeline/internal/naming"
	"github.com/coditect/mapreduce/api/schema"
)

// A reader turns a file into a pipeline. It keeps the first fault that it meets.
type reader struct{ *filetree.Reader }

func newReader(file string) reader { return reader{&filetree.Reader{File: file}} }

// readPipeline reads a whole file.
func (r reader) readPipeline(n *filetree.Node, p *Pipeline) {
	r.ReadMapping(n, "", map[string]filetree.Entry{
		"name": r.ReadText(&p.Name), "description": r.ReadText(&p.Description),
		"inputs": func(n *filetree.Node, at string) { r.readInputs(n, at, p) },
		"agents": func(n *filetree.Node, at string) { r.readAgents(n, at, p) },
		"advice": func(n *filetree.Node, at string) {
			r.ReadList(n, at, func(n *filetree.Node, at string) {
				var a Advice
				r.ReadMapping(n, at, map[string]filetree.Entry{"when": r.ReadText(&a.When), "text": r.ReadText(&a.Text)})
				p.Advice = append(p.Advice, a)
			})
		},
		"deadline": r.readDuration(&p.Deadline),
		"stages": func(n *filetree.Node, at string) {
			if len(n.Items) > maxStages {
				r.RecordFault(at, n.Line, "there are %d; at most %d are accepted", len(n.Items), maxStages)
				return
			}
			r.ReadList(n, at, func(n *filetree.Node, at string) { p.Stages = append(p.Stages, r.readStage(n, at)) })
		},
	})
}

func (r reader) readInputs(n *filetree.Node, at string, p *Pipeline) {
	if n.Kind != yaml.MappingNode {
		r.RecordFault(at, n.Line, "must be a mapping, and is %s", n)
		return
	}

	p.Inputs = make(map[string]*string, len(n.Keys))
	for i, key := range n.Keys {
		if !naming.IsName(key.Text) {
			r.RecordFault(at, key.Line, "%.80q must be %s", key.Text, naming.Rule)
			return
		}

		if n.Items[i].Tag == "!!null" { // the run has to give it
			p.Inputs[key.Text] = nil
			continue
		}

		value := new(string)
		r.ReadText(value)(n.Items[i], filetree.JoinKey(at, key.Text))
		p.Inputs[key.Text] = value
	}
}

func (r reader) readAgents(n *filetree.Node, at string, p *Pipeline) {
	if n.Kind != yaml.MappingNode {
		r.RecordFault(at, n.Line, "must be a mapping, and is %s", n)
		return
	}

	p.Agents = make(map[string]*Agent, len(n.Keys))
	for i, key := range n.Keys {
		if !naming.IsName(key.Text) {
			r.RecordFault(at, key.Line, "%.80q must be %s", key.Text, naming.Rule)
			return
		}

		a := &Agent{Name: key.Text}
		r.readAgent(n.Items[i], filetree.JoinKey(at, key.Text), a)
		p.Agents[key.Text] = a
	}
}

func (r reader) readAgent(n *filetree.Node, at string, a *Agent) {
	r.ReadMapping(n, at, map[string]filetree.Entry{
		"role": r.ReadText(&a.Role), "goal": r.ReadText(&a.Goal), "background": r.ReadText(&a.Background), "instructions": r.ReadText(&a.Instructions),
		"description": r.ReadText(&a.Description), "tools": r.ReadTexts(&a.Tools), "model": r.ReadText(&a.Model),
	})
}

func (r reader) readStage(n *filetree.Node, at string) *Stage {
	s := &Stage{Output: Output{}}

	r.ReadMapping(n, at, map[string]filetree.Entry{
		"name": r.ReadText(&s.Name), "from": r.ReadText(&s.From), "each": r.ReadText(&s.Each),
		"size": r.readSetting(s, "size", r.ReadNumber(&s.Size, 1)), "order": r.ReadText(&s.Order),
		"passage": r.readSetting(s, "passage", r.ReadNumber(&s.Passage, 1)), "tokens": r.readSetting(s, "tokens", r.ReadNumber(&s.Tokens, 1)),
		"query": r.ReadText(&s.Query), "progress": r.ReadText(&s.Progress), "check": r.ReadFlag(&s.Check),
		"agents": r.ReadTexts(&s.Agents), "select": r.ReadText(&s.Select), "when": r.readSetting(s, "when", r.ReadText(&s.When)),
		"agent": func(n *filetree.Node, at string) { r.stageAgent(n, at, s) },
		"task":  func(n *filetree.Node, at string) { r.readTask(n, at, s) },
		"examples": func(n *filetree.Node, at string) {
			r.ReadList(n, at, func(n *filetree.Node, at string) { s.Examples = append(s.Examples, r.readExample(n, at)) })
		},
		"model": r.ReadText(&s.Model), "parameters": func(n *filetree.Node, at string) { r.readParameters(n, at, &s.Parameters) },
		"cascade": r.ReadTexts(&s.Members), "target": r.readShare(&s.Target), "confidence": r.readShare(&s.Confidence),
		"per": r.ReadText(&s.Per), "seed": r.ReadNumber(&s.Seed, 1), "kind": r.ReadText(&s.Kind),
		"review": func(n *filetree.Node, at string) { r.readReview(n, at, &s.Review) },
		"output": func(n *filetree.Node, at string) { r.readOutput(n, at, s) },
		"tools":  r.ReadTexts(&s.Tools), "limits": func(n *filetree.Node, at string) { r.readLimits(n, at, s) },
		"parallel": r.ReadNumber(&s.Parallel, 1), "on_error": r.ReadText(&s.OnError),
		"merge": r.ReadText(&s.Merge), "fold": r.ReadFlag(&s.Fold), "strategy": r.ReadText(&s.Strategy),
		"chunk_size": r.readSetting(s, "chunk_size", r.ReadOption(&s.ChunkSize, 2)), "target_token_budget": r.ReadOption(&s.TargetTokenBudget, 1),
		"context_window": r.ReadOption(&s.ContextWindow, 1), "budget_ratio": r.ReadRatio(&s.BudgetRatio),
		"max_reduce_levels":    r.ReadOption(&s.MaxReduceLevels, 1),
		"reduce_context_limit": r.ReadOption(&s.ReduceContextLimit, 1), "reduce_batch_size": r.ReadOption(&s.ReduceBatchSize, 2),
	})

	return s
}

// readShare reads a number above 0 and below 1.
func (r reader) readShare(to *float64) filetree.Entry {
	return func(n *filetree.Node, at string) {
		v, err := strconv.ParseFloat(n.Text, 64)
		if n.Tag != "!!int" && n.Tag != "!!float" || err != nil || !(v > 0 && v < 1) {
			r.RecordFault(at, n.Line, "must be more than 0 and less than 1, such as 0.95, and is %s", n)
			return
		}
		*to = v
	}
}

// stageAgent reads an agent, or the name of one.
func (r reader) stageAgent(n *filetree.Node, at string, s *Stage) {
	s.Agent = new(Agent)
	if n.Kind == yaml.MappingNode {
		r.readAgent(n, at, s.Agent)
		return
	}
	r.ReadText(&s.Agent.Name)(n, at)
	if s.Agent.Name == "" {
		r.RecordFault(at, n.Line, "must be an agent, or the name of one of agents")
	}
}

func (r reader) readTask(n *filetree.Node, at string, s *Stage) {
	s.Task = new(Task)
	if n.Kind == yaml.MappingNode {
		r.ReadMapping(n, at, map[string]filetree.Entry{"description": r.ReadText(&s.Task.Description), "expected_output": r.ReadText(&s.Task.Expected)})
		return
	}
	r.ReadText(&s.Task.Description)(n, at)
}

func (r reader) readLimits(n *filetree.Node, at string, s *Stage) {
	l := &s.Limits

	r.ReadMapping(n, at, map[string]filetree.Entry{
		"turns": r.ReadNumber(&l.Turns, 1), "tool_calls": r.ReadNumber(&l.ToolCalls, 1), "tokens": r.ReadNumber(&l.Tokens, 1),
		"context": r.readSetting(s, limitsContext, r.ReadNumber(&l.Context, 1)),
		"time":    r.readDuration(&l.Time),
	})
}

// readDuration reads a positive duration, and keeps it as it is written.
func (r reader) readDuration(to *string) filetree.Entry {
	return func(n *filetree.Node, at string) {
		r.ReadText(to)(n, at)
		if d, err := time.ParseDuration(*to); err != nil || d <= 0 {
			r.RecordFault(at, n.Line, "must be a positive duration such as 90s or 10m, and is %s", n)
		}
	}
}

// readParameters reads the parameters of a model's answers.
func (r reader) readParameters(n *filetree.Node, at string, to *parameters.Set) {
	known := make(map[string]filetree.Entry)
	for _, name := range parameters.Names() {
		known[string(name)] = func(n *filetree.Node, at string) {
			var text string
			// The texts that end an answer may be a list, which is kept as JSON.
			if name == parameters.Stop && n.Kind == yaml.SequenceNode {
				var b bytes.Buffer
				n.WriteJSON(&b)
				text = b.String()
			} else {
				r.ReadText(&text)(n, at)
			}

			if err, ok := errors.AsType[*parameters.ValueError](to.Put(name, text)); ok {
				r.RecordFault(at, n.Line, "%s", err.Rule)
			}
		}
	}
	r.ReadMapping(n, at, known)
}

// readOutput reads a kind, or a mapping of a kind and a schema.
func (r reader) readOutput(n *filetree.Node, at string, s *Stage) {
	if n.Kind != yaml.MappingNode {
		r.ReadText(&s.Output.Kind)(n, at)
		return
	}
	r.ReadMapping(n, at, map[string]filetree.Entry{
		"kind":   r.ReadText(&s.Output.Kind),
		"file":   r.ReadText(&s.Output.File),
		"schema": func(n *filetree.Node, at string) { r.readSchema(n, at, &s.Output) },
	})
}

// readSchema reads the schema of an output. Its faults have lines of the pipeline file.
func (r reader) readSchema(n *filetree.Node, at string, o *Output) {
	var b bytes.Buffer
	n.WriteJSON(&b)

	parsed, err := schema.Parse("schema.json", b.Bytes())
	if faults, ok := errors.AsType[schema.Errors](err); ok && len(faults) > 0 {
		field := at
		if path := faults[0].Path; path != "" {
			field = filetree.JoinKey(at, path)
		}
		r.RecordFault(field, n.LineOf(faults[0].Path), "%s", faults[0].Msg)
		return
	}
	if err != nil {
		r.RecordFault(at, n.Line, "%s", err)
		return
	}

	o.Schema, o.parsed = parsed.Canonical(), parsed
}

func (r reader) readExample(n *filetree.Node, at string) Example {
	var e Example
	r.ReadMapping(n, at, map[string]filetree.Entry{
		"document": r.ReadText(&e.Document),
		"records": func(n *filetree.Node, at string) {
			r.ReadList(n, at, func(n *filetree.Node, at string) { e.Records = append(e.Records, r.readRecord(n, at)) })
		},
	})
	return e
}

// readRecord reads what an example holds: of each field a finding, or a list of these.
func (r reader) readRecord(n *filetree.Node, at string) Record {
	if n.Kind != yaml.MappingNode {
		r.RecordFault(at, n.Line, "must be a mapping of fields, and is %s", n)
		return nil
	}

	record := make(Record, len(n.Keys))
	for i, key := range n.Keys {
		// A single finding is a list of one.
		findings := []*filetree.Node{n.Items[i]}
		if n.Items[i].Kind == yaml.SequenceNode {
			findings = n.Items[i].Items
		}

		record[key.Text] = make([]Finding, 0, len(findings))
		for _, one := range findings {
			var f Finding
			r.ReadMapping(one, filetree.JoinKey(at, key.Text), map[string]filetree.Entry{
				"value": func(n *filetree.Node, _ string) { f.Value = n.DecodeValue() }, "quote": r.ReadText(&f.Quote),
			})
			record[key.Text] = append(record[key.Text], f)
		}
	}
	return record
}

package pipeline

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/coditect/mapreduce/api/schema"
)

// An entry reads the value of one key of a mapping, which is named at.
type entry func(n *node, at string)

// readMapping reads a mapping whose keys are known. Any other key is a fault.
func (r *reader) readMapping(n *node, at string, known map[string]entry) {
	if n.kind != yaml.MappingNode {
		r.recordFault(orFile(at), n.line, "must be a mapping, and is %s", n)
		return
	}
	for i, key := range n.keys {
		read, ok := known[key.text]
		if !ok {
			r.recordFault(joinKey(at, key.text), key.line, "there is no such key; the keys here are %s", listNames(slices.Sorted(maps.Keys(known))))
			return
		}
		if read(n.items[i], joinKey(at, key.text)); r.err != nil {
			return
		}
	}
}

// joinKey appends a key to the name of a mapping.
func joinKey(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

// orFile names the whole file where nothing inside it is named.
func orFile(at string) string {
	if at == "" {
		return "pipeline"
	}
	return at
}

// readList reads the items of a list, each named by its index.
func (r *reader) readList(n *node, at string, each entry) {
	if n.kind != yaml.SequenceNode {
		r.recordFault(at, n.line, "must be a list, and is %s", n)
		return
	}
	for i, item := range n.items {
		if each(item, fmt.Sprintf("%s[%d]", at, i)); r.err != nil {
			return
		}
	}
}

func (r *reader) readText(to *string) entry {
	return func(n *node, at string) {
		if n.kind != yaml.ScalarNode || n.tag == "!!null" {
			r.recordFault(at, n.line, "must be a text, and is %s", n)
			return
		}
		*to = n.text
	}
}

func (r *reader) readTexts(to *[]string) entry {
	return func(n *node, at string) {
		r.readList(n, at, func(item *node, at string) {
			var text string
			r.readText(&text)(item, at)
			*to = append(*to, text)
		})
	}
}

func (r *reader) readFlag(to *bool) entry {
	return func(n *node, at string) {
		if n.tag != "!!bool" {
			r.recordFault(at, n.line, "must be true or false, and is %s", n)
			return
		}
		*to = n.text == "true"
	}
}

// maxNumber bounds whole numbers: any JSON implementation keeps them exactly.
const maxNumber = 1 << 53

// readNumber reads a whole number that is not below least.
func (r *reader) readNumber(to *int64, least int64) entry {
	return func(n *node, at string) {
		v, err := strconv.ParseInt(n.text, 10, 64)
		if n.tag != "!!int" || err != nil || v < least || v > maxNumber {
			r.recordFault(at, n.line, "must be a whole number that is at least %d, and is %s", least, n)
			return
		}
		*to = v
	}
}

// readOption reads a number that may be left to the run.
func (r *reader) readOption(to **int64, least int64) entry {
	return func(n *node, at string) {
		v := new(int64)
		r.readNumber(v, least)(n, at)
		*to = v
	}
}

func (r *reader) readRatio(to **float64) entry {
	return func(n *node, at string) {
		v, err := strconv.ParseFloat(n.text, 64)
		if n.tag != "!!int" && n.tag != "!!float" || err != nil || v <= 0 || v > 1 {
			r.recordFault(at, n.line, "must be a number above 0 and at most 1, and is %s", n)
			return
		}
		*to = &v
	}
}

// readPipeline reads a whole file.
func (r *reader) readPipeline(n *node, p *Pipeline) {
	r.readMapping(n, "", map[string]entry{
		"name": r.readText(&p.Name), "description": r.readText(&p.Description),
		"inputs": func(n *node, at string) { r.readInputs(n, at, p) },
		"agents": func(n *node, at string) { r.readAgents(n, at, p) },
		"advice": func(n *node, at string) {
			r.readList(n, at, func(n *node, at string) {
				var a Advice
				r.readMapping(n, at, map[string]entry{"when": r.readText(&a.When), "text": r.readText(&a.Text)})
				p.Advice = append(p.Advice, a)
			})
		},
		"stages": func(n *node, at string) {
			if len(n.items) > maxStages {
				r.recordFault(at, n.line, "there are %d; at most %d are accepted", len(n.items), maxStages)
				return
			}
			r.readList(n, at, func(n *node, at string) { p.Stages = append(p.Stages, r.readStage(n, at)) })
		},
	})
}

func (r *reader) readInputs(n *node, at string, p *Pipeline) {
	if n.kind != yaml.MappingNode {
		r.recordFault(at, n.line, "must be a mapping, and is %s", n)
		return
	}
	p.Inputs = make(map[string]*string, len(n.keys))
	for i, key := range n.keys {
		if !name.MatchString(key.text) {
			r.recordFault(at, key.line, "%.80q must be %s", key.text, nameRule)
			return
		}
		if n.items[i].tag == "!!null" { // the run has to give it
			p.Inputs[key.text] = nil
			continue
		}
		value := new(string)
		r.readText(value)(n.items[i], joinKey(at, key.text))
		p.Inputs[key.text] = value
	}
}

func (r *reader) readAgents(n *node, at string, p *Pipeline) {
	if n.kind != yaml.MappingNode {
		r.recordFault(at, n.line, "must be a mapping, and is %s", n)
		return
	}
	p.Agents = make(map[string]*Agent, len(n.keys))
	for i, key := range n.keys {
		if !name.MatchString(key.text) {
			r.recordFault(at, key.line, "%.80q must be %s", key.text, nameRule)
			return
		}
		a := &Agent{Name: key.text}
		r.readAgent(n.items[i], joinKey(at, key.text), a)
		p.Agents[key.text] = a
	}
}

func (r *reader) readAgent(n *node, at string, a *Agent) {
	r.readMapping(n, at, map[string]entry{
		"role": r.readText(&a.Role), "goal": r.readText(&a.Goal), "background": r.readText(&a.Background), "instructions": r.readText(&a.Instructions),
		"description": r.readText(&a.Description), "tools": r.readTexts(&a.Tools), "model": r.readText(&a.Model),
	})
}

func (r *reader) readStage(n *node, at string) *Stage {
	s := &Stage{Output: Output{}}
	r.readMapping(n, at, map[string]entry{
		"name": r.readText(&s.Name), "from": r.readText(&s.From), "each": r.readText(&s.Each),
		"size": r.readSetting(s, "size", r.readNumber(&s.Size, 1)), "order": r.readText(&s.Order),
		"passage": r.readSetting(s, "passage", r.readNumber(&s.Passage, 1)), "tokens": r.readSetting(s, "tokens", r.readNumber(&s.Tokens, 1)),
		"query": r.readText(&s.Query), "progress": r.readText(&s.Progress), "check": r.readFlag(&s.Check),
		"agents": r.readTexts(&s.Agents), "select": r.readText(&s.Select), "when": r.readSetting(s, "when", r.readText(&s.When)),
		"agent": func(n *node, at string) { r.stageAgent(n, at, s) },
		"task":  func(n *node, at string) { r.readTask(n, at, s) },
		"examples": func(n *node, at string) {
			r.readList(n, at, func(n *node, at string) { s.Examples = append(s.Examples, r.readExample(n, at)) })
		},
		"model": r.readText(&s.Model), "output": func(n *node, at string) { r.readOutput(n, at, s) },
		"tools": r.readTexts(&s.Tools), "limits": func(n *node, at string) { r.readLimits(n, at, s) },
		"parallel": r.readNumber(&s.Parallel, 1), "on_error": r.readText(&s.OnError),
		"merge": r.readText(&s.Merge), "fold": r.readFlag(&s.Fold), "strategy": r.readText(&s.Strategy),
		"chunk_size": r.readSetting(s, "chunk_size", r.readOption(&s.ChunkSize, 2)), "target_token_budget": r.readOption(&s.TargetTokenBudget, 1),
		"context_window": r.readOption(&s.ContextWindow, 1), "budget_ratio": r.readRatio(&s.BudgetRatio),
		"max_reduce_levels":    r.readOption(&s.MaxReduceLevels, 1),
		"reduce_context_limit": r.readOption(&s.ReduceContextLimit, 1), "reduce_batch_size": r.readOption(&s.ReduceBatchSize, 2),
	})
	return s
}

// stageAgent reads an agent, or the name of one.
func (r *reader) stageAgent(n *node, at string, s *Stage) {
	s.Agent = new(Agent)
	if n.kind == yaml.MappingNode {
		r.readAgent(n, at, s.Agent)
		return
	}
	r.readText(&s.Agent.Name)(n, at)
	if s.Agent.Name == "" {
		r.recordFault(at, n.line, "must be an agent, or the name of one of agents")
	}
}

func (r *reader) readTask(n *node, at string, s *Stage) {
	s.Task = new(Task)
	if n.kind == yaml.MappingNode {
		r.readMapping(n, at, map[string]entry{"description": r.readText(&s.Task.Description), "expected_output": r.readText(&s.Task.Expected)})
		return
	}
	r.readText(&s.Task.Description)(n, at)
}

func (r *reader) readLimits(n *node, at string, s *Stage) {
	l := &s.Limits
	r.readMapping(n, at, map[string]entry{
		"turns": r.readNumber(&l.Turns, 1), "tool_calls": r.readNumber(&l.ToolCalls, 1), "tokens": r.readNumber(&l.Tokens, 1),
		"context": r.readSetting(s, limitsContext, r.readNumber(&l.Context, 1)),
		"time": func(n *node, at string) {
			r.readText(&l.Time)(n, at)
			if d, err := time.ParseDuration(l.Time); err != nil || d <= 0 {
				r.recordFault(at, n.line, "must be a positive duration such as 90s or 10m, and is %s", n)
			}
		},
	})
}

// readOutput reads a kind, or a mapping of a kind and a schema.
func (r *reader) readOutput(n *node, at string, s *Stage) {
	if n.kind != yaml.MappingNode {
		r.readText(&s.Output.Kind)(n, at)
		return
	}
	r.readMapping(n, at, map[string]entry{
		"kind":   r.readText(&s.Output.Kind),
		"file":   r.readText(&s.Output.File),
		"schema": func(n *node, at string) { r.readSchema(n, at, &s.Output) },
	})
}

// readSchema reads the schema of an output. Its faults have lines of the pipeline file.
func (r *reader) readSchema(n *node, at string, o *Output) {
	var b bytes.Buffer
	n.writeJSON(&b)
	parsed, err := schema.Parse("schema.json", b.Bytes())
	if faults, ok := errors.AsType[schema.Errors](err); ok && len(faults) > 0 {
		field := at
		if path := faults[0].Path; path != "" {
			field = joinKey(at, path)
		}
		r.recordFault(field, n.lineOf(faults[0].Path), "%s", faults[0].Msg)
		return
	}
	if err != nil {
		r.recordFault(at, n.line, "%s", err)
		return
	}
	o.Schema, o.parsed = parsed.Canonical(), parsed
}

func (r *reader) readExample(n *node, at string) Example {
	var e Example
	r.readMapping(n, at, map[string]entry{
		"document": r.readText(&e.Document),
		"records": func(n *node, at string) {
			r.readList(n, at, func(n *node, at string) { e.Records = append(e.Records, r.readRecord(n, at)) })
		},
	})
	return e
}

// readRecord reads what an example holds: of each field a finding, or a list of these.
func (r *reader) readRecord(n *node, at string) Record {
	if n.kind != yaml.MappingNode {
		r.recordFault(at, n.line, "must be a mapping of fields, and is %s", n)
		return nil
	}
	record := make(Record, len(n.keys))
	for i, key := range n.keys {
		findings := []*node{n.items[i]}
		if n.items[i].kind == yaml.SequenceNode {
			findings = n.items[i].items
		}
		record[key.text] = make([]Finding, 0, len(findings))
		for _, one := range findings {
			var f Finding
			r.readMapping(one, joinKey(at, key.text), map[string]entry{
				"value": func(n *node, _ string) { f.Value = n.decodeValue() }, "quote": r.readText(&f.Quote),
			})
			record[key.text] = append(record[key.text], f)
		}
	}
	return record
}

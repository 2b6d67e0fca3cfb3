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

// mapping reads a mapping whose keys are known. Any other key is a fault.
func (r *reader) mapping(n *node, at string, known map[string]entry) {
	if n.kind != yaml.MappingNode {
		r.fail(orFile(at), n.line, "must be a mapping, and is %s", n)
		return
	}
	for i, key := range n.keys {
		read, ok := known[key.text]
		if !ok {
			r.fail(join(at, key.text), key.line, "there is no such key; the keys here are %s", listed(slices.Sorted(maps.Keys(known))))
			return
		}
		if read(n.items[i], join(at, key.text)); r.err != nil {
			return
		}
	}
}

// join appends a key to the name of a mapping.
func join(at, key string) string {
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

// list reads the items of a list, each named by its index.
func (r *reader) list(n *node, at string, each entry) {
	if n.kind != yaml.SequenceNode {
		r.fail(at, n.line, "must be a list, and is %s", n)
		return
	}
	for i, item := range n.items {
		if each(item, fmt.Sprintf("%s[%d]", at, i)); r.err != nil {
			return
		}
	}
}

func (r *reader) text(to *string) entry {
	return func(n *node, at string) {
		if n.kind != yaml.ScalarNode || n.tag == "!!null" {
			r.fail(at, n.line, "must be a text, and is %s", n)
			return
		}
		*to = n.text
	}
}

func (r *reader) texts(to *[]string) entry {
	return func(n *node, at string) {
		r.list(n, at, func(item *node, at string) {
			var text string
			r.text(&text)(item, at)
			*to = append(*to, text)
		})
	}
}

func (r *reader) flag(to *bool) entry {
	return func(n *node, at string) {
		if n.tag != "!!bool" {
			r.fail(at, n.line, "must be true or false, and is %s", n)
			return
		}
		*to = n.text == "true"
	}
}

// maxNumber bounds whole numbers: any JSON implementation keeps them exactly.
const maxNumber = 1 << 53

// number reads a whole number that is not below least.
func (r *reader) number(to *int64, least int64) entry {
	return func(n *node, at string) {
		v, err := strconv.ParseInt(n.text, 10, 64)
		if n.tag != "!!int" || err != nil || v < least || v > maxNumber {
			r.fail(at, n.line, "must be a whole number that is at least %d, and is %s", least, n)
			return
		}
		*to = v
	}
}

// option reads a number that may be left to the run.
func (r *reader) option(to **int64, least int64) entry {
	return func(n *node, at string) {
		v := new(int64)
		r.number(v, least)(n, at)
		*to = v
	}
}

func (r *reader) ratio(to **float64) entry {
	return func(n *node, at string) {
		v, err := strconv.ParseFloat(n.text, 64)
		if n.tag != "!!int" && n.tag != "!!float" || err != nil || v <= 0 || v > 1 {
			r.fail(at, n.line, "must be a number above 0 and at most 1, and is %s", n)
			return
		}
		*to = &v
	}
}

// pipeline reads a whole file.
func (r *reader) pipeline(n *node, p *Pipeline) {
	r.mapping(n, "", map[string]entry{
		"name": r.text(&p.Name), "description": r.text(&p.Description),
		"inputs": func(n *node, at string) { r.inputs(n, at, p) },
		"agents": func(n *node, at string) { r.agents(n, at, p) },
		"stages": func(n *node, at string) {
			if len(n.items) > maxStages {
				r.fail(at, n.line, "there are %d; at most %d are accepted", len(n.items), maxStages)
				return
			}
			r.list(n, at, func(n *node, at string) { p.Stages = append(p.Stages, r.stage(n, at)) })
		},
	})
}

func (r *reader) inputs(n *node, at string, p *Pipeline) {
	if n.kind != yaml.MappingNode {
		r.fail(at, n.line, "must be a mapping, and is %s", n)
		return
	}
	p.Inputs = make(map[string]*string, len(n.keys))
	for i, key := range n.keys {
		if !name.MatchString(key.text) {
			r.fail(at, key.line, "%.80q must be %s", key.text, nameRule)
			return
		}
		if n.items[i].tag == "!!null" { // the run has to give it
			p.Inputs[key.text] = nil
			continue
		}
		value := new(string)
		r.text(value)(n.items[i], join(at, key.text))
		p.Inputs[key.text] = value
	}
}

func (r *reader) agents(n *node, at string, p *Pipeline) {
	if n.kind != yaml.MappingNode {
		r.fail(at, n.line, "must be a mapping, and is %s", n)
		return
	}
	p.Agents = make(map[string]*Agent, len(n.keys))
	for i, key := range n.keys {
		if !name.MatchString(key.text) {
			r.fail(at, key.line, "%.80q must be %s", key.text, nameRule)
			return
		}
		a := &Agent{Name: key.text}
		r.agent(n.items[i], join(at, key.text), a)
		p.Agents[key.text] = a
	}
}

func (r *reader) agent(n *node, at string, a *Agent) {
	r.mapping(n, at, map[string]entry{"role": r.text(&a.Role), "goal": r.text(&a.Goal), "background": r.text(&a.Background)})
}

func (r *reader) stage(n *node, at string) *Stage {
	s := &Stage{Output: Output{}}
	r.mapping(n, at, map[string]entry{
		"name": r.text(&s.Name), "from": r.text(&s.From), "each": r.text(&s.Each),
		"size": r.number(&s.Size, 1), "order": r.text(&s.Order), "passage": r.number(&s.Passage, 1),
		"agents": r.texts(&s.Agents), "select": r.text(&s.Select), "when": r.text(&s.When),
		"agent": func(n *node, at string) { r.stageAgent(n, at, s) },
		"task":  func(n *node, at string) { r.task(n, at, s) },
		"examples": func(n *node, at string) {
			r.list(n, at, func(n *node, at string) { s.Examples = append(s.Examples, r.example(n, at)) })
		},
		"model": r.text(&s.Model), "output": func(n *node, at string) { r.output(n, at, s) },
		"tools": r.texts(&s.Tools), "limits": func(n *node, at string) { r.limits(n, at, &s.Limits) },
		"parallel": r.number(&s.Parallel, 1), "on_error": r.text(&s.OnError),
		"merge": r.text(&s.Merge), "fold": r.flag(&s.Fold), "strategy": r.text(&s.Strategy),
		"chunk_size": r.option(&s.ChunkSize, 2), "target_token_budget": r.option(&s.TargetTokenBudget, 1),
		"context_window": r.option(&s.ContextWindow, 1), "budget_ratio": r.ratio(&s.BudgetRatio),
		"max_reduce_levels":    r.option(&s.MaxReduceLevels, 1),
		"reduce_context_limit": r.option(&s.ReduceContextLimit, 1), "reduce_batch_size": r.option(&s.ReduceBatchSize, 2),
	})
	return s
}

// stageAgent reads an agent, or the name of one.
func (r *reader) stageAgent(n *node, at string, s *Stage) {
	s.Agent = new(Agent)
	if n.kind == yaml.MappingNode {
		r.agent(n, at, s.Agent)
		return
	}
	r.text(&s.Agent.Name)(n, at)
	if s.Agent.Name == "" {
		r.fail(at, n.line, "must be an agent, or the name of one of agents")
	}
}

func (r *reader) task(n *node, at string, s *Stage) {
	s.Task = new(Task)
	if n.kind == yaml.MappingNode {
		r.mapping(n, at, map[string]entry{"description": r.text(&s.Task.Description), "expected_output": r.text(&s.Task.Expected)})
		return
	}
	r.text(&s.Task.Description)(n, at)
}

func (r *reader) limits(n *node, at string, l *Limits) {
	r.mapping(n, at, map[string]entry{
		"turns": r.number(&l.Turns, 1), "tool_calls": r.number(&l.ToolCalls, 1), "tokens": r.number(&l.Tokens, 1),
		"context": r.number(&l.Context, 1),
		"time": func(n *node, at string) {
			r.text(&l.Time)(n, at)
			if d, err := time.ParseDuration(l.Time); err != nil || d <= 0 {
				r.fail(at, n.line, "must be a positive duration such as 90s or 10m, and is %s", n)
			}
		},
	})
}

// output reads a kind, or a mapping of a kind and a schema.
func (r *reader) output(n *node, at string, s *Stage) {
	if n.kind != yaml.MappingNode {
		r.text(&s.Output.Kind)(n, at)
		return
	}
	r.mapping(n, at, map[string]entry{
		"kind":   r.text(&s.Output.Kind),
		"schema": func(n *node, at string) { r.schema(n, at, &s.Output) },
	})
}

// schema reads the schema of an output. Its faults have lines of the pipeline file.
func (r *reader) schema(n *node, at string, o *Output) {
	var b bytes.Buffer
	n.writeJSON(&b)
	parsed, err := schema.Parse("schema.json", b.Bytes())
	if faults, ok := errors.AsType[schema.Errors](err); ok && len(faults) > 0 {
		field := at
		if path := faults[0].Path; path != "" {
			field = join(at, path)
		}
		r.fail(field, n.lineOf(faults[0].Path), "%s", faults[0].Msg)
		return
	}
	if err != nil {
		r.fail(at, n.line, "%s", err)
		return
	}
	o.Schema, o.parsed = parsed.Canonical(), parsed
}

func (r *reader) example(n *node, at string) Example {
	var e Example
	r.mapping(n, at, map[string]entry{
		"document": r.text(&e.Document),
		"records": func(n *node, at string) {
			r.list(n, at, func(n *node, at string) { e.Records = append(e.Records, r.record(n, at)) })
		},
	})
	return e
}

// record reads what an example holds: of each field a finding, or a list of these.
func (r *reader) record(n *node, at string) Record {
	if n.kind != yaml.MappingNode {
		r.fail(at, n.line, "must be a mapping of fields, and is %s", n)
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
			r.mapping(one, join(at, key.text), map[string]entry{
				"value": func(n *node, _ string) { f.Value = n.value() }, "quote": r.text(&f.Quote),
			})
			record[key.text] = append(record[key.text], f)
		}
	}
	return record
}

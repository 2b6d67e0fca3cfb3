// Package gather is the step of units with tools for the provider that asks no model. It
// asks the tools of the stage for what the unit is about, keeps what they bring as
// evidence, and chooses passages of it, or writes a value by extracts of it. The schema of
// the stage says with the hint write what stands where.
//
// Whether a tool can be asked its Spec says: one with an Address gets the address of the
// unit's element, and one with a Query the query of the element, or else the question.
// Where a tool brings links, those that bear most on the question are followed. Tools that
// may change something are not called.
package gather

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/digest"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/unit"
	"github.com/coditect/mapreduce/worker/step"
	"github.com/coditect/mapreduce/worker/step/passages"
	"github.com/coditect/mapreduce/worker/tool"
	"github.com/coditect/mapreduce/worker/tool/toolbox"
)

// Bounds of what a unit asks for.
const (
	maxFollowed = 3   // links of one result
	maxCalls    = 40  // of a unit
	bearsOn     = 0.5 // relevance from which a text is about the question
)

// A Runner runs units with tools. It is safe for concurrent use.
type Runner struct {
	// Box returns the tools of this process, once units run.
	Box func() *toolbox.Box
}

var _ step.Runner = Runner{}

// Run implements step.Runner.
func (r Runner) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	tools, err := toolsOf(task)
	if err != nil {
		return nil, agent.PermanentJob(err)
	}

	session, err := r.Box().Open(ctx, tools)
	if err != nil {
		return nil, agent.Permanent(err)
	}
	defer session.Close()

	// A worker that has none of the tools still comes to an outcome, which says so.
	g := newGathering(task)
	g.calls, g.session = calls, session
	if len(session.Specs()) == 0 {
		g.failures = append(g.failures, "this worker has none of the tools "+strings.Join(tools, ", "))
	}

	if err := g.gather(ctx); err != nil {
		return nil, err
	}

	if task.StageSpec.Output == agent.PassagesChosen {
		return g.choosePassages(ctx)
	}
	return g.writeValue(ctx)
}

// toolsOf returns the tools that a unit may use: those of its agent, in a stage with several
// agents.
func toolsOf(task *agent.Task) ([]string, error) {
	var item struct {
		Agent string `json:"agent"`
	}
	if task.StageSpec.Each != pipeline.EachAgent || json.Unmarshal(task.Item, &item) != nil {
		return task.StageSpec.Tools, nil
	}

	p, err := step.PipelineOf(task.Spec)
	if err != nil {
		return nil, err
	}

	if a := p.Agents[item.Agent]; a != nil && a.Tools != nil {
		return a.Tools, nil
	}

	return task.StageSpec.Tools, nil
}

// A gathering is one unit at work.
type gathering struct {
	task    *agent.Task
	calls   agent.Calls
	session *toolbox.Session
	item    element
	asks    string // what tools are asked for
	query   *digest.Query

	asked    map[string]bool // tools with their inputs
	found    []mapreduce.DocumentID
	failures []string
}

func newGathering(task *agent.Task) *gathering {
	g := &gathering{task: task, asked: make(map[string]bool)}
	_ = json.Unmarshal(task.Item, &g.item) // what is another object says nothing of it
	g.asks = cmp.Or(g.item.Query, task.StageSpec.Query)
	g.query = digest.NewQuery(g.asks)
	return g
}

// gather asks all tools that can be asked. What a tool is refused or fails at is noted, and
// the others go on.
func (g *gathering) gather(ctx context.Context) error {
	address := g.item.address()
	for _, spec := range g.session.Specs() {
		var err error
		switch {
		case !spec.Idempotent:
			continue
		case spec.Address != "" && address != "":
			err = g.ask(ctx, spec, spec.Address, address)
		case spec.Query != "" && g.asks != "":
			err = g.ask(ctx, spec, spec.Query, g.asks)
		case len(spec.Listing) > 0 && address == "":
			err = g.readListed(ctx, spec)
		}

		if err != nil {
			return err
		}

		if address != "" && g.isAnswered(ctx) {
			break // another tool would bring the same page
		}
	}
	return nil
}

// An element is what the element of a unit says of where to look.
type element struct {
	URL     string `json:"url"`
	Address string `json:"address"`
	Query   string `json:"query"`
}

// address is where the element is, or "".
func (e *element) address() string { return cmp.Or(e.URL, e.Address) }

// ask calls a tool, keeps what it brings, and follows the links that bear on the question.
func (g *gathering) ask(ctx context.Context, spec tool.Spec, property, value string) error {
	result, err := g.call(ctx, spec, property, value)
	if result == nil || err != nil {
		return err
	}
	err = g.follow(ctx, spec, g.bestLinks(result.Links, value))
	if property == spec.Address {
		g.failures = nil // of tools that could not read the same address, or what the page leads to: it was read itself
	}
	return err
}

// readListed reads what a tool lists, as far as the unit may make calls.
func (g *gathering) readListed(ctx context.Context, spec tool.Spec) error {
	result, err := g.callWith(ctx, spec, spec.Listing, "all")
	if result == nil || err != nil {
		return err
	}
	return g.follow(ctx, spec, result.Links)
}

// follow reads what links of a tool lead to, as far as a tool does.
func (g *gathering) follow(ctx context.Context, from tool.Spec, links []tool.Link) error {
	for _, link := range links {
		by, ok := g.followingTool(from, link)
		if !ok {
			continue
		}
		if _, err := g.call(ctx, by, by.Address, link.Address); err != nil {
			return err
		}
	}
	return nil
}

// followingTool returns the tool that reads what a link leads to: the tool that the link is from,
// or the first that takes such an address: a URL or a path.
func (g *gathering) followingTool(from tool.Spec, link tool.Link) (tool.Spec, bool) {
	if from.Address != "" {
		return from, true
	}

	isURL := strings.Contains(link.Address, "://")
	all := g.session.Specs()
	i := slices.IndexFunc(all, func(s tool.Spec) bool { return s.Idempotent && s.Address != "" && (s.Address == "url") == isURL })
	if i < 0 {
		return tool.Spec{}, false
	}
	return all[i], true
}

// bestLinks returns the links whose text bears most on the question, at most maxFollowed.
func (g *gathering) bestLinks(links []tool.Link, from string) []tool.Link {
	best := slices.DeleteFunc(slices.Clone(links), func(l tool.Link) bool {
		return l.Address == from || g.query.Relevance(l.Text) < bearsOn/2
	})

	slices.SortStableFunc(best, func(a, b tool.Link) int {
		switch x, y := g.query.Relevance(a.Text), g.query.Relevance(b.Text); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})

	return best[:min(len(best), maxFollowed)]
}

// call calls a tool with one property of its input.
func (g *gathering) call(ctx context.Context, spec tool.Spec, property, value string) (*tool.Result, error) {
	input, err := json.Marshal(map[string]string{property: value})
	if err != nil {
		return nil, agent.Permanent(err) // of strings
	}
	return g.callWith(ctx, spec, input, value)
}

// callWith makes a call once, and keeps what it brings. It returns nil for what the tool did
// not bring, and an error only if the attempt is over. About is for people.
func (g *gathering) callWith(ctx context.Context, spec tool.Spec, input json.RawMessage, about string) (*tool.Result, error) {
	key := spec.Name + "\x00" + string(input)
	if g.asked[key] || len(g.asked) == maxCalls {
		return nil, nil
	}

	g.asked[key] = true
	g.calls.Progress(fmt.Sprintf("%s: %s", spec.Name, about))

	start := time.Now()
	result, err := g.session.Call(ctx, spec.Name, input)
	g.record(spec.Name, start, err)

	// What a tool fails at is no failure of the unit: others may bring what it needs.
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		g.failures = append(g.failures, err.Error())
		return nil, nil
	}

	return result, g.keep(ctx, spec.Name, result)
}

// keep stores the evidence of a result.
func (g *gathering) keep(ctx context.Context, name string, result *tool.Result) error {
	for _, e := range result.Evidence {
		id, err := g.calls.KeepEvidence(ctx, mapreduce.Evidence{
			URI: e.URI, Title: e.Title, Tool: name, Media: e.Media, Retrieved: e.Retrieved, Metadata: e.Metadata,
		}, []byte(e.Text))

		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, agent.ErrNoRoom), errors.Is(err, errs.Invalid):
			g.failures = append(g.failures, fmt.Sprintf("%s: %v", e.URI, err))
		case err != nil:
			return err
		case !slices.Contains(g.found, id):
			g.found = append(g.found, id)
		}
	}
	return nil
}

// choosePassages is the outcome of a stage of passages: those of all evidence that bear most
// on the question.
func (g *gathering) choosePassages(ctx context.Context) (*agent.Result, error) {
	var all []output.Passage
	for _, id := range g.found {
		e, err := unit.Evidence(ctx, g.calls, id)
		if err != nil {
			return nil, err
		}
		all = append(all, passages.Choose(unit.OnEvidence(g.task, e))...)
	}

	slices.SortStableFunc(all, func(a, b output.Passage) int {
		switch {
		case a.Relevance > b.Relevance:
			return -1
		case a.Relevance < b.Relevance:
			return 1
		}
		return 0
	})

	if most := g.task.StageSpec.Size; most > 0 && int64(len(all)) > most {
		all = all[:most]
	}

	// Where tools failed and nothing was found, the unit has failed: an empty choice would
	// say that there is nothing.
	if len(all) == 0 && len(g.failures) > 0 && len(g.session.Specs()) > 0 {
		return nil, agent.Permanent(errors.New(strings.Join(g.failures, "; ")))
	}

	out, err := output.ChoosePassages(all)
	if err != nil {
		return nil, agent.Permanent(err)
	}
	return g.valueResult(out)
}

// valueResult is the result of a unit that came to a value, with what tools failed at.
func (g *gathering) valueResult(out *output.Output) (*agent.Result, error) {
	res, err := unit.Valued(out)
	if err == nil {
		res.Errors = g.failures
	}
	return res, err
}

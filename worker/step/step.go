// Package step says which kinds of steps there are and who runs them. A unit is
// one run of a step: it parses a document, extracts records from a text, merges
// the records of several units, or writes a value by what it has read. Which of
// these a unit needs follows from its assignment (see Of); who runs it is looked
// up in a Registry by the kind and the provider.
//
// To add a provider of a step, write a package with a Runner and register it where
// the process is wired; to add a kind of step, register as well which units need
// it. Nothing is registered by importing. Tests add a kind in internal/counting.
//
// The package imports the vocabulary and worker/agent, and no runner.
package step

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent"
)

// A Kind is what a step does.
type Kind string

// The kinds of steps that pipelines come to. Others may be registered.
const (
	Parse   Kind = "parse"   // the bytes of a document → its text
	Extract Kind = "extract" // a text, or the texts of all documents → records
	Merge   Kind = "merge"   // outputs of one form → one output of the same form
	Select  Kind = "select"  // a text → its passages that bear on a query
	Write   Kind = "write"   // what the unit reads, and the task of its stage → JSON in the stage's schema
	Agent   Kind = "agent"   // the same, and what tools bring → whatever the stage makes
)

// A Runner runs the units of one kind of step. What may happen is said at
// agent.Agent.
type Runner = agent.Agent

// A Step is a kind of step as one provider does it. Without a provider it is the
// step of all providers that have none of their own: parsing is.
type Step struct {
	Kind     Kind
	Provider string
}

// A Table is the runners of a provider. It is itself a Runner, that runs each
// unit by the runner of the kind that the unit needs.
type Table map[Kind]Runner

var _ Runner = Table(nil)

// Run implements Runner.
func (t Table) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	kind, err := Of(task)
	if err != nil {
		return nil, agent.PermanentJob(err)
	}

	run := t[kind]
	if run == nil {
		return nil, agent.PermanentJob(fmt.Errorf("there is no %s step for %s: there is %v", kind, task.Unit, slices.Sorted(maps.Keys(t))))
	}
	return run.Run(ctx, task, calls)
}

// With returns a table of the same kinds whose runners are decorated.
func (t Table) With(decorate func(Runner) Runner) Table {
	out := make(Table, len(t))
	for kind, run := range t {
		out[kind] = decorate(run)
	}
	return out
}

// A Registry holds the runners of a process. It is filled before it is used, and
// only read from then on.
type Registry struct {
	runners   map[Step]Runner
	providers map[string]mapreduce.Provider // without their steps
	kinds     []kindNeeded                  // that were added, the last one first
}

// A kindNeeded is a kind of step with the units that need it.
type kindNeeded struct {
	kind  Kind
	needs Needed
}

// Needed reports whether units of a kind need a kind of step in a stage. The stage
// may be nil, see KindOf.
type Needed func(unit mapreduce.UnitKind, stage *agent.StageSpec) bool

// NewRegistry returns a registry that holds nothing.
func NewRegistry() *Registry {
	return &Registry{runners: make(map[Step]Runner), providers: make(map[string]mapreduce.Provider)}
}

// Register adds the runner of a step, in place of an earlier one of the same
// step. A provider that was not declared is taken for one that asks models.
func (r *Registry) Register(s Step, run Runner) {
	r.runners[s] = run
	if _, known := r.providers[s.Provider]; !known && s.Provider != "" {
		r.providers[s.Provider] = mapreduce.Provider{Name: s.Provider, Models: true}
	}
}

// AddKind adds a kind of step. It goes before the kinds of this package and those
// that were added before.
func (r *Registry) AddKind(kind Kind, needs Needed) {
	r.kinds = append([]kindNeeded{{kind, needs}}, r.kinds...)
}

// KindOf is KindOf with the kinds that were added.
func (r *Registry) KindOf(unit mapreduce.UnitKind, stage *agent.StageSpec) (Kind, error) {
	for _, k := range r.kinds {
		if k.needs(unit, stage) {
			return k.kind, nil
		}
	}
	return KindOf(unit, stage)
}

// Provide declares a provider and registers all its steps.
func (r *Registry) Provide(p mapreduce.Provider, runners Table) {
	r.providers[p.Name] = p
	for kind, run := range runners {
		r.Register(Step{kind, p.Name}, run)
	}
}

// Lookup returns the runner of a kind of step for units of a provider: the
// provider's own, or else the one without a provider.
func (r *Registry) Lookup(kind Kind, provider string) (Runner, bool) {
	if run, ok := r.runners[Step{kind, provider}]; ok {
		return run, true
	}
	run, ok := r.runners[Step{Kind: kind}]
	return run, ok
}

// Kinds returns the kinds of steps that units of a provider can need, sorted: the
// provider's own and those without a provider. A provider that is not registered
// has none.
func (r *Registry) Kinds(provider string) []Kind {
	if _, ok := r.providers[provider]; !ok {
		return nil
	}

	var kinds []Kind
	for s := range r.runners {
		if s.Provider == provider || s.Provider == "" {
			kinds = append(kinds, s.Kind)
		}
	}

	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// Provider returns what is known of a provider. One that is not registered asks
// models, as far as anybody knows, and has no steps.
func (r *Registry) Provider(name string) mapreduce.Provider {
	p, ok := r.providers[name]
	if !ok {
		return mapreduce.Provider{Name: name, Models: true}
	}

	for _, kind := range r.Kinds(name) {
		p.Steps = append(p.Steps, string(kind))
	}
	return p
}

// Providers returns what is known of all providers, sorted by name.
func (r *Registry) Providers() []mapreduce.Provider {
	all := make([]mapreduce.Provider, 0, len(r.providers))
	for _, name := range r.Names() {
		all = append(all, r.Provider(name))
	}
	return all
}

// Names returns the names of all providers, sorted.
func (r *Registry) Names() []string { return slices.Sorted(maps.Keys(r.providers)) }

// Only returns a registry with the steps of some providers, and those without a
// provider.
func (r *Registry) Only(providers ...string) *Registry {
	out := NewRegistry()
	out.kinds = r.kinds

	for s, run := range r.runners {
		if s.Provider == "" || slices.Contains(providers, s.Provider) {
			out.runners[s] = run
		}
	}

	for _, name := range providers {
		if p, ok := r.providers[name]; ok {
			out.providers[name] = p
		}
	}

	return out
}

// Table returns the runners of all kinds of steps that units of a provider can
// need.
func (r *Registry) Table(provider string) Table {
	t := make(Table)
	for _, kind := range r.Kinds(provider) {
		t[kind], _ = r.Lookup(kind, provider)
	}
	return t
}

// Serving returns a registry of one provider, one runner of which runs its units of all
// kinds but Select.
func Serving(provider string, run Runner) *Registry {
	r := NewRegistry()
	r.Provide(mapreduce.Provider{Name: provider, Models: true}, Table{Parse: run, Extract: run, Merge: run, Write: run, Agent: run})
	return r
}

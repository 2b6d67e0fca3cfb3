// Package cascade runs the units of a stage whose pipeline names several members: the
// cheapest member answers first, and the unit is parked with how sure that answer is. Whoever
// plans the job decides, unit by unit, and wakes it with the decision: to accept the answer,
// to compare it with that of the last member, or to go on to the next member.
//
// What always holds:
//
//  1. A unit ends with the answer of exactly one member, and its output names that one.
//  2. A unit never ends with the answer of a cheaper member unless it was told to accept it.
//     Where that member has no answer then, the last member gives one.
//  3. What a member was answered is in the journal of the unit under the name of the member, so
//     an attempt after a decision, or after a death, asks for none of it again.
//
// Members are runners of the same step of their own providers. The package imports none of
// them.
package cascade

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline/cascading"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/ascent"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
	"github.com/coditect/mapreduce/worker/step"
)

// Add puts cascades before the extractors of all providers of a registry: a unit whose stage
// names no members is run as before.
func Add(all *step.Registry) {
	before := make(map[string]step.Runner)
	for _, name := range all.Names() {
		if run, ok := all.Lookup(step.Extract, name); ok {
			before[name] = run
		}
	}
	for name, run := range before {
		all.Register(step.Step{Kind: step.Extract, Provider: name}, &runner{own: run, members: before})
	}
}

// A runner runs the units of a provider's extractor.
type runner struct {
	own     step.Runner
	members map[string]step.Runner // by provider
}

// Run implements step.Runner.
func (r *runner) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	if task.StageSpec == nil || !task.StageSpec.Cascade.IsSet() || task.Kind != mapreduce.KindMap {
		return r.own.Run(ctx, task, calls)
	}

	s, err := schema.Shared(task.RecordSchema())
	if err != nil {
		return nil, agent.PermanentJob(err)
	}
	measures, err := ascent.New(s, task.StageSpec.Per)
	if err != nil {
		return nil, agent.PermanentJob(err)
	}

	u := &unit{runner: r, task: task, calls: calls, measures: measures}
	return u.run(ctx)
}

// A unit is one attempt at a unit of a cascade.
type unit struct {
	*runner
	task     *agent.Task
	calls    agent.Calls
	measures *ascent.Measures
}

// last is the number of the oracle.
func (u *unit) last() int { return len(u.task.StageSpec.Members) - 1 }

// run carries out what was decided last. An answer that says nothing of the kind, as a person
// may give it, decides nothing: the unit waits again.
func (u *unit) run(ctx context.Context) (*agent.Result, error) {
	woken := u.task.WakeCall
	if woken == nil {
		return u.try(ctx, 0)
	}
	member, ok := ascent.MemberOf(woken.Handle)
	if !ok || member >= u.last() {
		return u.try(ctx, 0)
	}

	switch ascent.Decision(woken.Answer) {
	case ascent.Accept:
		return u.accept(ctx, member)
	case ascent.Compare:
		return u.compare(ctx, member)
	case ascent.Ascend:
		return u.try(ctx, member+1)
	}
	return u.try(ctx, member)
}

// try has a member answer, and parks the unit with how sure its answer is. The last member is
// not judged by anybody.
func (u *unit) try(ctx context.Context, member int) (*agent.Result, error) {
	if member == u.last() {
		return u.ask(ctx, nil)
	}

	found, _, err := u.answerOf(ctx, member)
	if err != nil {
		return nil, err
	}

	waits := mapreduce.Parking{Handle: ascent.Handle(member), Scores: make([]uint32, len(u.measures.Names()))}
	waits.Note = "its answer by " + u.task.StageSpec.Members[member] + " waits to be accepted"
	if found != nil {
		waits.Scores = u.measures.Scores(found)
	}
	return nil, &agent.ParkedError{Parking: waits}
}

// accept ends the unit with the answer of a member.
func (u *unit) accept(ctx context.Context, member int) (*agent.Result, error) {
	found, res, err := u.answerOf(ctx, member)
	switch {
	case err != nil:
		return nil, err
	case found == nil: // it had one when it was scored, and cannot be asked any more
		return u.ask(ctx, nil)
	}
	return named(found, res, &output.Ascent{Member: u.task.StageSpec.Members[member]})
}

// compare ends the unit with the answer of the last member, and says whether that of another
// one was like it. A member without an answer has none that is. Where a person is asked instead of the last member, it
// is the answer of that other one, whose values wait for the person.
func (u *unit) compare(ctx context.Context, member int) (*agent.Result, error) {
	found, res, err := u.answerOf(ctx, member)
	if err != nil {
		return nil, err
	}

	// A person can say what is right of the values that were found, and of no others.
	if found != nil && len(found.Entries) > 0 && u.task.StageSpec.Review.Reasons().Compared {
		found.Ascent = &output.Ascent{Member: u.task.StageSpec.Members[member]}
		u.measures.Ask(found)
		return named(found, res, found.Ascent)
	}

	return u.ask(ctx, func(truth *output.Output) []bool {
		if found == nil {
			return make([]bool, len(u.measures.Names()))
		}
		return u.measures.Alike(found, truth)
	})
}

// ask ends the unit with the answer of the last member.
func (u *unit) ask(ctx context.Context, alike func(*output.Output) []bool) (*agent.Result, error) {
	purse := &metered{Calls: u.callsOf(u.last())}
	res, err := u.runnerOf(u.task.Spec.Provider).Run(ctx, u.taskOf(u.last()), purse)
	if err != nil {
		return nil, err
	}

	found, err := output.Decode(res.Output)
	if err != nil {
		return nil, agent.Permanent(err)
	}
	how := &output.Ascent{Member: u.task.StageSpec.Members[u.last()], Tokens: purse.tokens.Load(), CostMicros: purse.cost.Load()}
	if alike != nil {
		how.Alike = alike(found)
	}
	return named(found, res, how)
}

// named returns a result whose output says how it came about.
func named(found *output.Output, res *agent.Result, how *output.Ascent) (*agent.Result, error) {
	found.Ascent = how
	encoded, err := found.Encode()
	if err != nil {
		return nil, agent.Permanent(err)
	}
	res.Output = encoded
	return res, nil
}

// answerOf returns what a cheaper member finds. Neither is there if it cannot answer: the unit
// need not fail for that, as others can.
func (u *unit) answerOf(ctx context.Context, member int) (*output.Output, *agent.Result, error) {
	provider := u.providerOf(member)
	run := u.runnerOf(provider)
	if run == nil {
		return nil, nil, agent.PermanentJob(fmt.Errorf("member %s of the cascade: this worker has no provider %q", u.task.StageSpec.Members[member], provider))
	}

	res, err := run.Run(ctx, u.taskOf(member), u.callsOf(member))
	if err != nil {
		if mustEnd(ctx, err, u.task.Last || u.task.WakeCall != nil) {
			return nil, nil, err
		}
		return nil, nil, nil
	}

	found, err := output.Decode(res.Output)
	if err != nil {
		return nil, nil, agent.Permanent(err)
	}
	return found, res, nil
}

// mustEnd reports whether an error of a cheaper member ends the attempt: one that the next
// attempt may not meet, unless there is none, or one that is of the whole job.
func mustEnd(ctx context.Context, err error, lastChance bool) bool {
	if _, parked := errors.AsType[*agent.ParkedError](err); parked || ctx.Err() != nil || errors.Is(err, agent.ErrBudget) {
		return true
	}
	if _, open := errors.AsType[*agent.BreakerError](err); open {
		return true
	}

	switch class, _ := agent.Classify(err); class {
	case protocol.PermanentUnit:
		return false
	case protocol.PermanentJob:
		return true
	}
	return !lastChance
}

// runnerOf returns the extractor of a provider, nil if there is none here.
func (u *unit) runnerOf(provider string) step.Runner {
	if provider == u.task.Spec.Provider {
		return u.own
	}
	return u.members[provider]
}

// nameOf returns the model of a member, "provider/model", or the provider that asks none.
func (u *unit) nameOf(member int) string {
	name := u.task.StageSpec.Members[member]
	if name == cascading.Rules {
		return mapreduce.DefaultProvider
	}
	if names, err := u.task.Spec.StageModels(name); err == nil && len(names) > 0 {
		return names[0]
	}
	return name
}

func (u *unit) providerOf(member int) string {
	provider, _, _ := strings.Cut(u.nameOf(member), "/")
	return provider
}

// taskOf returns the task as a member is given it: as if the stage were its own.
func (u *unit) taskOf(member int) *agent.Task {
	own, stage := *u.task, *u.task.StageSpec
	stage.Cascade = cascading.Cascade{}
	own.StageSpec = &stage
	if woken := own.WakeCall; woken != nil {
		if _, ok := ascent.MemberOf(woken.Handle); ok { // what else a member waited for is its own
			own.WakeCall = nil
		}
	}

	if member == u.last() {
		return &own
	}
	spec := *u.task.Spec
	spec.Provider, spec.Model, _ = strings.Cut(u.nameOf(member), "/")
	spec.Fallbacks = nil
	if spec.Provider != u.task.Spec.Provider {
		spec.Vars = settings.WithoutServer(spec.Vars) // they are of the oracle's provider
	}
	own.Spec = &spec
	return &own
}

// callsOf returns the calls of a member, whose journal is its own.
func (u *unit) callsOf(member int) agent.Calls {
	return &apart{Calls: u.calls, prefix: "member " + strconv.Itoa(member) + ": "}
}

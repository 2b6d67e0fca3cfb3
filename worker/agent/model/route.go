package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/internal/placement"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/decorator"
)

// An alternate is a model that stands for the model of a program.
type alternate struct {
	asked   string // "provider/model"
	agent   *Agent // of its provider; nil if there is none
	program *Program
	err     error // why it cannot be asked here; nil if it can
}

// addOthers makes the models ready that stand for the model of a program. What units may read is by
// the longest prompt and by the model whose window leaves least beside its answer, so that each unit
// fits all of them: models think for different times, as not each takes all parameters. A job that
// repeats another asks none, and has units as large.
func (a *Agent) addOthers(p *Program, spec *mapreduce.JobSpec, stage *agent.StageSpec) {
	p.Narrowest, p.Bound, p.Most = p.Window, p.AnswerBound(), p.AnswerBound()

	for _, name := range spec.Fallbacks {
		other := a.alternateOf(name, spec, stage)
		if spec.Replay == "" {
			p.others = append(p.others, other)
		}
		if other.err != nil {
			continue
		}

		p.fixed, p.overhead = max(p.fixed, other.program.fixed), max(p.overhead, other.program.overhead)
		p.Most = max(p.Most, other.program.Most)
		p.joinSight(other.program)

		// Of two models, the one counts that leaves less room for a prompt beside its
		// answer.
		if w, bound := other.program.Narrowest, other.program.Bound; w > 0 && (p.Narrowest == 0 || w-bound < p.Narrowest-p.Bound) {
			p.Narrowest, p.Bound = w, bound
		}
	}
}

// alternateOf makes one of them ready.
func (a *Agent) alternateOf(name string, spec *mapreduce.JobSpec, stage *agent.StageSpec) alternate {
	own := *spec
	own.Provider, own.Model, _ = strings.Cut(name, "/")
	own.Fallbacks = nil

	other := alternate{asked: name, agent: a}
	if own.Provider != spec.Provider {
		other.agent = a.cfg.Others(own.Provider)
		own.Vars = settings.WithoutServer(spec.Vars)
	}

	if other.agent == nil {
		other.err = fmt.Errorf("there is no provider %q here that asks models", own.Provider)
		return other
	}

	other.program, other.err = other.agent.ProgramOf(&own, stage)
	return other
}

// checkOthers returns why a model cannot be asked that is to stand for the program's own.
func (p *Program) checkOthers() error {
	for _, other := range p.others {
		if other.err != nil {
			return errs.Field("model", "%s, which is to be asked while %s is away: %w", other.asked, p.Model, other.err)
		}
	}
	return nil
}

// routeOf returns what a session asks: its model, or the first of several that answers.
func (s *Session) routeOf() llm.Provider {
	reserve := decorator.NewReserve(maxCorrections)
	if len(s.others) == 0 {
		return s.Agent.stackOf(s, s.Program, reserve, false)
	}

	route := &decorator.Route{Health: s.Agent.cfg.Health, Failing: s.Calls.Failing}
	add := func(asked string, a *Agent, p *Program, elsewhere bool) {
		route.Choices = append(route.Choices, decorator.Choice{
			Provider: a.stackOf(s, p, reserve, elsewhere), Asked: asked,
			Adapt: func(req *llm.Request) *llm.Request { return adaptRequest(req, a, p) },
		})
	}

	// The last model has none behind it, and waits as usual.
	usable := slices.DeleteFunc(slices.Clone(s.others), func(o alternate) bool { return o.err != nil })
	add(decorator.BreakerName(s.Provider, s.Model), s.Agent, s.Program, len(usable) > 0)
	for i, other := range usable {
		add(other.asked, other.agent, other.program, i < len(usable)-1)
	}
	return route
}

// How long a call waits at a model while another could be asked.
const (
	elsewherePatience = 2 * time.Second
	elsewhereAttempts = 2
)

// stackOf returns the model of a program as a session asks it: paid, watched over, repeated and
// checked. elsewhere says that there is another to be asked next.
func (a *Agent) stackOf(s *Session, p *Program, reserve *decorator.Reserve, elsewhere bool) llm.Provider {
	ask := a.cfg.Limited(a.doubt.Around(&decorator.NextTier{Provider: p.Vendor, Takes: placement.FlexTakes}, a.Sizes), a.Sizes.Prompt)
	retry := &decorator.Retry{Random: a.cfg.Random}
	if limit, ok := ask.(*decorator.Limit); ok && elsewhere {
		limit.Elsewhere, limit.Patience = true, elsewherePatience
	}
	if elsewhere {
		retry.Elsewhere, retry.Attempts, retry.Patience = true, elsewhereAttempts, elsewherePatience
	}

	// Each stands around the one before, in the order that package decorator gives.
	ask = &decorator.Guard{Provider: ask, Caller: s.Calls, Elsewhere: elsewhere}
	retry.Provider = &decorator.Meter{Provider: ask, Purse: s.Calls, Prices: p.prices, Count: a.Sizes.Worst}
	ask = retry
	if tier := p.realTime(s.Task); tier != "" {
		ask = decorator.InTier{Provider: retry, Tier: tier}
	}
	byBatch := p.batches != nil && !HasSpoiled(s.Calls)
	if byBatch {
		ask = &decorator.Batched{
			Provider: ask, Vendor: p.batches, Desk: s.Calls, Prices: p.prices, Count: a.Sizes.Worst, Kept: s.keptFor,
			Rescued: !s.Task.Spec.Deadline.IsZero(), AtOnce: p.placed && s.Task.Tier != parameters.Batch,
			Earlier: s.Task.Attempt > 1,
			Origin:  decorator.Origin{Scope: string(s.Task.Job), Provider: p.Provider, Again: CountRefused(s.Calls)},
		}
	}
	ask = &decorator.Structured{Provider: ask, Unchecked: p.Role != "", Reserve: reserve}
	if byBatch {
		ask = Spoiling(ask, s.Calls)
	}
	if s.Calls.Shares() {
		origin := a.answerOrigin(p, s.Task.Spec.Tenant)
		origin.Again = CountRefused(s.Calls)
		ask = &decorator.Cache{Provider: ask, Answers: s.Calls, Origin: origin, Prices: p.prices, Saved: s.Calls.Saved}
	}
	return ask
}

// keptFor returns what of the job's budget stays reserved for a call that waits for a batch.
func (s *Session) keptFor(tokens, costMicros int64) int64 {
	switch {
	case s.Task.Spec.Budget == 0:
		return 0
	case s.Task.Spec.BudgetIn == mapreduce.InDollars:
		return costMicros
	}
	return tokens
}

// adaptRequest returns a request for the model of a program: under its name, with the form
// of the answer in the instructions if its provider does not pass that on, and without what
// only other vendors can read.
func adaptRequest(req *llm.Request, a *Agent, p *Program) *llm.Request {
	next := *req
	next.Model, next.Parameters = p.Model, p.Parameters

	// The instructions may tell of the form already, for another model: it stands in them
	// once, or not at all.
	if req.Schema != nil {
		form := formText(req.Schema)
		next.System = strings.TrimSuffix(next.System, form)
		if p.Vendor.Can().Untold {
			next.System += form
		}
	}

	next.Messages = messagesFor(p.Provider, req.Messages)
	next.Prompt = a.Sizes.Prompt(&next)
	return &next
}

// messagesFor returns a conversation as a provider takes it: without what only others can read, and with
// the calls of others under ids that every provider takes. They do not take each other's: Mistral wants
// nine letters and digits, Anthropic and Bedrock none but letters, digits, - and _ (Kimi has
// functions.fetch:0), OpenAI at most 40, and Anthropic none twice, where Ollama and Google give none or
// count them anew in each turn.
func messagesFor(provider string, messages []llm.Message) []llm.Message {
	out := make([]llm.Message, 0, len(messages))
	renamed, calls := make(map[string]string), 0

	for _, m := range messages {
		said := llm.Message{Role: m.Role}
		for _, part := range m.Parts {
			isOther := part.Of != "" && part.Of != provider
			if part.Opaque != nil && isOther {
				continue
			}

			if part.Call != nil {
				calls++
				delete(renamed, part.Call.ID) // a result is of the latest call of its id
				if isOther {
					renamed[part.Call.ID] = fmt.Sprintf("call%05d", calls)
				}
			}
			said.Parts = append(said.Parts, renamedPart(part, renamed))
		}

		out = append(out, said)
	}

	return out
}

// renamedPart returns a part with the id of its call, or of the call whose result it is, by ids.
func renamedPart(part llm.Part, ids map[string]string) llm.Part {
	if part.Call != nil && ids[part.Call.ID] != "" {
		call := *part.Call
		call.ID = ids[call.ID]
		part.Call = &call
	}

	if part.Result != nil && ids[part.Result.ID] != "" {
		result := *part.Result
		result.ID = ids[result.ID]
		part.Result = &result
	}
	return part
}

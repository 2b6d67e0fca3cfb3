package model

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/model/memory"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/decorator"
)

// An alternate is a model that stands for the model of a program.
type alternate struct {
	asked   string // "provider/model"
	agent   *Agent // of its provider; nil if there is none
	program *program
	err     error // why it cannot be asked here; nil if it can
}

// addOthers makes the models ready that stand for the model of a program. What units may read is by
// the longest prompt and by the model whose window leaves least beside its answer, so that each unit
// fits all of them: models think for different times, as not each takes all parameters. A job that
// repeats another asks none.
func (a *Agent) addOthers(p *program, spec *mapreduce.JobSpec, stage *agent.StageSpec) {
	p.window, p.bound, p.most = p.Window, p.AnswerBound(), p.AnswerBound()
	if spec.Replay != "" {
		return
	}
	for _, name := range spec.Fallbacks {
		other := a.alternateOf(name, spec, stage)
		p.others = append(p.others, other)
		if other.err != nil {
			continue
		}
		p.fixed, p.overhead = max(p.fixed, other.program.fixed), max(p.overhead, other.program.overhead)
		p.most = max(p.most, other.program.most)
		if w, bound := other.program.window, other.program.bound; w > 0 && (p.window == 0 || w-bound < p.window-p.bound) {
			p.window, p.bound = w, bound
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
		own.Vars = maps.Clone(spec.Vars) // without what is said of the first provider
		for _, of := range []string{settings.VarBaseURL, settings.VarWindow, settings.VarTools} {
			delete(own.Vars, of)
		}
	}
	if other.agent == nil {
		other.err = fmt.Errorf("there is no provider %q here that asks models", own.Provider)
		return other
	}
	other.program, other.err = other.agent.programOf(&own, stage)
	return other
}

// checkOthers returns why a model cannot be asked that is to stand for the program's own.
func (p *program) checkOthers() error {
	for _, other := range p.others {
		if other.err != nil {
			return errs.Field("model", "%s, which is to be asked while %s is away: %w", other.asked, p.Model, other.err)
		}
	}
	return nil
}

// routeOf returns what a session asks: its model, or the first of several that answers.
func (s *session) routeOf() llm.Provider {
	reserve := decorator.NewReserve(maxCorrections)
	if len(s.others) == 0 {
		return s.agent.stackOf(s, s.program, reserve, false)
	}

	router, _ := s.calls.(agent.Router)
	route := &decorator.Route{Health: s.agent.cfg.Health, Failing: func(name string) {
		if router != nil {
			router.Failing(name)
		}
	}}
	add := func(asked string, a *Agent, p *program, elsewhere bool) {
		route.Choices = append(route.Choices, decorator.Choice{
			Provider: a.stackOf(s, p, reserve, elsewhere), Asked: asked,
			Adapt: func(req *llm.Request) *llm.Request { return adaptRequest(req, a, p) },
		})
	}
	usable := slices.DeleteFunc(slices.Clone(s.others), func(o alternate) bool { return o.err != nil })
	add(decorator.BreakerName(s.Provider, s.Model), s.agent, s.program, len(usable) > 0)
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
func (a *Agent) stackOf(s *session, p *program, reserve *decorator.Reserve, elsewhere bool) llm.Provider {
	ask := a.cfg.Limited(a.doubt.Around(p.vendor, a.sizes), a.sizes.Prompt)
	retry := &decorator.Retry{Random: a.cfg.Random}
	if limit, ok := ask.(*decorator.Limit); ok && elsewhere {
		limit.Elsewhere, limit.Patience = true, elsewherePatience
	}
	if elsewhere {
		retry.Elsewhere, retry.Attempts, retry.Patience = true, elsewhereAttempts, elsewherePatience
	}

	ask = &decorator.Guard{Provider: ask, Caller: s.calls, Elsewhere: elsewhere}
	retry.Provider = &decorator.Meter{Provider: ask, Purse: s.calls, Prices: p.prices, Count: a.sizes.Worst}
	ask = &decorator.Structured{Provider: retry, Unchecked: p.role != "", Reserve: reserve}
	if sharer, ok := s.calls.(agent.Sharer); ok && sharer.Shares() {
		origin := a.answerOrigin(p, s.task.Spec.Tenant)
		origin.Again = memory.CountRefused(s.calls)
		ask = &decorator.Cache{Provider: ask, Answers: sharer, Origin: origin, Prices: p.prices, Saved: savingsSink(s.calls)}
	}
	return ask
}

// adaptRequest returns a request as the model of a program is asked it: by its name, told of the form
// of the answer if its provider only holds it to that, and without what only other vendors can read.
func adaptRequest(req *llm.Request, a *Agent, p *program) *llm.Request {
	next := *req
	next.Model, next.Parameters = p.Model, p.Parameters
	if req.Schema != nil {
		form := formText(req.Schema)
		next.System = strings.TrimSuffix(next.System, form)
		if p.vendor.Can().Untold {
			next.System += form
		}
	}
	next.Messages = make([]llm.Message, 0, len(req.Messages))
	for _, m := range req.Messages {
		said := llm.Message{Role: m.Role}
		for _, part := range m.Parts {
			if part.Opaque == nil || part.Of == "" || part.Of == p.Provider {
				said.Parts = append(said.Parts, renamedCalls(part, p.Provider))
			}
		}
		next.Messages = append(next.Messages, said)
	}
	next.Prompt = a.sizes.Prompt(&next)
	return &next
}

// renamedCalls returns a part with the id of its call in a form that a provider takes: Mistral wants
// nine letters and digits, and others give longer ones.
func renamedCalls(part llm.Part, provider string) llm.Part {
	if provider != "mistral" {
		return part
	}
	if part.Call != nil {
		call := *part.Call
		call.ID = shortID(call.ID)
		part.Call = &call
	}
	if part.Result != nil {
		result := *part.Result
		result.ID = shortID(result.ID)
		part.Result = &result
	}
	return part
}

// shortIDLength is that of the ids of calls at Mistral.
const shortIDLength = 9

// shortID returns an id of nine letters and digits for another, always the same.
func shortID(id string) string {
	if len(id) == shortIDLength && strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == "" {
		return id
	}
	h := fnv.New64a()
	h.Write([]byte(id))
	text := strconv.FormatUint(h.Sum64(), 36)
	return cmp.Or(text[:min(len(text), shortIDLength)], "0") + strings.Repeat("0", max(0, shortIDLength-len(text)))
}

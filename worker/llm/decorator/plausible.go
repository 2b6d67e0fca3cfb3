package decorator

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/coditect/mapreduce/worker/llm"
)

// Sizes are the bounds of what a call can take, in tokens, whatever the model.
type Sizes interface {
	Least(*llm.Request) int64    // of the prompt
	Worst(*llm.Request) int64    // of the prompt
	LeastOf(*llm.Response) int64 // of the answer
}

// Plausible takes usage that cannot be for usage that was not reported, so that a Meter above
// it charges the reservation: a server that states nothing, nothing for a prompt, or negative
// numbers would be free, and a budget would bound nothing. It stands around the vendor.
//
// A server that states less than its call took, but not less than the call can take, is
// believed.
type Plausible struct {
	llm.Provider
	Sizes Sizes

	// Note is told of each answer whose usage is not believed, and why. Defaults to nothing.
	Note func(model llm.Model, why string)
}

// Complete implements Provider.
func (p *Plausible) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	res, err := p.Provider.Complete(ctx, req)
	if err != nil {
		p.judgeFailed(req, err)
		return res, err
	}

	if why := p.doubtUsage(req, res.Usage, p.Sizes.LeastOf(res)); why != "" {
		res.Usage, res.Written = llm.Usage{}, nil
		p.note(req.Model, why)
	}
	return res, nil
}

// judgeFailed forgets usage of a failed call that cannot be. Of a prompt alone a call reports
// that broke off; what there is of an answer then is not known.
func (p *Plausible) judgeFailed(req *llm.Request, err error) {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Usage == (llm.Usage{}) {
		return
	}

	usage := e.Usage
	usage.Reported = true
	if why := p.doubtUsage(req, usage, 0); why != "" {
		e.Usage = llm.Usage{}
		p.note(req.Model, why)
	}
}

func (p *Plausible) note(model llm.Model, why string) {
	if p.Note != nil {
		p.Note(model, why)
	}
}

// Usage above this, and above farAbove reservations, is no usage of a call. Below it, a server
// may have added to the prompt, or a model may have thought for longer than it was to.
const (
	longAnyway = 1 << 18
	farAbove   = 16
)

// doubtUsage says why a call cannot have taken what its server says, or nothing.
func (p *Plausible) doubtUsage(req *llm.Request, u llm.Usage, answer int64) string {
	switch least := p.Sizes.Least(req); {
	case !u.Reported:
		return "it reports none, or numbers that no call has"
	case !u.Possible():
		return fmt.Sprintf("it reports %v, which no call has", u)
	case u.In() < max(1, least):
		return fmt.Sprintf("it reports %d tokens for a prompt of at least %d", u.In(), max(1, least))
	case u.Output < answer:
		return fmt.Sprintf("it reports %d tokens for an answer of at least %d", u.Output, answer)
	case u.Total() > max(longAnyway, farAbove*(p.Sizes.Worst(req)+req.AnswerBound())):
		return fmt.Sprintf("it reports %v for a call of at most %d", u, p.Sizes.Worst(req)+req.AnswerBound())
	}
	return ""
}

// A Doubter passes on the first doubt about each model. It is safe for concurrent use.
type Doubter struct {
	tell func(name, why string)

	mu   sync.Mutex          // guards told
	told map[string]struct{} // by provider and model
}

// NewDoubter returns a Doubter that tells of models by the names of breakers.
func NewDoubter(tell func(name, why string)) *Doubter {
	return &Doubter{tell: tell, told: make(map[string]struct{})}
}

// maxDoubted bounds the models that are told apart; a worker of others' jobs is asked for any.
const maxDoubted = 1000

// Around returns a provider whose usage is believed only if it can be.
func (d *Doubter) Around(p llm.Provider, sizes Sizes) llm.Provider {
	return &Plausible{Provider: p, Sizes: sizes, Note: func(model llm.Model, why string) {
		d.noteOnce(BreakerName(p.Name(), model), why)
	}}
}

func (d *Doubter) noteOnce(name, why string) {
	d.mu.Lock()
	_, known := d.told[name]
	if !known && len(d.told) < maxDoubted {
		d.told[name] = struct{}{}
	}
	full := len(d.told) == maxDoubted && !known
	d.mu.Unlock()

	if !known && !full && d.tell != nil {
		d.tell(name, why)
	}
}

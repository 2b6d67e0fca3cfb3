package decorator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/llm"
)

// Route asks the first of several models that answers. The next is asked if one does not answer for a
// reason that is no fault of the request: its breaker is open, it has no room, its key or its account
// is refused, it fails or is too slow. A model that would not answer such a request, or answers it
// wrongly, is no reason. Each model has its own decorators below, so that nothing but the failure
// itself is paid for twice.
//
// If none answers, the error is the one that keeps the unit waiting for the shortest time, if any
// does: then the unit loses nothing. Otherwise it is one that is worth another attempt, or the first.
type Route struct {
	Choices []Choice // at least one, in the order in which they are asked
	Health  *Health  // of all models that the process asks

	// Failing is told which model did not answer. It is required.
	Failing func(name string)
}

// A Choice is one of the models of a Route.
type Choice struct {
	llm.Provider
	Asked string // "provider/model"

	// Adapt returns a request as this model is asked it. It does not change req.
	Adapt func(req *llm.Request) *llm.Request
}

var _ llm.Provider = (*Route)(nil)

// Name implements llm.Provider.
func (r *Route) Name() string { return r.Choices[0].Name() }

// Can implements llm.Provider.
func (r *Route) Can() llm.Capabilities { return r.Choices[0].Can() }

// Complete implements llm.Provider.
func (r *Route) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	var failed routeFailure
	for _, despite := range []bool{false, true} { // the second time also those that cannot have been mended
		for _, c := range r.Choices {
			if !despite && r.Health.isAway(c.Asked) || failed.has(c.Asked) {
				continue
			}

			res, err := c.Provider.Complete(ctx, c.Adapt(req))
			if err == nil {
				r.Health.answered(c.Asked, res.Cached, &failed)
				return c.label(withUsage(res, failed.usage)), nil
			}
			// An error that is of the request itself would be that of every other model
			// too.
			if ctx.Err() != nil || !isElsewhere(err) {
				return nil, err
			}

			failed.add(c.Asked, err)
			r.Health.failed(c.Asked, err)
			r.Failing(c.Asked)
		}

		if len(failed.names) > 0 {
			break
		}
	}

	return nil, failed.err()
}

// label names in a response the model that gave it. It names the provider in parts that
// only go back to their own vendor, and in calls, whose ids other vendors may not take.
func (c *Choice) label(res *llm.Response) *llm.Response {
	out := *res
	out.By = c.Asked
	for i := range out.Parts {
		if out.Parts[i].Opaque != nil || out.Parts[i].Call != nil {
			out.Parts[i].Of = c.Name()
		}
	}
	return &out
}

// isElsewhere reports whether an error says nothing of the request, so that another model may answer it.
func isElsewhere(err error) bool {
	if _, ok := errors.AsType[*agent.BreakerError](err); ok {
		return true
	}

	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return false
	}

	switch e.Kind {
	case llm.Auth, llm.Permission, llm.Billing, llm.NotFound, llm.NotAPI, llm.NotThere,
		llm.RateLimited, llm.Overloaded, llm.Server, llm.Timeout, llm.Network, llm.CutOff, llm.Garbled, llm.Empty:
		return true
	}
	return false
}

// A routeFailure is how the models of a route failed one request.
type routeFailure struct {
	names  []string
	errs   []error
	usage  []llm.Usage
	waits  *agent.BreakerError // that of the shortest wait; nil if none waits
	passes error               // the first that is worth another attempt
}

func (f *routeFailure) has(name string) bool { return slices.Contains(f.names, name) }

func (f *routeFailure) add(name string, err error) {
	f.names, f.errs = append(f.names, name), append(f.errs, err)
	f.usage = append(f.usage, spentUsage(err))

	if b, ok := errors.AsType[*agent.BreakerError](err); ok {
		if f.waits == nil || b.OpenFor < f.waits.OpenFor {
			f.waits = b
		}
		return
	}

	if e, ok := errors.AsType[*llm.Error](err); ok && f.passes == nil && !isLasting(e.Kind) {
		f.passes = fmt.Errorf("%s: %w", name, err)
	}
}

// err returns the error of the request.
func (f *routeFailure) err() error {
	switch {
	case f.waits != nil:
		return f.waits
	case f.passes != nil:
		return f.passes
	}
	return fmt.Errorf("%s: %w", f.names[0], f.errs[0])
}

// isLasting reports whether a failure goes on until somebody does something about it.
func isLasting(kind llm.Kind) bool {
	switch kind {
	case llm.Auth, llm.Permission, llm.Billing, llm.NotFound, llm.NotAPI, llm.NotThere:
		return true
	}
	return false
}

// Health is what a process knows of which models answer, where others stand for them. It is safe for
// concurrent use. Whether calls to a model are worth making, their breakers and limits decide; of
// failures that somebody has to mend, Health does.
type Health struct {
	now  func() time.Time
	told func(line string)

	mu   sync.Mutex // guards away
	away map[string]absence
}

// An absence is that a model does not answer.
type absence struct {
	until time.Time // it is not asked before; zero if that is for its breaker to say
	told  bool
}

// lastingFor is for how long a model is not asked whose failure somebody has to mend.
const lastingFor = 5 * time.Minute

// maxAway bounds the models of which something is known: jobs name them as they like.
const maxAway = 1024

// NewHealth returns a Health of models that all answer. told is given one line when another model
// answers in the place of one, and when that one answers again; it is called without locks.
func NewHealth(now func() time.Time, told func(line string)) *Health {
	return &Health{now: now, told: told, away: make(map[string]absence)}
}

// isAway reports whether a model is not to be asked now.
func (h *Health) isAway(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now().Before(h.away[name].until)
}

// failed notes that a model did not answer.
func (h *Health) failed(name string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was, known := h.away[name]
	if !known && len(h.away) == maxAway {
		clear(h.away)
	}
	if e, ok := errors.AsType[*llm.Error](err); ok && isLasting(e.Kind) {
		was.until = h.now().Add(lastingFor)
	}
	h.away[name] = was
}

// answered notes that a model answered, in the place of those that had failed the same request. An
// answer that was kept says nothing of the model.
func (h *Health) answered(name string, kept bool, failed *routeFailure) {
	if kept {
		return
	}

	var lines []string

	h.mu.Lock()
	if was, known := h.away[name]; known {
		delete(h.away, name)
		if was.told {
			lines = append(lines, name+" answers again")
		}
	}

	for i, other := range failed.names {
		if was := h.away[other]; !was.told {
			was.told = true
			h.away[other] = was
			lines = append(lines, fmt.Sprintf("%s does not answer (%s): %s is asked in its place", other, shorten.Line(failed.errs[i].Error(), maxReason), name))
		}
	}

	// told is called without the lock.
	h.mu.Unlock()
	for _, line := range lines {
		h.told(line)
	}
}

// maxReason bounds the reason in a line for people, in characters.
const maxReason = 200

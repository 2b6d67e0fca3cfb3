package decorator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/llm"
)

// A Purse is what calls are paid from, and where they are written down. agent.Calls is one:
// see there.
type Purse interface {
	Reserve(ctx context.Context, tokens, costMicros int64) error
	Spent(c mapreduce.Charge)
	Saved(s mapreduce.Savings)
	Captures() mapreduce.Capture
	Record(c mapreduce.Call)
}

// Meter reserves the worst case before each call, and charges the true usage after it,
// for failed calls too. If a call breaks off before the vendor reports its usage, but
// after the request was sent, Meter charges the reservation: the vendor charges the call
// too, and a budget is never overspent. If the vendor has reported the usage of the
// prompt, Meter charges the reservation only for the answer.
type Meter struct {
	llm.Provider
	Purse  Purse
	Prices *llm.Prices

	// Count returns no fewer tokens than a request's prompt has. It is
	// required.
	Count func(*llm.Request) int64
}

// Complete implements Provider.
func (m *Meter) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	prompt := m.Count(req)
	most, known := m.Prices.Most(m.Name(), req.Model, prompt, req.AnswerBound(), req.Parameters.Tier)
	if !known {
		most = -1
	}
	if err := m.Purse.Reserve(ctx, prompt+req.AnswerBound(), most); err != nil {
		return nil, err
	}

	worst := llm.Usage{Input: prompt, Output: req.AnswerBound()}
	usage := worst // of a call that panics
	start := time.Now()

	var res *llm.Response
	var err error
	// A call is charged however it ends, also if the provider panics.
	defer func() { m.recordCall(req, start, m.settleCall(req, res, usage), usage, res, err) }()
	res, err = m.Provider.Complete(ctx, req)

	switch {
	case err != nil:
		usage = failedUsage(err, worst)
	case res.Usage.Reported || res.Cached:
		usage = res.Usage
	}

	return res, err
}

// failedUsage returns the usage to charge for a failed call.
func failedUsage(err error, worst llm.Usage) llm.Usage {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return llm.Usage{} // it was not made
	}

	// Usage that was not reported is charged by what the call could take at most.
	switch {
	case e.Usage.Reported || e.Kind == llm.NotAPI || e.Status != 200 && (e.Status != 0 || !e.Sent):
		return e.Usage
	case e.Usage.In() > 0:
		u := e.Usage
		u.Output = max(u.Output, worst.Output)
		return u
	}
	return worst
}

// chargedTier returns the tier whose price a call is charged: the one that its answer names. Without one
// nobody knows whether a cheaper tier was kept to.
func chargedTier(req *llm.Request, res *llm.Response) string {
	switch asked := req.Parameters.Tier; {
	case res != nil && res.Tier != "":
		return res.Tier
	case asked == "", asked == parameters.Flex, asked == parameters.FlexFirst:
		return parameters.Standard
	default:
		return asked
	}
}

// settleCall charges a call, and returns its cost.
func (m *Meter) settleCall(req *llm.Request, res *llm.Response, u llm.Usage) (cost int64) {
	model, tier := req.Model, chargedTier(req, res)
	cost, priced := m.Prices.Cost(m.Name(), model, u, tier)

	charge := mapreduce.Charge{
		Model: BreakerName(m.Name(), model), Tier: tier, Tokens: mapreduce.Tokens{In: u.In(), Out: u.Output}, CostMicros: cost,
	}
	if !priced {
		charge.Unpriced = charge.Tokens.Total()
	}
	if res != nil && !res.Cached {
		charge.Calls = 1
	}
	m.Purse.Spent(charge)

	// What caches have saved is what the same prompt would have cost without them.
	if u.In() > u.Input {
		plain, _ := m.Prices.Cost(m.Name(), model, llm.Usage{Input: u.In(), Output: u.Output}, tier)
		m.Purse.Saved(mapreduce.Savings{CacheWrite: u.CacheWrite + u.CacheWrite1h, CacheRead: u.CacheRead, PromptMicros: plain - cost})
	}
	return cost
}

// recordCall captures a call for the trace of its job, if that wants it.
func (m *Meter) recordCall(req *llm.Request, start time.Time, cost int64, u llm.Usage, res *llm.Response, err error) {
	captures := m.Purse.Captures()
	if captures == mapreduce.CaptureOff {
		return
	}

	c := mapreduce.Call{
		Turn: req.Trace.Turn, Name: BreakerName(m.Name(), req.Model), Latency: time.Since(start),
		Tokens: mapreduce.Tokens{In: u.In(), Out: u.Output}, CostMicros: cost,
	}

	if err != nil {
		c.Error = err.Error()
	}
	if captures == mapreduce.CaptureFull {
		c.Prompt = renderRequest(req)
		if res != nil {
			c.Answer = renderResponse(res)
		}
	}

	m.Purse.Record(c)
}

// renderRequest returns a request as text for people.
func renderRequest(r *llm.Request) string {
	var b strings.Builder
	b.WriteString(r.System)
	for _, m := range r.Messages {
		b.WriteString("\n\n" + string(m.Role) + ":\n")
		writeParts(&b, m.Parts)
	}
	return b.String()
}

// renderResponse returns a response as text for people.
func renderResponse(r *llm.Response) string {
	var b strings.Builder
	writeParts(&b, r.Parts)
	return b.String()
}

func writeParts(b *strings.Builder, parts []llm.Part) {
	for _, p := range parts {
		b.WriteString(p.Text)
		if p.Picture != nil {
			fmt.Fprintf(b, "[a picture: %s, %d×%d pixels, SHA-256 %s]\n", p.Picture.MediaType, p.Picture.Width, p.Picture.Height, p.Picture.SHA256)
		}
		if p.Call == nil && p.Result == nil {
			continue
		}
		if data, err := json.Marshal(llm.Part{Call: p.Call, Result: p.Result}); err == nil { // of what came as JSON
			b.Write(data)
		}
	}
}

package llm

import (
	"context"
	"errors"
)

// A Purse is what calls are paid from. agent.Calls is one: see there.
type Purse interface {
	Reserve(ctx context.Context, tokens int64) error
	Spent(in, out, costMicros int64)
}

// Meter reserves the worst case before each call, and settles the truth after
// it, of failed calls too. A call that broke off after its answer had begun,
// before its usage was told, is charged as it was reserved: its vendor charges
// it as well, and a budget is never overspent.
type Meter struct {
	Provider
	Purse  Purse
	Prices *Prices
	Batch  bool // at the price of batches

	// Count returns no fewer tokens than a request's prompt has. It is
	// required.
	Count func(*Request) int64
}

// Complete implements Provider.
func (m *Meter) Complete(ctx context.Context, req *Request) (*Response, error) {
	prompt := m.Count(req)
	if err := m.Purse.Reserve(ctx, prompt+req.maxTokens()); err != nil {
		return nil, err
	}
	worst := Usage{Input: prompt, Output: req.maxTokens()}
	usage := worst // of a call that panics
	defer func() { m.settle(req.Model, usage) }()
	res, err := m.Provider.Complete(ctx, req)
	switch {
	case err != nil:
		usage = failedUsage(err, worst)
	case res.Usage.Reported || res.Cached:
		usage = res.Usage
	}
	return res, err
}

// failedUsage is what a failed call is charged.
func failedUsage(err error, worst Usage) Usage {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return Usage{} // it was not made
	}
	switch {
	case e.Usage.Reported || e.Status != 200 || e.Kind == NotAPI:
		return e.Usage
	case e.Usage.In() > 0:
		u := e.Usage
		u.Output = max(u.Output, worst.Output)
		return u
	}
	return worst
}

func (m *Meter) settle(model Model, u Usage) {
	cost, _ := m.Prices.Cost(m.Name(), model, u, m.Batch)
	m.Purse.Spent(u.In(), u.Output, cost)
}

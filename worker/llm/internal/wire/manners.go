package wire

import (
	"context"
	"errors"
	"strings"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

// An Asker puts requests into a vendor's words by the manners of its servers.
type Asker interface {
	// OwnForm returns manners by which the asker can ask: some have no way between two others.
	OwnForm(m manners.Manners) manners.Manners

	// SentBy says what a request holds, made by some manners, that a server may refuse.
	SentBy(req *llm.Request, with manners.Manners) manners.Sent

	// Ask makes one request. The error is an *llm.Error.
	Ask(c *Call, req *llm.Request, with manners.Manners) (*llm.Response, error)
}

// OwnForm is Asker.OwnForm of what has a way between any two others: answers are calls of a tool at
// least, if the job says so.
func (d *Dialer) OwnForm(m manners.Manners) manners.Manners {
	if d.Config.ToolMode {
		m.Form = max(m.Form, manners.ByTool)
	}
	return m
}

// SentBy is Asker.SentBy of what all formats have. That requests begin alike, OpenAI's formats alone
// can say.
func (*Dialer) SentBy(req *llm.Request, with manners.Manners) manners.Sent {
	bits, effort := sentParameters(req, with)
	return manners.Sent{
		Schema: req.Schema != nil, Tools: len(req.Tools) > 0, Stream: !with.NoStream, System: req.System != "",
		Bound: AnswerBound(req, with), Parameters: bits, Effort: effort,
	}
}

// maxRefusals bounds how often one request is made again without what was refused.
const maxRefusals = 8

// CompleteBy asks as llm.Provider says, by what is known of the manners of the server. What it
// refuses of a request is left out of it, and of all later ones for the model: see package manners.
func (d *Dialer) CompleteBy(ctx context.Context, req *llm.Request, a Asker) (*llm.Response, error) {
	known := d.KnownManners(req.Model)
	for refusals := 0; ; refusals++ {
		with := a.OwnForm(known)
		c := d.BeginCall(ctx, req)
		res, err := a.Ask(c, req, with)
		c.EndCall()
		if err == nil {
			d.Config.Manners.Works(d.address(), string(req.Model))
			return res, nil
		}

		next, learned := c.learn(err, req.Model, known, with, a.SentBy(req, with))
		if !learned || refusals == maxRefusals {
			return nil, err
		}
		known = next
	}
}

// KnownManners returns what is known of a model.
func (d *Dialer) KnownManners(model llm.Model) manners.Manners {
	return d.Config.Manners.Of(d.address(), string(model))
}

// address is what manners are known of, beside the model.
func (d *Dialer) address() string { return d.Base.Host + strings.TrimSuffix(d.Base.Path, "/") }

// learn returns the manners to try next, after a request failed with err that was made by the
// manners with, where known was known. It is false if the failure stands: nothing was refused, or
// it has nothing to do with what can be left out.
func (c *Call) learn(err error, model llm.Model, known, with manners.Manners, sent manners.Sent) (manners.Manners, bool) {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || c.refuse.Status == 0 || e.Usage.Total() > 0 || e.Kind == llm.TooLarge || e.Kind == llm.Auth || e.Kind == llm.Billing || e.Kind == llm.RateLimited {
		return with, false
	}
	return c.d.Config.Manners.Refused(c.d.address(), string(model), known, with, c.refuse, sent)
}

// AnswerBound returns the tokens that an answer may have, of which a server takes no more than with
// says.
func AnswerBound(req *llm.Request, with manners.Manners) int64 {
	if with.Most > 0 {
		return min(with.Most, req.AnswerBound())
	}
	return req.AnswerBound()
}

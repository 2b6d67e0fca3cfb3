// Package responses asks models by OpenAI's Responses, where what a model thought is kept across
// the turns of a conversation: the vendor seals it, and it is handed back with the next turn.
// Nothing is stored at the vendor.
package responses

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

// A Server serves the interface. Its zero fields are what the interface's own vendor does.
type Server struct {
	Name    string    // of its provider
	URL     string    // its base, unless the configuration has another
	Sign    wire.Sign // proves who asks. Defaults to the key as a bearer token, if there is one
	Dialect llm.Dialect

	// Embedder asks the server for vectors, by another of its interfaces; nil if it has none.
	Embedder llm.Embedder
}

// path is where calls go, below the base.
const path = "responses"

// A provider asks models of a server.
type provider struct {
	*wire.Dialer
	server Server
}

// An embedding provider asks for vectors, too.
type embedding struct {
	*provider
	llm.Embedder
}

// New returns the provider of a server. The error is an *llm.Error of the kind Invalid, if the
// address is no address.
func New(cfg llm.Config, server Server) (llm.Provider, error) {
	p, err := newProvider(cfg, server)
	if err != nil {
		return nil, err
	}
	if server.Embedder == nil {
		return p, nil
	}
	return embedding{p, server.Embedder}, nil
}

func newProvider(cfg llm.Config, server Server) (*provider, error) {
	d, err := wire.NewDialer(cfg, server.URL, wire.Format{Whole: wholeEvents, Sign: server.Sign})
	if err != nil {
		return nil, err
	}
	return &provider{Dialer: d, server: server}, nil
}

// Name implements llm.Provider.
func (p *provider) Name() string { return p.server.Name }

// Can implements llm.Provider.
func (p *provider) Can() llm.Capabilities {
	return llm.Capabilities{Dialect: p.server.Dialect, ForceTool: true}
}

// Complete implements llm.Provider.
func (p *provider) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	return p.CompleteBy(ctx, req, p)
}

// SentBy implements wire.Asker.
func (p *provider) SentBy(req *llm.Request, with manners.Manners) manners.Sent {
	sent := p.Dialer.SentBy(req, with)
	sent.Sealed = len(req.Tools) > 0 && !with.NoSealed
	if wire.CacheKeyOf(req, with) != "" {
		sent.Parameters |= manners.CacheKey
	}
	return sent
}

// Ask implements wire.Asker.
func (p *provider) Ask(c *wire.Call, req *llm.Request, with manners.Manners) (*llm.Response, error) {
	body, err := p.newBody(req, with)
	if err != nil {
		return nil, err
	}

	events, err := c.SendStream(wire.Request{Path: path, Body: body})
	if err != nil {
		return nil, err
	}

	var t turn
	if err := t.takeAll(c, events); err != nil {
		err.Usage = t.usage()
		return nil, err
	}

	return t.toResponse(c, req.Schema != nil && with.Form == manners.ByTool)
}

// takeAll takes the events of a stream, and fails if that is not a whole answer.
func (t *turn) takeAll(c *wire.Call, events iter.Seq2[wire.Event, error]) *llm.Error {
	for raw, err := range events {
		if err != nil {
			return c.CutError(err)
		}

		var e event
		if err := wire.Decode(raw.Data, &e); err != nil {
			return c.CutError(err)
		}

		switch e.Type {
		case "response.output_item.done":
			t.items = append(t.items, e.Item)
		case "response.completed", "response.incomplete":
			return t.takeEnd(c, e)
		case "response.failed":
			t.end = e.Response
			return c.MidstreamError(e.raw())
		case "error":
			return c.MidstreamError(e.wrapError(raw.Data))
		}
	}

	return c.CutError(nil)
}

// takeEnd takes the event with all of the answer. What is not finished is none: it was queued, or
// called off.
func (t *turn) takeEnd(c *wire.Call, e event) *llm.Error {
	// Some servers send the items only as they end, and leave them out here.
	t.end = e.Response
	if len(t.end.Output) > 0 {
		t.items = t.end.Output
	}

	switch t.end.Status {
	case "", "completed", "complete", "incomplete":
		return nil
	case "failed":
		return c.MidstreamError(e.raw())
	}

	return c.FailError(llm.NewError(llm.Server, "the answer is %s, and not finished", c.CleanText(t.end.Status)))
}

// raw returns an error of a response as the vendor writes all its errors.
func (e event) raw() []byte { return e.wrapError(e.Response.Error) }

func (event) wrapError(raw json.RawMessage) []byte {
	var wrapped struct{ Error json.RawMessage }
	if json.Unmarshal(raw, &wrapped) == nil && len(wrapped.Error) > 0 {
		return raw
	}
	out, err := json.Marshal(map[string]json.RawMessage{"error": raw})
	if err != nil {
		return raw
	}
	return out
}

// wholeEvents returns an answer that came whole as the event that ends a stream, which has all of
// it. It is false if it is no such answer.
func wholeEvents(raw []byte) ([]wire.Event, bool) {
	var whole struct {
		Status string
		Output json.RawMessage
	}
	if json.Unmarshal(raw, &whole) != nil || len(whole.Output) == 0 && whole.Status == "" {
		return nil, false
	}
	data, err := json.Marshal(map[string]any{"type": "response.completed", "response": json.RawMessage(raw)})
	return []wire.Event{{Data: data}}, err == nil
}

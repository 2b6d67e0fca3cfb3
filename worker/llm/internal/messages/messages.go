// Package messages asks models by Anthropic's Messages API, version 2026-10-21, wherever it is
// served: by its vendor, or by a cloud that has it at another path and in another frame. A
// vendor's package says what differs there.
package messages

import (
	"context"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

// A Server serves the interface. Its zero fields are what the interface's own vendor does.
type Server struct {
	Name string    // of its provider
	URL  string    // its base, unless the configuration has another
	Sign wire.Sign // proves who asks, and names the version of the interface in a header

	// Path returns where calls of a model go, below the base. Defaults to v1/messages.
	Path func(llm.Model) string

	// Version is what a body names if Path has the model, which is left out of the body then.
	Version string

	// Uncounted says that it does not count the tokens of prompts.
	Uncounted bool
}

// A provider asks models of a server. Only one that counts tokens is an llm.Counter.
type provider struct {
	*wire.Dialer
	server Server
}

type counter struct{ *provider }

// New returns the provider of a server. The error is an *llm.Error of the kind Invalid, if the
// address is no address.
func New(cfg llm.Config, server Server) (llm.Provider, error) {
	p, err := newProvider(cfg, server)
	if err != nil {
		return nil, err
	}
	if server.Uncounted {
		return p, nil
	}
	return counter{p}, nil
}

func newProvider(cfg llm.Config, server Server) (*provider, error) {
	if server.Path == nil {
		server.Path = func(llm.Model) string { return "v1/messages" }
	}

	d, err := wire.NewDialer(cfg, server.URL, wire.Format{
		Whole: wholeEvents, Limits: readLimits, Judge: JudgeError, Sign: server.Sign,
	})
	if err != nil {
		return nil, err
	}

	return &provider{Dialer: d, server: server}, nil
}

// Name implements llm.Provider.
func (p *provider) Name() string { return p.server.Name }

// Can implements llm.Provider.
func (*provider) Can() llm.Capabilities {
	return llm.Capabilities{Dialect: dialect(), ForceTool: true, Cache: true}
}

// dialect follows the schemas that the vendor's SDKs produce.
func dialect() llm.Dialect {
	return llm.Dialect{
		Name: "anthropic", Closed: true, AnyOf: true, OneType: true, SmallMin: true,
		Keywords: []string{"minItems", "format"},
		Formats:  []string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"},
	}
}

// Complete implements llm.Provider.
func (p *provider) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	return p.CompleteBy(ctx, req, p)
}

// OwnForm implements wire.Asker: answers are calls of a tool at least, if the job says so. There
// is no form between those and the prompt alone.
func (p *provider) OwnForm(m manners.Manners) manners.Manners {
	m = p.Dialer.OwnForm(m)
	if m.Form == manners.ByObject {
		m.Form = manners.ByPrompt
	}
	return m
}

// SentBy implements wire.Asker.
func (p *provider) SentBy(req *llm.Request, with manners.Manners) manners.Sent {
	sent := p.Dialer.SentBy(req, with)
	sent.Stream = false // its servers know streams
	sent.Cache = req.Cache != ""
	return sent
}

// Ask implements wire.Asker.
func (p *provider) Ask(c *wire.Call, req *llm.Request, with manners.Manners) (*llm.Response, error) {
	body, err := newBody(req, with)
	if err != nil {
		return nil, err
	}
	body.Stream = true
	if p.server.Version != "" {
		body.Version, body.Model = p.server.Version, ""
	}

	events, err := c.SendStream(wire.Request{Path: p.server.Path(req.Model), Body: body})
	if err != nil {
		return nil, err
	}
	var t turn
	if err := t.takeAll(c, events); err != nil {
		return nil, t.noteWaste(err)
	}
	return t.toResponse(c, req.Schema != nil && with.Form == manners.ByTool)
}

// Count implements llm.Counter.
func (p counter) Count(ctx context.Context, req *llm.Request) (int64, error) {
	plain := *req
	plain.Parameters = parameters.Set{} // of the answer, which are refused where none is asked for
	body, err := newBody(&plain, p.OwnForm(p.KnownManners(req.Model)))
	if err != nil {
		return 0, err
	}
	body.MaxTokens = 0

	c := p.BeginCall(ctx, req)
	defer c.EndCall()
	var answer struct {
		Tokens wire.Count `json:"input_tokens"`
	}
	if err := c.SendFor(wire.Request{Path: p.server.Path(req.Model) + "/count_tokens", Body: body}, &answer); err != nil {
		return 0, err
	}
	return answer.Tokens.N, nil
}

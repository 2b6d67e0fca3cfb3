// Package generate asks models by Google's generateContent, wherever that is served: by the Gemini
// API, or by Vertex AI at another path and with other credentials. A vendor's package says what
// differs there; what a server refuses besides is learned: see package manners.
package generate

import (
	"context"
	"net/http"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

// A Server serves the interface.
type Server struct {
	Name string                 // of its provider
	URL  string                 // its base, unless the configuration has another
	Sign wire.Sign              // proves who asks
	Path func(llm.Model) string // where a model is, below the base; a method follows behind a colon

	// TierHeader names the header that asks for a tier, where the server reads none from the body.
	TierHeader string

	// Embeds says that it turns texts into vectors, too: Vertex AI does so by another interface.
	Embeds bool
}

// A provider asks models of a server.
type provider struct {
	*wire.Dialer
	server Server
}

// New returns the provider of a server, which is an llm.Embedder if the server embeds. The
// error is an *llm.Error of the kind Invalid, if the address is no address.
func New(cfg llm.Config, server Server) (llm.Provider, error) {
	p, err := newProvider(cfg, server)
	if err != nil {
		return nil, err
	}
	if server.Embeds {
		return embedder{p}, nil
	}
	return p, nil
}

func newProvider(cfg llm.Config, server Server) (*provider, error) {
	d, err := wire.NewDialer(cfg, server.URL, wire.Format{Judge: judgeError, Pause: pauseOf, Whole: wholeEvents, Sign: server.Sign})
	if err != nil {
		return nil, err
	}
	return &provider{d, server}, nil
}

// Name implements llm.Provider.
func (p *provider) Name() string { return p.server.Name }

// Can implements llm.Provider.
func (*provider) Can() llm.Capabilities {
	return llm.Capabilities{Dialect: dialect(), ForceTool: true}
}

// dialect returns the dialect of responseJsonSchema. What is not in it is ignored by some models
// and refused by others.
func dialect() llm.Dialect {
	return llm.Dialect{
		Name: "gemini", AnyOf: true, NoAllOf: true, NoConst: true, LoneRef: true, Named: true,
		Keywords: []string{"minItems", "maxItems", "prefixItems", "minimum", "maximum", "format"},
		Formats:  []string{"date-time", "date", "time"},
	}
}

// dialectFor returns the dialect of a server's schemas.
func dialectFor(with manners.Manners) llm.Dialect {
	d := dialect()
	if with.Plain {
		d.Keywords = nil
	}
	return d
}

// Complete implements llm.Provider.
func (p *provider) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	return p.CompleteBy(ctx, req, p)
}

// Ask implements wire.Asker.
func (p *provider) Ask(c *wire.Call, req *llm.Request, with manners.Manners) (*llm.Response, error) {
	body, err := newBody(req, with)
	if err != nil {
		return nil, err
	}

	path := p.server.Path(req.Model) + ":streamGenerateContent?alt=sse"
	if with.NoStream {
		path = p.server.Path(req.Model) + ":generateContent"
	}

	events, err := c.SendStream(wire.Request{Path: path, Body: body, Header: p.moveTier(body)})
	if err != nil {
		return nil, err
	}

	var t turn
	if err := t.takeAll(c, events); err != nil {
		return nil, t.noteWaste(err)
	}

	return t.toResponse(c, byTool(req, with)), nil
}

// moveTier takes the tier off a body whose server reads it from a header, and returns that.
func (p *provider) moveTier(b *body) http.Header {
	if p.server.TierHeader == "" || b.Tier == "" {
		return nil
	}

	header := make(http.Header)
	// What an account has by default is the standard tier, which has no name here.
	if b.Tier != parameters.Standard {
		header.Set(p.server.TierHeader, b.Tier)
	}
	b.Tier = ""
	return header
}

// byTool reports whether the answer to a request is the input of a tool. Most models take no
// schema of the answer beside tools that they may call.
func byTool(req *llm.Request, with manners.Manners) bool {
	return req.Schema != nil && (with.Form == manners.ByTool || len(req.Tools) > 0 && !req.NoCalls && with.Form < manners.ByObject)
}

// Package chat asks models by OpenAI's Chat Completions, wherever that is served: by its vendor, by
// others who are alike, or by a program on one's own machine. A vendor's package says what differs
// there; what a server refuses besides is learned: see package manners.
package chat

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/redact"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

// A Server serves the interface. Its zero fields are what most servers do that are like the
// vendor's.
type Server struct {
	Name string    // of its provider
	URL  string    // its base, unless the configuration has another
	Sign wire.Sign // proves who asks. Defaults to the key as a bearer token, if there is one

	// Path returns where calls of a model go, below the base. Defaults to chat/completions.
	Path func(llm.Model) string

	// EmbedPath returns where texts go that become vectors. Defaults to embeddings.
	EmbedPath func(llm.Model) string

	// ListPath is where its models are listed, below the base. Defaults to models.
	ListPath string

	// PropsPath is where a program says which window it was started with; "" if nowhere.
	PropsPath string

	// NewBound says that it knows the bound of an answer as max_completion_tokens. The older name
	// is refused by newer models of the vendor, and the newer one by other servers.
	NewBound bool

	// Dialect is that of its schemas. Defaults to the vendor's mode "strict".
	Dialect *llm.Dialect

	// Untold says that its models are not told of the schema that their answers are held to.
	Untold bool

	// Think returns the fields that say how long a model is to think. Defaults to
	// reasoning_effort.
	Think func(parameters.Set) Thinking

	// RandomSeed says that it knows the seed as random_seed.
	RandomSeed bool

	// CacheKeys says that it takes the key of what requests have in common.
	CacheKeys bool

	// StandardTier is its word for the tier that is neither cheaper nor dearer. Defaults to the
	// vendor's "default".
	StandardTier string

	// Known is what it is known not to take.
	Known manners.Manners
}

// A provider asks models of a server.
type provider struct {
	*wire.Dialer
	server Server
}

// New returns the provider of a server. It is an llm.Embedder, too. The error is an *llm.Error of
// the kind Invalid, if the address is no address.
func New(cfg llm.Config, server Server) (llm.Provider, error) {
	p, err := newProvider(cfg, server)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func newProvider(cfg llm.Config, server Server) (*provider, error) {
	if server.Path == nil {
		server.Path = func(llm.Model) string { return "chat/completions" }
	}
	if server.EmbedPath == nil {
		server.EmbedPath = func(llm.Model) string { return "embeddings" }
	}
	if server.Think == nil {
		server.Think = thinkByEffort
	}
	server.StandardTier = cmp.Or(server.StandardTier, "default")
	if server.Dialect == nil {
		server.Dialect = strictDialect()
	}

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
	return llm.Capabilities{Dialect: *p.server.Dialect, Untold: p.server.Untold, ForceTool: true}
}

// strictDialect returns the dialect of the mode "strict".
func strictDialect() *llm.Dialect {
	return &llm.Dialect{
		Name: "openai", Closed: true, AllRequired: true, AnyOf: true, NoAllOf: true,
		Keywords: []string{
			"minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
			"multipleOf", "pattern", "format",
		},
		Formats: []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"},
	}
}

// Complete implements llm.Provider.
func (p *provider) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	return p.CompleteBy(ctx, req, p)
}

// OwnForm implements wire.Asker: answers are calls of a tool at least, if the job says so.
func (p *provider) OwnForm(m manners.Manners) manners.Manners {
	return p.Dialer.OwnForm(m.With(p.server.Known))
}

// SentBy implements wire.Asker.
func (p *provider) SentBy(req *llm.Request, with manners.Manners) manners.Sent {
	sent := p.Dialer.SentBy(req, with)
	sent.Thoughts = !with.NoThoughts && slices.ContainsFunc(req.Messages, func(m llm.Message) bool { return thinkingOf(m.Parts) != nil })
	if p.server.CacheKeys && wire.CacheKeyOf(req, with) != "" {
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

// takeAll adds the chunks of a stream, and fails if that is not a whole answer: one that gave a
// reason for its end, or the mark of the end behind something.
func (t *turn) takeAll(c *wire.Call, events iter.Seq2[wire.Event, error]) *llm.Error {
	marked := false
	for e, err := range events {
		if err != nil {
			return c.CutError(err)
		}
		if marked = isMark(e.Data); marked {
			break
		}
		var next chunk
		if err := wire.Decode(e.Data, &next); err != nil {
			return c.CutError(err)
		}
		if next.hasError() {
			t.takeUsage(next.Usage)
			return c.StreamError(e.Data, t.text.Len() > 0 || len(t.calls) > 0 || t.thought)
		}
		if err := t.takeChunk(next); err != nil {
			return c.FailError(err)
		}
	}

	marked = marked || c.EndsWith(mark) // without a blank line behind it
	if t.finish == "" && (!marked || t.text.Len() == 0 && len(t.calls) == 0) {
		return c.CutError(nil)
	}
	if kind := failedStop(t.finish); kind != 0 {
		return c.FailError(llm.NewError(kind, "the server gave up in mid-stream: %s", redact.ShortenLine(t.finish)))
	}
	return nil
}

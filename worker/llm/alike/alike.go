// Package alike asks models of servers that speak OpenAI's interface, under names of their own:
// other vendors, and programs on one's own machine.
package alike

import (
	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/internal/batchfile"
	"github.com/coditect/mapreduce/worker/llm/internal/chat"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

// A Server is where such an interface is served.
type Server struct {
	Name        string // of its provider
	URL         string // its base, unless the configuration has another
	KeyVariable string // the environment variable that has its key
	Known       manners.Manners

	ListPath, PropsPath string // see chat.Server

	Think      func(parameters.Set) chat.Thinking // see chat.Server, as for the next
	RandomSeed bool

	StandardTier string // see chat.Server

	// Batches says that it makes batches as OpenAI does, with the same limits.
	Batches bool

	// Local is a program on one's own machine. It needs no key, it holds answers to their schema by
	// a grammar, and its models are told of the schema by nobody but us.
	Local bool
}

// New returns the provider of the server. The error is an *llm.Error of the kind Auth if another's
// server is to be asked without a key, and Invalid if the address is no address.
func (s Server) New(cfg llm.Config) (llm.Provider, error) {
	if err := s.checkKey(cfg); err != nil {
		return nil, err
	}
	return chat.New(cfg, s.chatServer())
}

// NewBatches returns what makes batches at the server, which has OpenAI's: see New.
func (s Server) NewBatches(cfg llm.Config) (batch.Vendor, error) {
	if err := s.checkKey(cfg); err != nil {
		return nil, err
	}
	limits := batchfile.OpenAI()
	limits.CreatesPerHour = 0
	return chat.NewBatches(cfg, s.chatServer(), batchfile.Server{Limits: limits})
}

func (s Server) checkKey(cfg llm.Config) error {
	if cfg.Key.IsZero() && !s.Local && cfg.BaseURL == "" {
		return llm.NewError(llm.Auth, "there is no key for %s: set %s", s.Name, s.KeyVariable)
	}
	return nil
}

// chatServer returns the server as its interface has it.
func (s Server) chatServer() chat.Server {
	server := chat.Server{Name: s.Name, URL: s.URL, Known: s.Known, ListPath: s.ListPath, PropsPath: s.PropsPath, Think: s.Think, RandomSeed: s.RandomSeed, StandardTier: s.StandardTier}
	if s.Local {
		server.Dialect, server.Untold = grammar(s.Name), true
	}
	return server
}

// grammar returns the dialect of the grammars that local servers make of schemas. What one of them
// refuses is not in it.
func grammar(name string) *llm.Dialect {
	return &llm.Dialect{
		Name: name, AnyOf: true, NoAllOf: true,
		Keywords: []string{"minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum", "format", "prefixItems"},
		Formats:  []string{"date-time", "date", "time", "uuid"},
	}
}

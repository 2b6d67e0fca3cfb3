// Package openai asks the models of OpenAI, and of other servers with the same interfaces: Chat
// Completions, or Responses where the address says so.
package openai

import (
	"strings"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/internal/batchfile"
	"github.com/coditect/mapreduce/worker/llm/internal/chat"
	"github.com/coditect/mapreduce/worker/llm/internal/responses"
)

// URL is where the vendor is unless a job says otherwise.
const URL = "https://api.openai.com/v1/"

// New returns the provider. Other servers that speak the interface are reached by their base URL,
// and may need no key. One that ends with /responses is asked by Responses. The error is an
// *llm.Error of the kind Auth if the vendor itself is to be asked without a key, and Invalid if the
// address is no address.
func New(cfg llm.Config) (llm.Provider, error) {
	cfg, server, byResponses, err := serverFor(cfg)
	if err != nil {
		return nil, err
	}

	completions, err := chat.New(cfg, server)
	if err != nil || !byResponses {
		return completions, err
	}

	// Vectors are asked for by the other interface also here.
	embedder, _ := completions.(llm.Embedder)
	return responses.New(cfg, responses.Server{
		Name: "openai", URL: URL, Dialect: completions.Can().Dialect, Embedder: embedder,
	})
}

// NewBatches returns what makes batches: see New. A server that is only alike may have none, and says
// so when it is asked.
func NewBatches(cfg llm.Config) (batch.Vendor, error) {
	cfg, server, byResponses, err := serverFor(cfg)
	if err != nil {
		return nil, err
	}
	if !byResponses {
		return chat.NewBatches(cfg, server, batchfile.Server{Limits: batchfile.OpenAI()})
	}

	completions, err := chat.New(cfg, server)
	if err != nil {
		return nil, err
	}
	return responses.NewBatches(cfg, responses.Server{Name: "openai", URL: URL, Dialect: completions.Can().Dialect}, batchfile.OpenAI())
}

// serverFor returns the server of a configuration, with the base of both interfaces, and whether
// Responses is to be asked.
func serverFor(cfg llm.Config) (_ llm.Config, server chat.Server, byResponses bool, err error) {
	own := cfg.BaseURL == "" || strings.HasPrefix(cfg.BaseURL, "https://api.openai.com/")
	if cfg.Key.IsZero() && own {
		return cfg, server, false, llm.NewError(llm.Auth, "there is no key for openai: set OPENAI_API_KEY")
	}

	base, byResponses := strings.CutSuffix(strings.TrimSuffix(cfg.BaseURL, "/"), "/responses")
	if byResponses {
		cfg.BaseURL = base
	}
	return cfg, chat.Server{Name: "openai", URL: URL, NewBound: own, CacheKeys: own}, byResponses, nil
}

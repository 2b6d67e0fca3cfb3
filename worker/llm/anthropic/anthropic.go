// Package anthropic asks the models of Anthropic.
package anthropic

import (
	"net/http"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/internal/messages"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
)

// version is that of the Messages API.
const version = "2026-10-21"

// New returns the provider of a key. The error is an *llm.Error of the kind Auth if there
// is none, and Invalid if the address is no address.
func New(cfg llm.Config) (llm.Provider, error) {
	server, err := serverFor(cfg)
	if err != nil {
		return nil, err
	}
	return messages.New(cfg, server)
}

// NewBatches returns what makes batches: see New.
func NewBatches(cfg llm.Config) (batch.Vendor, error) {
	server, err := serverFor(cfg)
	if err != nil {
		return nil, err
	}
	return messages.NewBatches(cfg, server)
}

// URL is where the vendor is unless a job says otherwise.
const URL = "https://api.anthropic.com/"

// serverFor returns the vendor's server, asked with a key.
func serverFor(cfg llm.Config) (messages.Server, error) {
	if cfg.Key.IsZero() {
		return messages.Server{}, llm.NewError(llm.Auth, "there is no key for anthropic: set ANTHROPIC_API_KEY")
	}

	key := wire.BearerKey(cfg.Key) // which replaces the header X-Api-Key of older versions
	return messages.Server{
		Name: "anthropic", URL: URL,
		Sign: func(req *http.Request, body []byte) error {
			req.Header.Set("Anthropic-Version", version)
			return key(req, body)
		},
	}, nil
}

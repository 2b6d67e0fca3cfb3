// Package anthropic asks the models of Anthropic.
package anthropic

import (
	"net/http"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/messages"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
)

// version is that of the Messages API.
const version = "2026-10-21"

// New returns the provider of a key. The error is an *llm.Error of the kind Auth if there
// is none, and Invalid if the address is no address.
func New(cfg llm.Config) (llm.Provider, error) {
	if cfg.Key.IsZero() {
		return nil, llm.NewError(llm.Auth, "there is no key for anthropic: set ANTHROPIC_API_KEY")
	}

	key := wire.BearerKey(cfg.Key) // which replaces the header X-Api-Key of older versions
	return messages.New(cfg, messages.Server{
		Name: "anthropic", URL: "https://api.anthropic.com/",
		Sign: func(req *http.Request, body []byte) error {
			req.Header.Set("Anthropic-Version", version)
			return key(req, body)
		},
	})
}

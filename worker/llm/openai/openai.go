// Package openai asks the models of OpenAI, and of other servers with the same interfaces: Chat
// Completions, or Responses where the address says so.
package openai

import (
	"strings"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/chat"
	"github.com/coditect/mapreduce/worker/llm/internal/responses"
)

const vendorURL = "https://api.openai.com/v1/"

// New returns the provider. Other servers that speak the interface are reached by their base URL,
// and may need no key. One that ends with /responses is asked by Responses. The error is an
// *llm.Error of the kind Auth if the vendor itself is to be asked without a key, and Invalid if the
// address is no address.
func New(cfg llm.Config) (llm.Provider, error) {
	own := cfg.BaseURL == "" || strings.HasPrefix(cfg.BaseURL, "https://api.openai.com/")
	if cfg.Key.IsZero() && own {
		return nil, llm.NewError(llm.Auth, "there is no key for openai: set OPENAI_API_KEY")
	}

	base, byResponses := strings.CutSuffix(strings.TrimSuffix(cfg.BaseURL, "/"), "/responses")
	if byResponses {
		cfg.BaseURL = base
	}

	completions, err := chat.New(cfg, chat.Server{Name: "openai", URL: vendorURL, NewBound: own, CacheKeys: own})
	if err != nil || !byResponses {
		return completions, err
	}

	// Vectors are asked for by the other interface also here.
	embedder, _ := completions.(llm.Embedder)
	return responses.New(cfg, responses.Server{
		Name: "openai", URL: vendorURL, Dialect: completions.Can().Dialect, Embedder: embedder,
	})
}

// Package gemini asks Google's models by the Gemini API, with a key. Package vertex asks them by
// Vertex AI.
package gemini

import (
	"net/url"
	"strings"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/internal/generate"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
)

// URL is where the vendor is unless a job says otherwise.
const URL = "https://generativelanguage.googleapis.com/v1beta/"

// New returns the provider. The error is an *llm.Error of the kind Auth if the vendor itself is to
// be asked without a key, and Invalid if the address is no address.
func New(cfg llm.Config) (llm.Provider, error) {
	server, err := serverFor(cfg)
	if err != nil {
		return nil, err
	}
	return generate.New(cfg, server)
}

// NewBatches returns what makes batches: see New.
func NewBatches(cfg llm.Config) (batch.Vendor, error) {
	server, err := serverFor(cfg)
	if err != nil {
		return nil, err
	}
	return generate.NewBatches(cfg, server)
}

// serverFor returns the server of a configuration.
func serverFor(cfg llm.Config) (generate.Server, error) {
	own := cfg.BaseURL == "" || strings.HasPrefix(cfg.BaseURL, "https://generativelanguage.googleapis.com/")
	if cfg.Key.IsZero() && own {
		return generate.Server{}, llm.NewError(llm.Auth, "there is no key for gemini: set GEMINI_API_KEY")
	}
	return generate.Server{
		Name: "gemini", URL: URL, Sign: wire.HeaderKey("X-Goog-Api-Key", cfg.Key), Path: modelPath, Embeds: true,
	}, nil
}

// modelPath returns where a model is below the base. A name with a slash says its kind, as that of
// a tuned model.
func modelPath(model llm.Model) string {
	if kind, name, ok := strings.Cut(string(model), "/"); ok {
		return url.PathEscape(kind) + "/" + url.PathEscape(name)
	}
	return "models/" + url.PathEscape(string(model))
}

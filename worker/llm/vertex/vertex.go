// Package vertex asks models by Google's Vertex AI, with Google's credentials: Gemini by
// generateContent, and Claude by Anthropic's interface.
package vertex

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"golang.org/x/oauth2"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/generate"
	"github.com/coditect/mapreduce/worker/llm/internal/messages"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
)

// claudeVersion is that of Anthropic's interface on Vertex AI.
const claudeVersion = "vertex-2023-10-16"

// New returns the provider of Gemini. It reads the project from GOOGLE_CLOUD_PROJECT or from the
// credentials, and the location from GOOGLE_CLOUD_LOCATION, which defaults to global; the
// configuration's key is a token of Google, and without it credentials are looked for: see
// findAccount. The error is an *llm.Error of the kind Auth if there are none, and Invalid if the
// project is not known or the location is none.
func New(cfg llm.Config) (llm.Provider, error) {
	p, err := findPlace(cfg)
	if err != nil {
		return nil, err
	}
	return generate.New(cfg, generate.Server{
		Name: "vertex", URL: p.base(), Sign: p.sign, TierHeader: "X-Vertex-AI-LLM-Shared-Request-Type",
		Path: func(model llm.Model) string { return p.path("google", model) },
	})
}

// NewClaude returns the provider of Claude: see New.
func NewClaude(cfg llm.Config) (llm.Provider, error) {
	p, err := findPlace(cfg)
	if err != nil {
		return nil, err
	}
	return messages.New(cfg, messages.Server{
		Name: "vertex-claude", URL: p.base(), Sign: p.sign, Version: claudeVersion, Uncounted: true,
		Path: func(model llm.Model) string { return p.path("anthropic", model) + ":streamRawPredict" },
	})
}

// A place is where models are asked, and by whom.
type place struct {
	project, location string
	tokens            oauth2.TokenSource
}

// validLocation is how locations are named: global, a continent, or a region.
var validLocation = regexp.MustCompile(`^(global|us|eu|[a-z]+-[a-z]+\d{1,2})$`)

// findPlace returns the place of this process.
func findPlace(cfg llm.Config) (*place, error) {
	p := &place{location: cmp.Or(cfg.Setting("GOOGLE_CLOUD_LOCATION"), cfg.Setting("CLOUD_ML_REGION"), "global")}
	if !validLocation.MatchString(p.location) {
		return nil, llm.NewError(llm.Invalid, "GOOGLE_CLOUD_LOCATION is %q, which is no location such as global or europe-west4", p.location)
	}

	var err error
	if p.tokens, p.project, err = findAccount(cfg); err != nil {
		return nil, err
	}

	p.project = cmp.Or(cfg.Setting("GOOGLE_CLOUD_PROJECT"), cfg.Setting("ANTHROPIC_VERTEX_PROJECT_ID"), p.project)
	if p.project == "" && cfg.Getenv != nil {
		return nil, llm.NewError(llm.Invalid, "no project is named for Vertex AI: set GOOGLE_CLOUD_PROJECT")
	}

	return p, nil
}

// base returns the address of the place.
func (p *place) base() string {
	switch p.location {
	case "global":
		return "https://aiplatform.googleapis.com/v1/"
	case "us", "eu":
		return "https://aiplatform." + p.location + ".rep.googleapis.com/v1/"
	}
	return "https://" + p.location + "-aiplatform.googleapis.com/v1/"
}

// path returns where a model of a publisher is, below the base.
func (p *place) path(publisher string, model llm.Model) string {
	return "projects/" + url.PathEscape(p.project) + "/locations/" + p.location + "/publishers/" + publisher + "/models/" + url.PathEscape(string(model))
}

// sign implements wire.Sign.
func (p *place) sign(req *http.Request, _ []byte) error {
	token, err := p.tokens.Token()
	if err != nil {
		return llm.NewError(llm.Auth, "Google gives no token: %v", err)
	}
	token.SetAuthHeader(req)
	return nil
}

var _ wire.Sign = (*place)(nil).sign

// clientContext returns a context whose calls for tokens end in time.
func clientContext(cfg llm.Config) context.Context {
	client := &http.Client{Timeout: 30 * time.Second, Transport: cfg.Transport}
	return context.WithValue(context.Background(), oauth2.HTTPClient, client)
}

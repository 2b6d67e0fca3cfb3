// Package azure asks the models that an Azure OpenAI or Foundry resource has deployed, with the
// resource's key or with a token of Entra. A model is named by its deployment.
package azure

import (
	"cmp"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/internal/batchfile"
	"github.com/coditect/mapreduce/worker/llm/internal/chat"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
)

// New returns the provider of the resource whose address is in AZURE_OPENAI_ENDPOINT, unless the
// configuration names another. OPENAI_API_VERSION names a dated version of the interface; without
// it, version 1 is asked, which has no date. Without a key, a token is got from Entra: see
// findTokens. The error is an *llm.Error of the kind Auth if there are neither, and Invalid if the
// address is none.
func New(cfg llm.Config) (llm.Provider, error) {
	cfg, server, _, err := serverFor(cfg)
	if err != nil {
		return nil, err
	}
	return chat.New(cfg, server)
}

// NewBatches returns what makes batches of a deployment for batches: see New.
func NewBatches(cfg llm.Config) (batch.Vendor, error) {
	cfg, server, version, err := serverFor(cfg)
	if err != nil {
		return nil, err
	}

	limits := batchfile.OpenAI()
	limits.Lines, limits.CreatesPerHour = 100_000, 0
	files := batchfile.Server{Limits: limits, Path: batchPath(version)}
	if !isDated(version) || version >= firstExpiring {
		files.Expires = filesExpire
	}

	return chat.NewBatches(cfg, server, files)
}

// filesExpire is after what time files of batches are gone: a resource holds 500 of those that have no end, and 10,000
// of others. It is the shortest time that the vendor takes.
const filesExpire = 14 * 24 * time.Hour

// firstExpiring is the first dated version of the interface that takes such a time.
const firstExpiring = "2025-03-01"

// batchPath returns where files and batches are, by their names at the vendor.
func batchPath(version string) func(string) string {
	if !isDated(version) {
		return func(path string) string { return "openai/v1/" + path }
	}
	return func(path string) string {
		mark := "?"
		if strings.Contains(path, "?") {
			mark = "&"
		}
		return "openai/" + path + mark + "api-version=" + url.QueryEscape(version)
	}
}

// serverFor returns the server of a configuration, and the version of its interface.
func serverFor(cfg llm.Config) (_ llm.Config, server chat.Server, version string, err error) {
	cfg.BaseURL = cmp.Or(cfg.BaseURL, cfg.Setting("AZURE_OPENAI_ENDPOINT"))
	if cfg.BaseURL == "" && cfg.Getenv != nil {
		return cfg, server, "", llm.NewError(llm.Invalid, "no resource is named for azure: set AZURE_OPENAI_ENDPOINT, such as to https://NAME.openai.azure.com")
	}
	cfg.BaseURL = cmp.Or(cfg.BaseURL, "https://resource.openai.azure.com") // of a check: nobody asks it
	version = cmp.Or(cfg.Setting("OPENAI_API_VERSION"), cfg.Setting("AZURE_OPENAI_API_VERSION"))
	if version != "" && !validVersion.MatchString(version) {
		return cfg, server, "", llm.NewError(llm.Invalid, "OPENAI_API_VERSION is %q, which is no date such as 2024-10-21", version)
	}
	sign, err := signFor(cfg)
	if err != nil {
		return cfg, server, "", err
	}

	cfg.BaseURL = resourceOf(cfg.BaseURL)
	server = chat.Server{Name: "azure", Sign: sign, Path: pathOf(version), EmbedPath: embedPathOf(version), ListPath: "openai/v1/models", NewBound: true, CacheKeys: true}
	return cfg, server, version, nil
}

// validVersion is how versions of the interface are named.
var validVersion = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}(-preview)?$|^(v1|preview|latest)$`)

// resourceOf returns the address of a resource. The portals show it with a path behind it, too.
func resourceOf(address string) string {
	address = strings.TrimRight(address, "/")
	for _, path := range []string{"/v1", "/openai"} {
		address = strings.TrimSuffix(address, path)
	}
	return address
}

// pathOf returns where calls of a deployment go.
func pathOf(version string) func(llm.Model) string { return methodOf(version, "chat/completions") }

// embedPathOf returns where texts go that become vectors.
func embedPathOf(version string) func(llm.Model) string { return methodOf(version, "embeddings") }

// methodOf returns where a method of a deployment is. Version 1 names the deployment in the body.
func methodOf(version, method string) func(llm.Model) string {
	if !isDated(version) {
		return func(llm.Model) string { return "openai/v1/" + method }
	}
	return func(model llm.Model) string {
		return "openai/deployments/" + url.PathEscape(string(model)) + "/" + method + "?api-version=" + url.QueryEscape(version)
	}
}

// isDated reports whether a version of the interface is one by its date.
func isDated(version string) bool {
	return version != "" && strings.ContainsAny(version, "0123456789") && version != "v1"
}

// signFor returns what proves who asks: the key of the resource, or a token of Entra.
func signFor(cfg llm.Config) (wire.Sign, error) {
	if !cfg.Key.IsZero() {
		return wire.HeaderKey("Api-Key", cfg.Key), nil
	}

	tokens, err := findTokens(cfg)
	if err != nil {
		return nil, err
	}

	return func(req *http.Request, _ []byte) error {
		token, err := tokens.Token()
		if err != nil {
			return llm.NewError(llm.Auth, "Entra gives no token: %v", err)
		}
		token.SetAuthHeader(req)
		return nil
	}, nil
}

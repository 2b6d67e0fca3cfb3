package runners

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/runners/asked"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/decorator"
	"github.com/coditect/mapreduce/worker/tool/search"
)

// kitNeedsOf returns what kits are made with, but for the network.
func kitNeedsOf(r *Runners, formats *document.Registry) (kitNeeds, error) {
	embed, err := r.Tools.embedder(r.access())
	return kitNeeds{
		embed: embed,
		flags: &r.Tools, formats: formats, getenv: r.Getenv, reading: r.Documents.reading(),
		note: func(text string) {
			if r.Note != nil {
				r.Note(text)
			}
		},
	}, err
}

// AddSearchFlags adds the flags that say how folders of documents are searched.
func (t *toolFlags) AddSearchFlags(f *pflag.FlagSet) {
	f.StringArrayVar(&t.folders, "search-store", nil, "`NAME=DIR`: folder of documents that the tool search_local searches, under a name; may be repeated")
	f.StringVar(&t.embed.model, "embed", "", "`PROVIDER/MODEL` for embeddings, such as ollama/nomic-embed-text: searches in --search-store also find passages by their meaning (default: by words only)")
	f.StringVar(&t.embed.url, "embed-url", "", "`URL` of the API for --embed (default that of --endpoint, or the vendor's)")
}

// ReadStores reads the folders of --search-store. An error says what is wrong with one.
func (t *toolFlags) ReadStores() error {
	t.stores = nil
	for _, value := range t.folders {
		name, dir, _ := strings.Cut(value, "=")
		if dir == "" {
			return exit.UsageError("--search-store: %q names no folder: write NAME=DIR", value)
		}
		t.stores = append(t.stores, search.Store{Name: name, Dir: dir})
	}
	if len(t.stores) == 0 {
		return nil
	}

	if err := search.CheckStores(t.stores); err != nil {
		return exit.UsageError("--search-store: %w", err)
	}
	return nil
}

// An embedder asks one model for vectors.
type embedder struct {
	llm.Embedder
	name  string
	model llm.Model
}

// Name implements search.Embedder.
func (e *embedder) Name() string { return e.name }

// Embed implements search.Embedder.
func (e *embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	res, err := e.Embedder.Embed(ctx, &llm.EmbedRequest{Model: e.model, Texts: texts})
	if err != nil {
		return nil, err
	}
	return res.Vectors, nil
}

// embedder returns the embedder that --embed names, or nil.
func (t *toolFlags) embedder(a access) (search.Embedder, error) {
	if t.embed.model == "" {
		return nil, nil //nolint:nilnil // passages are found by their words alone
	}

	name, model, _ := strings.Cut(t.embed.model, "/")
	if asked.KeyVariables[name] == "" || model == "" {
		return nil, exit.UsageError("--embed: %q is not PROVIDER/MODEL, such as openai/text-embedding-3-small or ollama/nomic-embed-text", t.embed.model)
	}

	p, err := a.open(name, t.embed.url, "--embed")
	if err != nil {
		return nil, err
	}

	if _, ok := p.(llm.Embedder); !ok {
		return nil, exit.UsageError("--embed: the provider %s turns no texts into vectors; of others, %s could", name, strings.Join(embeddingExamples(), ", "))
	}
	if why := llm.Lacks(name, llm.Model(model), llm.Need{Embeds: true}); why != "" {
		return nil, exit.UsageError("--embed: %s %s%s", model, why, exampleEmbedding(name))
	}

	return &embedder{&decorator.Retry{Provider: p, Random: rand.Float64}, t.embed.model, llm.Model(model)}, nil
}

// embeddingModels has, by provider, a model that turns texts into vectors.
func embeddingModels() map[string]llm.Model {
	return map[string]llm.Model{
		"openai": "text-embedding-3-small", "gemini": "gemini-embedding-001", "mistral": "mistral-embed", "ollama": "nomic-embed-text",
	}
}

// embeddingExamples returns such models, each as --embed takes it, sorted.
func embeddingExamples() (all []string) {
	models := embeddingModels()
	for _, provider := range slices.Sorted(maps.Keys(models)) {
		all = append(all, provider+"/"+string(models[provider]))
	}
	return all
}

// exampleEmbedding names a model of a provider that turns texts into vectors, for the end of an error:
// of another provider, if none of this one is known.
func exampleEmbedding(provider string) string {
	if model := embeddingModels()[provider]; model != "" {
		return llm.CouldBe(provider, []llm.Model{model})
	}
	return "; of others, " + strings.Join(embeddingExamples(), ", ") + " could"
}

// openSearch returns the kit that searches the folders of --search-store.
func openSearch(n kitNeeds) (*search.Kit, error) {
	if n.flags.Indexes == "" {
		return nil, exit.UsageError("--search-store: there is no folder for indexes: set HOME or XDG_CACHE_HOME")
	}

	kit, err := search.New(search.Config{
		Stores: n.flags.stores, Formats: n.formats, Cache: n.flags.Indexes, FormatSettings: n.reading, Note: n.note, Embedder: n.embed,
	})
	if err != nil {
		return nil, exit.RefusedError("--search-store: %w", err)
	}
	return kit, nil
}

// OpenSearch returns the kit that searches the folders of --search-store, which must be closed.
func (r *Runners) OpenSearch() (*search.Kit, error) {
	formats, err := r.DocumentFormats()
	if err != nil {
		return nil, err
	}

	if len(r.Tools.stores) == 0 {
		return nil, exit.UsageError("--search-store is missing: name folders of documents as NAME=DIR")
	}
	needs, err := kitNeedsOf(r, formats)
	if err != nil {
		return nil, err
	}

	return openSearch(needs)
}

package runners

import (
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/worker/document"
	"github.com/coditect/mapreduce/worker/tool/search"
)

// kitNeeds returns what kits are made with, but for the network.
func (r *Runners) kitNeeds(formats *document.Registry) kitNeeds {
	return kitNeeds{
		flags: &r.Tools, formats: formats, getenv: r.Getenv, reading: r.Documents.reading(),
		note: func(text string) {
			if r.Note != nil {
				r.Note(text)
			}
		},
	}
}

// openSearch returns the kit that searches the folders of --store.
func openSearch(n kitNeeds) (*search.Kit, error) {
	if n.flags.Indexes == "" {
		return nil, exit.UsageError("--store: there is no folder for indexes: set HOME or XDG_CACHE_HOME")
	}
	kit, err := search.New(search.Config{
		Stores: n.flags.Stores, Formats: n.formats, Cache: n.flags.Indexes, FormatSettings: n.reading, Note: n.note,
	})
	if err != nil {
		return nil, exit.RefusedError("--store: %w", err)
	}
	return kit, nil
}

// OpenSearch returns the kit that searches the folders of --store, which must be closed.
func (r *Runners) OpenSearch() (*search.Kit, error) {
	formats, err := r.DocumentFormats()
	if err != nil {
		return nil, err
	}
	if len(r.Tools.Stores) == 0 {
		return nil, exit.UsageError("--store is missing: name folders of documents as NAME=DIR")
	}
	return openSearch(r.kitNeeds(formats))
}

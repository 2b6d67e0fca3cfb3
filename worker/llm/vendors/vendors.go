// Package vendors is the table of the vendors of models: the only place that knows all of
// them.
package vendors

import (
	"strings"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/anthropic"
	"github.com/coditect/mapreduce/worker/llm/ollama"
	"github.com/coditect/mapreduce/worker/llm/openai"
)

// A Vendor is a row of the table of vendors.
type Vendor struct {
	Name        string // as users call it
	KeyVariable string // the environment variable that holds its key
	New         func(llm.Config) (llm.Provider, error)
}

// A Table is vendors, each with a name of its own.
type Table []Vendor

// All returns the vendors of the program. A new one is a package beside this one, and a
// row here.
func All() Table {
	return Table{
		{Name: "anthropic", KeyVariable: "ANTHROPIC_API_KEY", New: anthropic.New},
		{Name: "openai", KeyVariable: "OPENAI_API_KEY", New: openai.New},
		{Name: "ollama", KeyVariable: "OLLAMA_API_KEY", New: ollama.New},
	}
}

// New returns the provider of a name among the vendors of the program, without its
// decorators.
func New(name string, cfg llm.Config) (llm.Provider, error) { return All().New(name, cfg) }

// New returns the provider of a name, without its decorators. The error is an *llm.Error
// of the kind Invalid if the table has no such vendor.
func (t Table) New(name string, cfg llm.Config) (llm.Provider, error) {
	names := make([]string, len(t))
	for i, v := range t {
		if v.Name == name {
			return v.New(cfg)
		}
		names[i] = v.Name
	}
	if len(names) == 0 {
		return nil, llm.NewError(llm.Invalid, "no provider is called %q; there are none", name)
	}
	last := len(names) - 1
	return nil, llm.NewError(llm.Invalid, "no provider is called %q; there are %s and %s", name, strings.Join(names[:last], ", "), names[last])
}

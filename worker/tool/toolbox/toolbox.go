// Package toolbox has the tools of a worker, and runs their calls for units. No tool is
// trusted: whatever a kit does, a call of a Session ends within its time, brings no more
// than its bounds allow, and is an answer or an error.
//
//   - A tool that the stage does not list is not called.
//   - An input that does not fit the schema of its tool does not reach it.
//   - A call that takes too long is given up, whether its tool notices or not.
//   - A panic is an error of the call.
//   - What is brought is cut to its bounds, valid UTF-8, and its ranges lie within it.
//
// The package imports the port to tools, and of worker/llm the check of schemas. It
// knows no job and no model.
package toolbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/tool"
)

// Bounds of what a tool says of itself.
const (
	maxDescription = 4 << 10  // bytes
	maxSchema      = 64 << 10 // bytes
	maxTimeout     = 10 * time.Minute
)

// Reserved is a name that no tool may have: models give their final answer by it.
const Reserved = llm.AnswerTool

// A Box holds the tools of a worker. It is safe for concurrent use. A nil *Box holds none.
type Box struct {
	kits   []tool.Kit
	tools  map[string]*entry   // by name
	names  map[string][]string // tools by the names that pipelines may list, in the order of their kit
	logger *slog.Logger

	observe func(ctx context.Context, tool string) (context.Context, func(error)) // nil if calls are not observed
}

// An entry is one tool.
type entry struct {
	kit   tool.Kit
	spec  tool.Spec // with its defaults
	input *llm.Schema
	lost  atomic.Int64 // calls that were given up and have not ended
}

// New returns a box of kits. It takes them over: Close closes them. The error names the kit
// and the tool whose description cannot be used, or whose name is taken. Logger may be nil.
func New(logger *slog.Logger, kits ...tool.Kit) (*Box, error) {
	b := &Box{kits: kits, tools: make(map[string]*entry), names: make(map[string][]string), logger: logger}
	if logger == nil {
		b.logger = slog.New(slog.DiscardHandler)
	}

	for _, k := range kits {
		if err := b.addKit(k); err != nil {
			return nil, err
		}
	}
	for _, k := range kits { // names of kits go before those of tools
		b.addToolNames(k)
	}

	return b, nil
}

// LogTo logs to logger what is noticed nowhere else, such as panics of tools. It must be
// called before the box is used, and does nothing for a nil *Box.
func (b *Box) LogTo(logger *slog.Logger) {
	if b != nil && logger != nil {
		b.logger = logger
	}
}

// Observe calls begin for each call of a tool that exists, and what begin returns when the
// call ends. It must be called before the box is used.
func (b *Box) Observe(begin func(ctx context.Context, tool string) (context.Context, func(error))) {
	b.observe = begin
}

func (b *Box) addKit(k tool.Kit) error {
	name := k.Name()
	if !isKitName(name) {
		return fmt.Errorf("tools: the kit %.80q has no name of 1 to 128 letters, digits and :._-", name)
	}
	if _, twice := b.names[name]; twice {
		return fmt.Errorf("tools: there are two kits named %s; leave one out", name)
	}

	// A kit without tools has its name all the same: nil would mean that there is none.
	b.names[name] = []string{}

	for _, spec := range k.Tools() {
		e, err := newEntry(k, spec)
		if err != nil {
			return fmt.Errorf("tools: %s: %w", name, err)
		}
		if other := b.tools[spec.Name]; other != nil {
			return fmt.Errorf("tools: both %s and %s have a tool named %s; leave one of them out", other.kit.Name(), name, spec.Name)
		}
		if _, twice := b.names[spec.PipelineName(name)]; twice {
			return fmt.Errorf("tools: %s has two tools named %s; leave one of them out", name, spec.PipelineName(name))
		}

		b.tools[spec.Name] = e
		b.names[name] = append(b.names[name], spec.Name)
		b.names[spec.PipelineName(name)] = []string{spec.Name}
	}
	return nil
}

// addToolNames lets pipelines list a tool by its bare name. It leaves out the tools of
// servers that others run: the name fetch must always mean the program's own.
func (b *Box) addToolNames(k tool.Kit) {
	if strings.Contains(k.Name(), ":") {
		return
	}
	for _, name := range b.names[k.Name()] {
		if _, taken := b.names[name]; !taken {
			b.names[name] = []string{name}
		}
	}
}

func isKitName(name string) bool {
	return name != "" && len(name) <= 128 && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(":._-", r)
	})
}

// newEntry checks what a tool says of itself.
func newEntry(k tool.Kit, spec tool.Spec) (*entry, error) {
	if spec.Name == Reserved {
		return nil, fmt.Errorf("the name %q is that of the final answer, and cannot be a tool's", spec.Name)
	}
	if len(spec.Input) > maxSchema {
		return nil, fmt.Errorf("the schema of the tool %.80s has %d bytes; at most %d are accepted", spec.Name, len(spec.Input), maxSchema)
	}
	schema, err := llm.NewSchema(spec.Name, spec.Input)
	if err != nil {
		return nil, fmt.Errorf("the tool %.80q: %w", spec.Name, err)
	}

	spec.Description = shorten.MarkedBytes(strings.ToValidUTF8(spec.Description, "\uFFFD"), maxDescription)
	spec.Timeout = min(max(cmp.Or(spec.Timeout, tool.DefaultTimeout), 0), maxTimeout)
	spec.MaxOutput = min(max(cmp.Or(spec.MaxOutput, tool.DefaultOutput), 0), tool.MaxOutput)
	return &entry{kit: k, spec: spec, input: schema}, nil
}

// Offers returns the names that pipelines may list, sorted: those of kits, of their tools as
// KIT/TOOL, and of the program's own tools alone.
func (b *Box) Offers() []string {
	if b == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(b.names))
}

// ErrUnknown is wrapped by the error for a name that stands for no tool of the box.
var ErrUnknown = errors.New("this worker has no such tool")

// Specs returns the tools that names stand for, each once, in the order of the names. Their
// timeouts and bounds are set. A name that ends with pipeline.OptionalTool may stand for none.
func (b *Box) Specs(names []string) ([]tool.Spec, error) {
	var all []tool.Spec
	for _, name := range names {
		name, optional := strings.CutSuffix(name, pipeline.OptionalTool)
		var tools []string
		if b != nil {
			tools = b.names[name]
		}

		// A worker need not have a tool that is optional.
		if tools == nil && optional {
			continue
		}
		if tools == nil {
			return nil, fmt.Errorf("%w: %q; it has %s", ErrUnknown, name, cmp.Or(strings.Join(b.Offers(), ", "), "none"))
		}

		for _, t := range tools {
			if !slices.ContainsFunc(all, func(s tool.Spec) bool { return s.Name == t }) {
				all = append(all, b.tools[t].spec)
			}
		}
	}

	return all, nil
}

// Schema returns the schema of the input of a tool, nil if there is no such tool.
func (b *Box) Schema(name string) *llm.Schema {
	if e := b.tools[name]; e != nil {
		return e.input
	}
	return nil
}

// Close closes all kits. No session is open any more.
func (b *Box) Close() error {
	if b == nil {
		return nil
	}
	var all []error
	for _, k := range b.kits {
		if err := k.Close(); err != nil {
			all = append(all, fmt.Errorf("closing %s: %w", k.Name(), err))
		}
	}
	return errors.Join(all...)
}

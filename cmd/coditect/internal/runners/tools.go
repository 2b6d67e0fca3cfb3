package runners

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/worker/step"
	"github.com/coditect/mapreduce/worker/tool"
	"github.com/coditect/mapreduce/worker/tool/browser"
	"github.com/coditect/mapreduce/worker/tool/fetch"
	"github.com/coditect/mapreduce/worker/tool/files"
	"github.com/coditect/mapreduce/worker/tool/policy"
	"github.com/coditect/mapreduce/worker/tool/search"
	"github.com/coditect/mapreduce/worker/tool/toolbox"
	"github.com/coditect/mapreduce/worker/tool/websearch"
)

// toolFlags are the flags that say which tools units may use in this process, and what
// these may reach.
type toolFlags struct {
	// Indexes is the folder of the indexes of --search-store. It is set by others.
	Indexes string
	folders []string       // of documents: NAME=DIR
	stores  []search.Store // the same, once ReadStores has read them
	embed   struct{ model, url string }

	names  []string // of kits, or of tools of kits
	hosts  []string // HOST[:PORT]
	root   string   // a folder
	search string   // ENGINE[=URL]
	mcp    string   // a file of servers

	chromium  string // its path; empty for what is found
	noSandbox bool   // of Chromium
}

// AddFlags adds the flags of a process that runs units.
func (t *toolFlags) AddFlags(f *pflag.FlagSet) {
	f.StringArrayVar(&t.names, "tool", nil, "`NAME` of a tool that units may use here; may be repeated. `coditect mapreduce tools` lists them")
	f.StringArrayVar(&t.hosts, "allow-host", nil, "`HOST[:PORT]` that tools may reach; *.HOST for its subdomains, * for all public hosts, NAME:PORT=ADDRESS for a private one; may be repeated (default none)")
	f.StringVar(&t.search, "search", "", "`ENGINE[=URL]` of web searches: "+strings.Join(websearch.EngineNames(), ", ")+"; offers search_web. Keys are read from the environment")
	t.AddSearchFlags(f)
	f.StringVar(&t.root, "tool-root", "", "`folder` whose files tools may read: offers the tools glob, grep and read")
	f.StringVar(&t.mcp, "mcp", "", "JSON `file` of MCP servers whose tools units may use: offers mcp:NAME for each server")
	f.StringVar(&t.chromium, "browser-path", "", "`path` of Chromium for --tool browser (default: looked up in PATH)")
	f.BoolVar(&t.noSandbox, "browser-no-sandbox", false, "run Chromium without its sandbox: a hostile page may then do what this process may do; only for machines that serve as a sandbox")
}

// A kitRow is a row of the table of kits.
type kitRow struct {
	// name is that of the kit, or what the names of its kits begin with: "mcp:".
	name  string
	about string // in a few words, for help
	// flags are those that give the kit, as they are typed.
	flags string
	// given reports whether a flag that gives the kit alone was given. The kit then needs no
	// --tool; a --tool that names one of its tools leaves out the others. It may be nil.
	given func(*toolFlags) bool
	// tools returns what the kit has, if that is known before it is open; else nil.
	tools func() []tool.Spec
	// open returns the kits of the row, or an error that names the flag that is wrong or
	// missing.
	open func(context.Context, kitNeeds) ([]tool.Kit, error)
}

// kitNeeds are what kits are made with.
type kitNeeds struct {
	flags   *toolFlags
	network *policy.Policy // closed, but for --allow-host
	formats *document.Registry
	getenv  func(string) string
	note    func(string) // tells the operator something; it may be called at any time
	reading string       // what the text of documents depends on beside their bytes
	embed   search.Embedder
}

// kitTable lists the kits that the program has. This is the only place that does.
func kitTable() []kitRow {
	return []kitRow{
		{
			name: files.Name, about: "finds and reads files of a folder", flags: "--tool-root DIR",
			given: func(t *toolFlags) bool { return t.root != "" },
			tools: files.Specs,
			open: func(_ context.Context, n kitNeeds) ([]tool.Kit, error) {
				kit, err := files.New(files.Config{Root: n.flags.root, Formats: n.formats})
				if err != nil {
					return nil, exit.RefusedError("--tool-root: %w", err)
				}
				return []tool.Kit{kit}, nil
			},
		},
		{
			name: search.Name, about: "finds passages in folders of documents", flags: "--search-store NAME=DIR",
			given: func(t *toolFlags) bool { return len(t.stores) > 0 },
			open: func(_ context.Context, n kitNeeds) ([]tool.Kit, error) {
				kit, err := openSearch(n)
				if err != nil {
					return nil, err
				}
				return []tool.Kit{kit}, nil
			},
		},
		{
			name: fetch.Name, about: "reads pages and documents of the web", flags: "--tool fetch --allow-host HOST[:PORT]",
			tools: fetch.Specs,
			open: func(_ context.Context, n kitNeeds) ([]tool.Kit, error) {
				if n.network.Hosts.Empty() {
					return nil, exit.UsageError("--tool fetch: reaches nothing without --allow-host HOST[:PORT]")
				}
				kit, err := fetch.New(fetch.Config{Network: n.network, Formats: n.formats})
				if err != nil {
					return nil, err
				}
				return []tool.Kit{kit}, nil
			},
		},
		{
			name: websearch.Name, about: "searches the web", flags: "--search ENGINE[=URL]",
			given: func(t *toolFlags) bool { return t.search != "" },
			tools: websearch.Specs,
			open: func(_ context.Context, n kitNeeds) ([]tool.Kit, error) {
				engine, address, _ := strings.Cut(n.flags.search, "=")
				c := websearch.Config{Engine: engine, URL: address}
				for _, e := range websearch.Engines() {
					if e.Name == engine && e.KeyVariable != "" {
						c.Key = n.getenv(e.KeyVariable)
					}
				}

				kit, err := websearch.New(c)
				if err != nil {
					return nil, exit.UsageError("--search: %w", err)
				}
				return []tool.Kit{kit}, nil
			},
		},
		{
			name: browser.Name, about: "uses pages with scripts in a headless Chromium", flags: "--tool browser --allow-host HOST[:PORT]",
			tools: browser.Specs,
			open:  openBrowser,
		},
		{
			name: mcpServers, about: "the tools of MCP servers", flags: "--mcp FILE",
			given: func(t *toolFlags) bool { return t.mcp != "" },
			open:  openServers,
		},
	}
}

// matches reports whether a name asks for a kit of the row: "fetch", "mcp:docs". All kits
// of a row like mcp: are asked for by what their names begin with, or by its flag.
func (r kitRow) matches(kit string) bool {
	return kit == r.name || strings.HasSuffix(r.name, ":") && strings.HasPrefix(kit, r.name)
}

// hasTool reports whether a kit of the row is known to have a tool.
func (r kitRow) hasTool(name string) bool {
	return r.tools != nil && slices.ContainsFunc(r.tools(), func(t tool.Spec) bool { return t.Name == name })
}

// A toolName is what --tool or a pipeline names: a kit, or one tool of it.
type toolName struct {
	row  kitRow
	kit  string // the kit; empty for all of the row
	tool string // one tool of the kit; empty for all
}

// findTool returns what a name stands for, if the program knows it.
func findTool(name string) (toolName, bool) {
	kit, one, _ := strings.Cut(name, "/")
	for _, r := range kitTable() {
		switch {
		case r.matches(kit) && (one == "" || r.tools == nil || r.hasTool(one)):
			return toolName{row: r, kit: kit, tool: one}, true
		case one == "" && r.hasTool(name):
			return toolName{row: r, kit: r.name, tool: name}, true
		}
	}
	return toolName{}, false
}

// kitNames lists the names of the table for messages.
func kitNames() string {
	var names []string
	for _, r := range kitTable() {
		if names = append(names, r.name); r.tools == nil {
			continue
		}
		for _, t := range r.tools() {
			if t.Name != r.name {
				names = append(names, t.Name)
			}
		}
	}

	return strings.Join(names, ", ")
}

// OpenTools opens the kits that the flags give, once for the process, and returns the tools
// that units may use in it: none if the service is on a server. CloseTools closes them.
func (r *Runners) OpenTools(ctx context.Context) (*toolbox.Box, error) {
	if r.box != nil || r.Remote {
		return r.box, nil
	}

	// Kits may start programs, so whatever else can be refused is refused before.
	wanted, err := r.Tools.wanted()
	if err != nil {
		return nil, err
	}
	hosts, err := policy.ParseHosts(r.Tools.hosts)
	if err != nil {
		return nil, exit.UsageError("--allow-host: %w", err)
	}

	formats, err := r.DocumentFormats()
	if err != nil {
		return nil, err
	}
	needs, err := kitNeedsOf(r, formats)
	if err != nil {
		return nil, err
	}
	needs.network = &policy.Policy{Hosts: hosts}

	var all openKits
	for _, row := range kitTable() {
		if err := all.addRow(ctx, row, needs, wanted); err != nil {
			return nil, errors.Join(err, all.close())
		}
	}

	box, err := toolbox.New(r.log, all.kits...)
	if err != nil {
		return nil, errors.Join(exit.RefusedError("--tool: %w", err), all.close())
	}

	if r.ToolCalls != nil {
		box.Observe(r.ToolCalls)
	}

	r.box, r.kits = box, all
	return box, nil
}

// LogTools logs panics of tools to log, also those of tools that are open already. It must
// be called before units run.
func (r *Runners) LogTools(log *slog.Logger) {
	r.log = log
	r.box.LogTo(log)
}

// CloseTools ends what OpenTools has opened.
func (r *Runners) CloseTools() error { return r.box.Close() }

// OfferedTools returns the names by which pipelines can ask for what OpenTools has opened,
// as worker.Config.Tools. A kit of which --tool names some tools does not go by its own
// name: a stage that lists it expects all of them.
func (r *Runners) OfferedTools() []string {
	return slices.DeleteFunc(r.box.Offers(), func(name string) bool { return r.kits.narrowed[name] })
}

// wanted returns what --tool names.
func (t *toolFlags) wanted() ([]toolName, error) {
	var all []toolName
	for _, name := range t.names {
		w, ok := findTool(name)
		if !ok {
			return nil, exit.UsageError("--tool: no tool is named %q; the tools are %s", name, kitNames())
		}
		all = append(all, w)
	}
	return all, nil
}

// openKits are the kits of a process.
type openKits struct {
	kits     []tool.Kit
	narrowed map[string]bool // by the name of the kit: some of its tools were left out
}

func (o *openKits) close() error {
	var all []error
	for _, k := range o.kits {
		all = append(all, k.Close())
	}
	return errors.Join(all...)
}

// addRow opens the kits of a row that are wanted.
func (o *openKits) addRow(ctx context.Context, row kitRow, needs kitNeeds, wanted []toolName) error {
	wanted = slices.DeleteFunc(slices.Clone(wanted), func(w toolName) bool { return w.row.name != row.name })
	given := row.given != nil && row.given(needs.flags)
	switch {
	case len(wanted) == 0 && !given:
		return nil
	case row.given != nil && !given:
		return exit.UsageError("--tool %s: needs %s", cmp.Or(wanted[0].tool, wanted[0].kit), row.flags)
	}

	kits, err := row.open(ctx, needs)
	if err != nil {
		return err
	}

	for _, w := range wanted {
		if w.kit != row.name && !slices.ContainsFunc(kits, func(k tool.Kit) bool { return k.Name() == w.kit }) {
			err = errors.Join(err, exit.UsageError("--tool: %s gives no kit named %q", row.flags, w.kit))
		}
	}

	for _, kit := range kits {
		only, offered := toolsOf(kit, wanted)
		if !offered {
			err = errors.Join(err, kit.Close())
			continue
		}

		// A kit whose tools are refused below is kept too: the caller closes what is kept.
		o.kits = append(o.kits, kit)
		if len(only) == 0 {
			continue
		}

		some, wrong := tool.Only(kit, only...)
		if wrong != nil {
			err = errors.Join(err, exit.UsageError("--tool: %w", wrong))
			continue
		}

		if len(some.Tools()) < len(kit.Tools()) {
			o.kits[len(o.kits)-1] = some
			if o.narrowed == nil {
				o.narrowed = make(map[string]bool)
			}
			o.narrowed[kit.Name()] = true
		}
	}

	return err
}

// toolsOf returns which tools of a kit are wanted, none for all of them, and whether the
// kit is wanted at all. A kit of a flag of its own is, unless --tool names others of its row.
func toolsOf(kit tool.Kit, wanted []toolName) (only []string, offered bool) {
	if len(wanted) == 0 {
		return nil, true
	}

	for _, w := range wanted {
		if w.kit != kit.Name() && w.kit != w.row.name {
			continue
		}
		if w.tool == "" {
			return nil, true
		}
		only, offered = append(only, w.tool), true
	}

	return only, offered
}

// CheckTools refuses a job whose stages need tools that are not here, and says which flag
// gives them. The workers of a server may have them.
func (r *Runners) CheckTools(spec *mapreduce.JobSpec) error {
	if r.Remote {
		return nil
	}

	p, err := step.PipelineOf(spec)
	if err != nil {
		return nil // the check of the job says it better
	}

	here := r.OfferedTools()
	for _, stage := range p.Stages {
		for _, name := range stage.RequiredTools() {
			if slices.Contains(here, name) {
				continue
			}

			w, ok := findTool(name)
			if !ok {
				return exit.RefusedError("--pipeline: stage %s needs the tool %q, but no tool has this name; the tools are %s", stage.Name, name, kitNames())
			}
			return exit.RefusedError("--pipeline: stage %s needs the tool %q; %s gives it", stage.Name, name, w.row.flags)
		}
	}

	return nil
}

// A KitView is a kit as `coditect mapreduce tools` prints it.
type KitView struct {
	Kit     string     `json:"kit"`
	About   string     `json:"about"`
	Flags   string     `json:"flags"` // that give it
	Offered bool       `json:"offered"`
	Tools   []ToolView `json:"tools"`
}

// A ToolView is a tool as `coditect mapreduce tools` prints it.
type ToolView struct {
	Name           string          `json:"name"` // as pipelines name it within its kit
	Description    string          `json:"description"`
	Idempotent     bool            `json:"idempotent"`
	TimeoutSeconds float64         `json:"timeout_seconds"`
	MaxOutput      int             `json:"max_output"` // bytes
	Input          json.RawMessage `json:"input"`
	Offered        bool            `json:"offered"`
}

// ListTools returns all kits of the program, and of those that the flags give what they have.
func (r *Runners) ListTools(ctx context.Context) ([]KitView, error) {
	if _, err := r.OpenTools(ctx); err != nil {
		return nil, err
	}

	here := r.OfferedTools()
	var views []KitView
	for _, row := range kitTable() {
		listed := false
		for _, kit := range r.kits.kits {
			if !row.matches(kit.Name()) {
				continue
			}
			listed = true
			specs := kit.Tools()
			if row.tools != nil {
				specs = row.tools() // also those that --tool leaves out
			}
			views = append(views, viewOf(kit.Name(), row, specs, here))
		}

		// A kit that is not open is listed by what is known of it.
		if !listed {
			var specs []tool.Spec
			if row.tools != nil {
				specs = row.tools()
			}
			views = append(views, viewOf(row.name, row, specs, nil))
		}
	}

	return views, nil
}

func viewOf(name string, row kitRow, specs []tool.Spec, here []string) KitView {
	v := KitView{Kit: name, About: row.about, Flags: row.flags, Offered: here != nil, Tools: []ToolView{}}
	for _, s := range specs {
		v.Tools = append(v.Tools, ToolView{
			Name: cmp.Or(s.Member, s.Name), Description: s.Description, Idempotent: s.Idempotent, Input: s.Input,
			TimeoutSeconds: cmp.Or(s.Timeout, tool.DefaultTimeout).Seconds(), MaxOutput: cmp.Or(s.MaxOutput, tool.DefaultOutput),
			Offered: slices.Contains(here, s.PipelineName(name)),
		})
	}
	return v
}

// Timeout returns the time of a call of the tool.
func (t ToolView) Timeout() time.Duration {
	return time.Duration(t.TimeoutSeconds * float64(time.Second))
}

// Summary returns the first sentence of the description.
func (t ToolView) Summary() string {
	first, _, _ := strings.Cut(t.Description, ". ")
	return strings.TrimSuffix(first, ".")
}

package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/pipeline/agentfile"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
)

// agentFolders are where the files of agents are looked for that a pipeline names, behind the
// folder of --agents. Nothing that stands there works unless a pipeline names it.
var agentFolders = []string{filepath.Join(".coditect", "agents"), filepath.Join(".claude", "agents")}

// agentFiles are the agents that a run has in files.
type agentFiles struct {
	ctx   context.Context
	given []*pipeline.Agent // of the folder that --agents names, by the names of their files
	named bool              // the pipeline names one of these
	known map[string]string // aliases of models
	notes []string          // what of the files has no effect
}

// readAgents reads all agents of the folder of --agents. A file that is no agent costs itself
// alone. Aliases are the names of models that the run gives.
func readAgents(ctx context.Context, dir string, aliases map[string]string) (*agentFiles, error) {
	a := &agentFiles{ctx: ctx, known: aliases}
	if dir == "" {
		return a, nil
	}

	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, exit.RefusedError("--agents: %w", err)
	}

	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".md" || strings.EqualFold(e.Name(), "readme.md") {
			continue
		}
		one, err := a.read(filepath.Join(dir, e.Name()))
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			a.notes = append(a.notes, fmt.Sprintf("left out: %v", err))
			continue
		}
		if slices.ContainsFunc(a.given, func(other *pipeline.Agent) bool { return other.Name == one.Name }) {
			a.notes = append(a.notes, fmt.Sprintf("left out: agent %s: name: %q is the name of another agent of the folder already", filepath.Join(dir, e.Name()), one.Name))
			continue
		}
		a.given = append(a.given, one)
	}

	if len(a.given) == 0 {
		why := strings.Join(append([]string{""}, a.notes...), "\n")
		return nil, exit.RefusedError("--agents: %s has no agents: those are files NAME.md%s", dir, why)
	}
	return a, nil
}

func (a *agentFiles) read(file string) (*pipeline.Agent, error) {
	data, err := console.ReadBounded(a.ctx, file, agentfile.MaxBytes)
	if err != nil {
		return nil, console.UnreadableFlag(a.ctx, "agent "+file, err)
	}

	one, notes, err := agentfile.Parse(file, data)
	if e, ok := errors.AsType[*errs.Error](err); ok {
		if e.Field == "agent" {
			return nil, exit.RefusedError("agent %s: %s", e.Op, e.Message)
		}
		return nil, exit.RefusedError("agent %s: %s: %s", e.Op, e.Field, e.Message)
	}
	if err != nil {
		return nil, err
	}

	if slices.Contains(agentfile.CommonModels, one.Model) && a.known[one.Model] == "" {
		one.Model = "" // it asks the model of the run
	}
	if len(notes) > 0 {
		a.notes = append(a.notes, fmt.Sprintf("agent %s: %s", file, strings.Join(notes, "; ")))
	}
	return one, nil
}

// find returns the agent that a pipeline names and does not define: by the path of its file,
// or by its name.
func (a *agentFiles) find(name string) (*pipeline.Agent, error) {
	if strings.HasSuffix(name, ".md") {
		return a.read(name)
	}
	if i := slices.IndexFunc(a.given, func(one *pipeline.Agent) bool { return one.Name == name }); i >= 0 {
		a.named = true
		return a.given[i], nil
	}

	// A name that is a path must not lead out of the folders.
	if !filepath.IsLocal(name) || filepath.Base(name) != name {
		return nil, nil
	}

	for _, dir := range agentFolders {
		file := filepath.Join(dir, name+".md")
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		one, err := a.read(file)
		if err == nil && one.Name != name {
			err = exit.RefusedError("agent %s: name: is %q, and the file is called like another", file, one.Name)
		}
		return one, err
	}

	return nil, nil
}

// join returns the pipeline with the agents of the folder that --agents names, unless it names
// some of them itself.
func (a *agentFiles) join(p *pipeline.Pipeline) (*pipeline.Pipeline, error) {
	if len(a.given) == 0 || a.named {
		return p, nil
	}
	return p.Join(a.given)
}

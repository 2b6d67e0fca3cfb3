package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/pipeline/cascading"
	"github.com/coditect/mapreduce/api/pipeline/waiting"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
)

// extractPipeline is the pipeline of jobs that name none.
const extractPipeline = "extract"

// readPipeline enters the pipeline that --pipeline names in a job, and returns it.
func (j *jobFlags) readPipeline(ctx context.Context, s *mapreduce.JobSpec) (*pipeline.Pipeline, error) {
	agents, err := readAgents(ctx, j.agents, s.Models)
	if err != nil {
		return nil, err
	}

	// The notes are taken at the end: reading the pipeline may add some.
	defer func() { j.notes = agents.notes }()

	if p, err := pipeline.Preset(j.pipeline); err == nil {
		if j.agents != "" {
			return j.enterOwn(agents, p, s)
		}
		s.Pipeline = p.Name
		if len(p.Inputs) == 0 {
			return p, nil // its variables are those of its provider
		}
		return p, j.knownVariables(p, s)
	}

	data, err := console.ReadBounded(ctx, j.pipeline, 4*pipeline.MaxBytes) // comments do not count
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, exit.UsageError("--pipeline: is neither the name of a pipeline (%s) nor a file that can be read: %w", strings.Join(presetNames(), ", "), err)
	}

	p, err := pipeline.ParseWith(j.pipeline, data, agents.find, agents.given...)
	if err != nil {
		return nil, pipelineFault(err)
	}
	return j.enterOwn(agents, p, s)
}

// enterOwn enters a pipeline in a job by its definition, with the agents of the run.
func (j *jobFlags) enterOwn(agents *agentFiles, p *pipeline.Pipeline, s *mapreduce.JobSpec) (*pipeline.Pipeline, error) {
	p, err := agents.join(p)
	if err != nil {
		return nil, pipelineFault(err)
	}
	j.parsed = p
	s.Pipeline, s.Definition = p.Name, p.Canonical()
	return p, j.knownVariables(p, s)
}

// questionInput returns the question of a job that needs no other document: one whose first
// agents have tools to find what there is to read. It is "" for any other job.
func (j *jobFlags) questionInput(s *mapreduce.JobSpec) string {
	p := j.parsed
	if p == nil {
		var err error
		if p, err = pipeline.Preset(s.Pipeline); err != nil {
			return ""
		}
	}

	for _, stage := range p.Stages.OfDocuments() {
		if len(stage.Tools) == 0 && p.Choices(stage) == nil {
			return ""
		}
	}

	return s.Vars["question"]
}

// locateFault adds the line of the pipeline file to an error about a key of a stage.
func (j *jobFlags) locateFault(err error) error {
	if err == nil || j.parsed == nil {
		return err
	}
	if located, ok := j.parsed.Locate(err); ok {
		return pipelineFault(located)
	}
	return err
}

// pipelineFault returns the error for a fault in a pipeline file, with its place.
func pipelineFault(err error) error {
	if of, ok := errors.AsType[*exit.Error](err); ok { // of the file of an agent
		return of
	}

	e, ok := errors.AsType[*errs.Error](err)
	switch {
	case !ok:
		return exit.RefusedError("--pipeline: %w", err)
	case e.Field == "pipeline": // the whole file
		return exit.RefusedError("--pipeline: %s: %s", e.Op, e.Message)
	}
	return exit.RefusedError("--pipeline: %s: %s: %s", e.Op, e.Field, e.Message)
}

// knownVariables refuses variables that a job with its own pipeline would never
// read. Otherwise a misspelled variable would silently have no effect.
func (j *jobFlags) knownVariables(p *pipeline.Pipeline, s *mapreduce.JobSpec) error {
	if j.extra != "" && s.Provider == j.extra {
		return nil // its variables are its own
	}

	known := slices.Concat(slices.Sorted(maps.Keys(p.Inputs)), settings.Variables(), cascading.Variables(), waiting.Variables())
	for _, v := range slices.Sorted(maps.Keys(s.Vars)) {
		if !slices.Contains(known, v) {
			return exit.UsageError("--var: %q is neither an input of the pipeline %s nor a setting of models; known are %s", v, p.Name, strings.Join(known, ", "))
		}
	}

	// One variable cannot be both.
	for _, v := range settings.Variables() {
		if _, both := p.Inputs[v]; both {
			return exit.UsageError("--pipeline: inputs: %q is the name of a setting of models; give the input another name", v)
		}
	}

	return nil
}

func presetNames() []string {
	var names []string
	for _, p := range pipeline.Presets() {
		names = append(names, p.Name)
	}
	return names
}

// A pipelineView is a pipeline as pipelines prints it.
type pipelineView struct {
	Name        string      `json:"name"`
	Description string      `json:"description"`
	Stages      []stageView `json:"stages"`
}

// A stageView is a stage as pipelines prints it.
type stageView struct {
	Name   string `json:"name"`
	From   string `json:"from"`
	Each   string `json:"each"`
	Output string `json:"output"`
}

// A pipelineList is what pipelines prints.
type pipelineList struct {
	Pipelines []pipelineView `json:"pipelines"`
}

func (cmds *commands) pipelinesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pipelines",
		Short: "Show the pipelines that come with the program",
		Long: `Pipelines lists the pipelines that come with the program. --pipeline of run and plan
accepts their names. "pipelines show" prints one as a file that you can copy and
change; docs/pipelines.md describes such files.`,
		Example: `  coditect mapreduce pipelines
  coditect mapreduce pipelines show extract > mine.yaml`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return cmds.listPipelines() },
	}

	show := &cobra.Command{
		Use:               "show NAME",
		Short:             "Print a pipeline that comes with the program",
		Example:           `  coditect mapreduce pipelines show extract`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(presetNames(), cobra.ShellCompDirectiveNoFileComp),
		RunE:              func(_ *cobra.Command, args []string) error { return cmds.showPipeline(args[0]) },
	}

	cmd.AddCommand(show)
	return cmd
}

func (cmds *commands) listPipelines() error {
	var list pipelineList
	for _, name := range presetNames() {
		p, err := pipeline.Preset(name)
		if err != nil {
			return err
		}
		view := pipelineView{Name: p.Name, Description: p.Description}
		for _, s := range p.Stages {
			view.Stages = append(view.Stages, stageView{s.Name, s.From, s.Each, s.Output.Kind})
		}
		list.Pipelines = append(list.Pipelines, view)
	}

	return cmds.PrintData(list, func() {
		w := tabwriter.NewWriter(cmds.Stdout, 0, 4, 2, ' ', 0)
		for _, p := range list.Pipelines {
			var stages []string
			for _, s := range p.Stages {
				stages = append(stages, s.Name)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", p.Name, strings.Join(stages, ", "), p.Description)
		}
		_ = w.Flush() // nobody reads an error about standard output
	})
}

// showPipeline prints the file of a preset, or with -o json what it holds.
func (cmds *commands) showPipeline(name string) error {
	p, err := pipeline.Preset(name)
	if err != nil {
		return exit.UsageError("pipelines show: %s", messageOf(err))
	}
	file, err := pipeline.PresetFile(name)
	if err != nil {
		return err
	}
	return cmds.PrintData(p, func() { fmt.Fprintf(cmds.Stdout, "%s", file) })
}

// messageOf returns the message of an error without the field of the request.
func messageOf(err error) string {
	if e, ok := errors.AsType[*errs.Error](err); ok {
		return e.Message
	}
	return err.Error()
}

package model

import (
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/sight"
	"github.com/coditect/mapreduce/worker/step"
)

// readsDocuments reports whether the units of a program may read documents and find records in them:
// only such units are shown pages.
func (p *Program) readsDocuments() bool {
	return p.stage == nil || p.stage.Documents && p.stage.Output == agent.Records && len(p.stage.Tools) == 0
}

// checkShown refuses a job, before anything is spent, of which nobody is shown pages, or not all whom it has to
// show them. With SeeAuto stages that are shown none may stand beside one that is, but for one that reads all documents
// in one call: it does so in place of the others.
func checkShown(spec *mapreduce.JobSpec) error {
	own, err := step.PipelineOf(spec)
	if err != nil || spec.See() == mapreduce.SeeNever || spec.Replay != "" {
		return err
	}

	shown := false
	for _, s := range own.Stages {
		why := whyBlind(s)
		if why != "" && (spec.See() == mapreduce.SeeAlways || s.Each == pipeline.EachAll) {
			return errs.Field("vars."+mapreduce.VarSee, "the stage %s %s, and so is shown no pages: leave --see or the stage out", s.Name, why)
		}
		shown = shown || why == "" && s.From == pipeline.Documents
	}
	if !shown {
		return errs.Field("vars."+mapreduce.VarSee, "nobody would be shown pages: they are shown to stages that find records in documents, each by itself and without tools, and the pipeline %s has none; leave --see out", own.Name)
	}
	return nil
}

// whyBlind says why a stage that reads documents is shown no pages; "" of other stages, and of one that is.
func whyBlind(s *pipeline.Stage) string {
	switch {
	case s.From != pipeline.Documents:
		return ""
	case s.Each == pipeline.EachAll:
		return "reads all documents in one call"
	case len(s.Tools) > 0:
		return "has tools"
	case s.Output.Kind != pipeline.OutputRecords:
		return "finds no records"
	}
	return ""
}

// setSight finds out what the model of a program may be shown. With SeeAuto a model that is known to
// see no pictures gets the text that was recognised, and nothing else.
func (p *Program) setSight() {
	if p.See == mapreduce.SeeNever || !p.readsDocuments() {
		return
	}
	if p.See == mapreduce.SeeAuto && llm.Lacks(p.Provider, p.Model, llm.Need{Sees: true}) != "" {
		return
	}
	p.Sight = new(sight.Of(p.Provider, p.Model))
}

// joinSight has a picture be one that another model may be shown too, which stands for that of the
// program. If that sees none, nobody is shown any: an answer would depend on who is away.
func (p *Program) joinSight(other *Program) {
	switch {
	case p.Sight == nil:
	case other.Sight == nil:
		p.Sight = nil
	default:
		p.Sight = new(p.Sight.Both(*other.Sight))
	}
}

package model

import (
	"context"
	"errors"
	"fmt"
	"regexp"

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
func (p *program) readsDocuments() bool {
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
func (p *program) setSight() {
	if p.See == mapreduce.SeeNever || !p.readsDocuments() {
		return
	}
	if p.See == mapreduce.SeeAuto && llm.Lacks(p.Provider, p.Model, llm.Need{Sees: true}) != "" {
		return
	}
	p.sight = new(sight.Of(p.Provider, p.Model))
}

// joinSight has a picture be one that another model may be shown too, which stands for that of the
// program. If that sees none, nobody is shown any: an answer would depend on who is away.
func (p *program) joinSight(other *program) {
	switch {
	case p.sight == nil:
	case other.sight == nil:
		p.sight = nil
	default:
		p.sight = new(p.sight.Both(*other.sight))
	}
}

// pages are pictures of pages of a document, as a model is shown them.
type pages struct {
	numbers []int
	parts   []llm.Part
}

// refusedPictures are the words of servers whose model takes no pictures:
// github.com/ollama/ollama/issues/17301, github.com/vllm-project/vllm/issues/11629,
// github.com/OpenCoworkAI/open-cowork/issues/251.
var refusedPictures = regexp.MustCompile(`(?i)image|picture|vision|multi-?modal`)

// hideRefused reports whether a server refused a call for its pictures, so that it is to be made without.
// Later units of the job are shown none then. With SeeAlways the unit fails.
func (x *extraction) hideRefused(err error) bool {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Kind != llm.Invalid && e.Kind != llm.NotFound || len(x.shown.parts) == 0 || x.See != mapreduce.SeeAuto || !refusedPictures.MatchString(e.Message) {
		return false
	}
	x.blind.Store(true)
	x.shown = pages{}
	x.noteError("the model takes no pictures, and was given the text alone", err)
	return true
}

// showPages draws the pages that the model is shown beside the unit's text. Each is as large as all
// models that may be asked see as it is.
func (s *session) showPages(ctx context.Context) (pages, error) {
	var shown pages
	if s.sight == nil || s.task.Pictures == nil || s.blind.Load() {
		return shown, nil
	}

	all, err := s.task.Pictures(ctx, s.sight.Fit)
	if errors.Is(err, agent.ErrNoPages) && s.See == mapreduce.SeeAuto {
		s.noteError("the model was shown no pages", err)
		return shown, nil
	}
	if err != nil {
		return shown, err
	}

	var size int64
	for i, p := range all {
		picture := llm.NewPicture(p.MediaType, p.Width, p.Height, s.sight.Tokens(p.Width, p.Height), p.Data)
		if size += picture.Encoded(); i == s.sight.Most || size > s.sight.Total {
			s.noteError(fmt.Sprintf("the model was shown %d of %d pages, which are all that the vendor takes at once; smaller units have fewer (--max-tokens-per-unit)", i, len(all)), nil)
			break
		}
		shown.numbers = append(shown.numbers, p.Page)
		shown.parts = append(shown.parts, llm.Part{Picture: picture})
	}
	return shown, nil
}

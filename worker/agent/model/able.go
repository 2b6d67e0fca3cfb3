package model

import (
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
	"github.com/coditect/mapreduce/worker/llm"
)

// NeedOf returns what a job asks of its model: what is asked of the models of its stages that have none
// of their own.
func (a *Agent) NeedOf(spec *mapreduce.JobSpec) (llm.Need, error) {
	var most llm.Need
	all, err := a.programsOf(spec)
	for _, p := range all {
		n := p.need()
		most.Tools, most.Sees, most.Window = most.Tools || n.Tools, most.Sees || n.Sees, max(most.Window, n.Window)
	}
	return most, err
}

// need returns what a program asks of its model. Its window is 0 until the prompt is counted.
func (p *Program) need() llm.Need {
	n := llm.Need{Tools: p.ToolMode || p.stage != nil && len(p.stage.Tools) > 0, Sees: p.See == mapreduce.SeeAlways && p.readsDocuments()}
	if p.fixed > 0 {
		n.Window = p.fixed + p.AnswerBound() + MinDocument
	}
	return n
}

// checkModel refuses a model that is known not to do what is needed, or not where it would be asked.
// A job that repeats another asks none.
func (p *Program) checkModel(spec *mapreduce.JobSpec) error {
	if spec.Replay != "" {
		return nil
	}

	need := p.need()
	if why := llm.Lacks(p.Provider, p.Model, need); why != "" {
		return errs.Field("model", "%s %s%s", p.Model, why, llm.CouldBe(p.Provider, p.prices.Able(p.Provider, need)))
	}

	if checker, ok := p.Vendor.(llm.ModelChecker); ok {
		if err := checker.CheckModel(p.Model); err != nil {
			return errs.Field("model", "%s: %w", p.Model, err)
		}
	}

	return nil
}

// hasRoom refuses a context window without room for a document besides instructions and
// answer.
func (p *Program) hasRoom() error {
	need := p.need()
	if p.Window == 0 || need.Window <= p.Window {
		return nil
	}
	return errs.Field("vars."+settings.VarWindow, "a context window of %d tokens is too small: instructions and schema take %d and an answer up to %d, "+
		"which leaves no room for a document; give more, or less for %s%s", p.Window, p.fixed, p.AnswerBound(), settings.VarAnswer,
		llm.CouldBe(p.Provider, p.prices.Able(p.Provider, need)))
}

package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/model/memory"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/answer"
)

// firstMisfits is how many units, the first of a job, may have answers that cannot be read before
// the job stops: its model cannot follow the form.
const firstMisfits = 20

// maxJobs bounds the jobs whose answers are counted.
const maxJobs = 256

// An answerTally counts the answers of a job, as far as this process has them.
type answerTally struct {
	fits   bool // one of them did
	units  []mapreduce.UnitID
	noJSON int    // of these units
	begins string // the first answer that was no JSON
}

// noteFit notes that a model has answered a job in the form.
func (a *Agent) noteFit(job mapreduce.JobID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tallyOf(job).fits = true
}

// tallyOf returns the tally of a job. The caller holds the lock.
func (a *Agent) tallyOf(job mapreduce.JobID) *answerTally {
	t := a.tallies[job]
	if t == nil {
		if len(a.tallies) == maxJobs {
			clear(a.tallies)
		}
		t = new(answerTally)
		a.tallies[job] = t
	}
	return t
}

// noteMisfit notes that a unit had no answer that could be read. It returns the error that ends the
// job if that is so of its first units.
func (a *Agent) noteMisfit(task *agent.Task, misfit *llm.Error) error {
	a.mu.Lock()
	defer a.mu.Unlock()

	t := a.tallyOf(task.Job)
	// A unit counts once, however many attempts it has.
	if t.fits || slices.Contains(t.units, task.Unit) {
		return nil
	}

	t.units = append(t.units, task.Unit)
	if e, ok := errors.AsType[*llm.MismatchError](misfit.Err); ok && e.NoJSON != "" {
		if t.noJSON++; t.noJSON == 1 {
			t.begins = e.NoJSON
		}
	}

	n := len(t.units)
	if n < firstMisfits {
		return nil
	}

	what := fmt.Sprintf("%d of %d answers do not fit their form; the last: %s", n, n, misfit.Message)
	if t.noJSON == n {
		what = fmt.Sprintf("%d of %d answers were no JSON; the first begins %q", n, n, t.begins)
	}
	return &llm.Error{Kind: llm.Mismatch, Class: mapreduce.PermanentJob, Message: what + "; ask another model, or try --sample 1"}
}

// judgeMisfit returns the error of an attempt whose answers could not be read: the unit is tried
// once more, and no more.
func (r *runner) judgeMisfit(ctx context.Context, task *agent.Task, calls agent.Calls, err error) error {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Kind != llm.Mismatch || ctx.Err() != nil {
		return err
	}

	if stop := r.agent.noteMisfit(task, e); stop != nil {
		return stop
	}

	again, noted := memory.NoteMisfit(ctx, calls)
	if noted != nil {
		return errors.Join(err, noted)
	}

	if !again {
		e.Class = mapreduce.PermanentUnit
	}
	return err
}

// noteRepairs notes what was mended in an answer.
func (s *session) noteRepairs(kinds []answer.Kind) {
	if len(kinds) == 0 {
		return
	}
	words := make([]string, len(kinds))
	for i, k := range kinds {
		words[i] = string(k)
	}
	s.notes = append(s.notes, mapreduce.MendedNote+strings.Join(words, ", "))
}

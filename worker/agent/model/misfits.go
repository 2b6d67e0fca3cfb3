package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/agent"
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

// noteRepairs notes what was mended in an answer.
func (s *Session) noteRepairs(kinds []answer.Kind) {
	if len(kinds) == 0 {
		return
	}
	words := make([]string, len(kinds))
	for i, k := range kinds {
		words[i] = string(k)
	}
	s.Notes = append(s.Notes, mapreduce.MendedNote+strings.Join(words, ", "))
}

// tallies are those of the jobs that were answered last.
type tallies struct {
	mu sync.Mutex // guards the field below
	of map[mapreduce.JobID]*answerTally
}

// noteFit notes that a model has answered a job in the form.
func (t *tallies) noteFit(job mapreduce.JobID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tallyOf(job).fits = true
}

// tallyOf returns the tally of a job. The caller holds the lock.
func (t *tallies) tallyOf(job mapreduce.JobID) *answerTally {
	one := t.of[job]
	if one == nil {
		if len(t.of) == maxJobs {
			clear(t.of)
		}
		one = new(answerTally)
		t.of[job] = one
	}
	return one
}

// noteMisfit notes that a unit had no answer that could be read. It returns the error that ends the
// job if that is so of its first units.
func (t *tallies) noteMisfit(task *agent.Task, misfit *llm.Error) error {
	t.mu.Lock()
	defer t.mu.Unlock()

	of := t.tallyOf(task.Job)
	// A unit counts once, however many attempts it has.
	if of.fits || slices.Contains(of.units, task.Unit) {
		return nil
	}

	of.units = append(of.units, task.Unit)
	if e, ok := errors.AsType[*llm.MismatchError](misfit.Err); ok && e.NoJSON != "" {
		if of.noJSON++; of.noJSON == 1 {
			of.begins = e.NoJSON
		}
	}

	n := len(of.units)
	if n < firstMisfits {
		return nil
	}

	what := fmt.Sprintf("%d of %d answers do not fit their form; the last: %s", n, n, misfit.Message)
	if of.noJSON == n {
		what = fmt.Sprintf("%d of %d answers were no JSON; the first begins %q", n, n, of.begins)
	}
	return &llm.Error{Kind: llm.Mismatch, Class: protocol.PermanentJob, Message: what + "; ask another model, or try --sample 1"}
}

// NoteMisfit notes that a unit had no answer that could be read. It returns the error that ends the
// job if that is so of its first units.
func (a *Agent) NoteMisfit(task *agent.Task, misfit *llm.Error) error {
	return a.tallies.noteMisfit(task, misfit)
}

package dispatch

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/store/jobs/content"
	"github.com/coditect/mapreduce/store/jobs/queue"
)

// A textsAhead reads what units work on while the turn commits that claims them: a cluster
// takes about as long to answer as to commit, and neither has to wait for the other. What
// was read for a turn that does not commit is dropped.
type textsAhead struct {
	dispatcher *dispatcher
	job        mapreduce.JobID

	done   chan struct{} // closes when the variables below are set; nil if nothing is read
	cancel context.CancelFunc
	texts  [][]byte // of the units, in order; nil for those that have to read their own
	err    error
}

// begin reads the texts of units that are about to be claimed, instead of those of an
// earlier run of the same turn.
func (a *textsAhead) begin(ctx context.Context, claimed []queue.Claimed) {
	a.end()
	ctx, a.cancel = context.WithCancel(ctx)
	done := make(chan struct{})
	a.done = done

	go func() {
		defer close(done)
		a.texts = make([][]byte, len(claimed))
		a.err = a.dispatcher.supervisor.ContainPanic(ctx, "reading documents", func() error {
			texts, err := a.dispatcher.readInputTexts(ctx, a.job, claimed)
			if err == nil {
				a.texts = texts
			}
			return err
		}, "job", a.job)
	}()
}

// wait returns the texts of the units that were claimed. After an error each unit has to
// read its own text, and fails alone if that cannot be read.
func (a *textsAhead) wait() ([][]byte, error) {
	<-a.done
	return a.texts, a.err
}

// end ends the reading, if any is under way.
func (a *textsAhead) end() {
	if a.done != nil {
		a.cancel()
		<-a.done
	}
}

// readInputTexts reads what the claimed units work on, all together, but for what is too
// large for an assignment.
func (d *dispatcher) readInputTexts(ctx context.Context, id mapreduce.JobID, claimed []queue.Claimed) ([][]byte, error) {
	ranges := make([]content.TextRange, len(claimed))
	for i, c := range claimed {
		if src := c.Unit.Source; src != nil && src.End-src.Start <= protocol.MaxAssigned {
			ranges[i] = content.TextRange{SHA256: src.SHA256, Start: src.Start, End: src.End}
		}
	}
	return d.jobs.Content.Texts(ctx, id, ranges)
}

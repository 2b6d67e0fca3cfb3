package orchestrator

import (
	"context"

	"github.com/coditect/mapreduce/store/jobs"
)

// Retire says that this orchestrator is no more, so that others have at once
// what it was granted, instead of after the lease. It is for when Run has
// returned, the workers of this process have ended, and nobody calls any more. If
// workers elsewhere or submissions of it are left, it says nothing: others take
// over from it as from one that died.
func (o *Orchestrator) Retire(ctx context.Context) error {
	left, err := o.leavesWork(ctx)
	if err != nil || left {
		return err
	}
	beats, err := o.jobs.Beats(ctx)
	if err != nil {
		return err
	}
	return o.jobs.Forget(ctx, o.jobs.Node(), beats[o.jobs.Node()], nil)
}

// leavesWork reports whether the store holds anything for others to take over. What
// workers of this process held goes back.
func (o *Orchestrator) leavesWork(ctx context.Context) (bool, error) {
	ingests, err := o.jobs.Ingests(ctx)
	if err != nil {
		return false, err
	}
	for _, in := range ingests {
		if in.Node == o.jobs.Node() {
			return true, nil
		}
	}
	last := jobs.SessionRef{}
	for {
		page, more, err := o.jobs.Sessions(ctx, last.Session, 500)
		if err != nil {
			return false, err
		}
		for _, last = range page {
			switch {
			case last.Expiring():
				return true, nil
			case last.Node != o.jobs.Node():
			case !last.Embedded:
				return true, nil
			default:
				if err := o.expireSession(ctx, last, nil); err != nil {
					return false, err
				}
			}
		}
		if !more {
			return false, nil
		}
	}
}

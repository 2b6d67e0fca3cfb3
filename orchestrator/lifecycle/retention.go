package lifecycle

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/store/jobs"
	store "github.com/coditect/mapreduce/store/jobs/lifecycle"
)

// A retention deletes jobs whose time is over.
type retention struct {
	jobs       *jobs.Jobs
	signals    *cluster.Signals
	supervisor *cluster.Supervisor
	log        *slog.Logger
	every      time.Duration // such jobs are looked for
}

// loop deletes jobs that ended longer ago than they are kept. Some go in one
// transaction, each whole, so that a loop which is interrupted has deleted some and touched no
// other; another, of whichever orchestrator, goes on.
func (r *retention) loop(ctx context.Context) {
	cluster.CallEvery(ctx, cluster.WithJitter(r.every), func() {
		r.supervisor.LogFailure(ctx, "deleting jobs whose time is over", r.deleteExpired(ctx))
	})
}

// deleteExpired deletes the jobs whose time is over.
func (r *retention) deleteExpired(ctx context.Context) error {
	seen := make(map[mapreduce.JobID]bool) // what is found again stays, such as what is damaged
	for {
		expired, err := r.jobs.Lifecycle.Expired(ctx)
		expired = slices.DeleteFunc(expired, func(e store.Expired) bool { return seen[e.Job] })
		if err != nil || len(expired) == 0 {
			return err
		}

		for some := range slices.Chunk(expired, deletedAtOnce) {
			for _, e := range some {
				seen[e.Job] = true
			}
			if err := r.deleteSome(ctx, some); err != nil {
				return err
			}
		}
	}
}

// deletedAtOnce is how many jobs one transaction deletes: each is some ranges of keys, whatever
// it holds. The embedded store sorts all ranges that were cleared of late once more when it is
// read after a transaction, so fewer and larger ones are quicker.
const deletedAtOnce = 200

// deleteSome deletes jobs, one by one if one of them cannot be deleted with the others.
func (r *retention) deleteSome(ctx context.Context, some []store.Expired) error {
	err := r.jobs.Lifecycle.DeleteExpired(ctx, some...)
	if err != nil && len(some) > 1 && ctx.Err() == nil {
		for i := range some {
			if err := r.deleteSome(ctx, some[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	}

	if err != nil {
		return err
	}

	for _, e := range some {
		r.log.Info("a job was deleted whose time was over", "job", e.Job, "tenant", e.Tenant, "rule", e.Rule)
		r.signals.MarkDue(e.Job)
		r.signals.NotifyWatchers(e.Job)
	}
	return nil
}

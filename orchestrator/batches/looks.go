package batches

import (
	"context"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
	kept "github.com/coditect/mapreduce/store/jobs/batches"
)

// A look is how the batches of a job stood when this node last looked.
type look struct {
	*kept.Standing
	again time.Time        // when it is to be looked at again
	waits map[int64]string // why a batch that is planned is not begun yet, by its number
}

// quietly is how many times as long a job is left alone in which nothing moves by itself.
const quietly = 3

// orders returns the batches that a session is to see to.
func (b *Batches) orders(ctx context.Context, session *workers.Session) ([]protocol.BatchOrder, error) {
	select {
	case b.asking <- struct{}{}:
		defer func() { <-b.asking }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := b.lookAround(ctx); err != nil {
		return nil, err
	}

	orders, err := b.orphansOf(ctx, session)
	if err != nil {
		return nil, err
	}
	for id, seen := range b.seen {
		some, err := b.ordersOf(ctx, session, id, seen)
		if errs.KindOf(err) == errs.NotFound {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		orders = append(orders, some...)
	}
	return orders, nil
}

// lookAround looks at the jobs with batches that are due, and makes batches of lines that have waited
// long enough.
func (b *Batches) lookAround(ctx context.Context) error {
	now := time.Now()
	if now.Sub(b.looked) < b.config.Fresh {
		return nil
	}
	ids, err := b.jobs.Batches.Batching(ctx)
	if err != nil {
		return err
	}
	b.forgetBut(ids)

	for _, id := range ids {
		if before := b.seen[id]; before != nil && now.Before(before.again) {
			continue
		}
		s, err := b.lookAt(ctx, id)
		if errs.KindOf(err) == errs.NotFound {
			delete(b.seen, id) // the job was deleted meanwhile
			continue
		}
		if err != nil {
			return err
		}
		b.seen[id] = &look{Standing: s, again: now.Add(b.config.Fresh)}
		if isQuiet(s) {
			b.seen[id].again = now.Add(quietly * b.config.Fresh)
		}
	}
	if b.orphans, err = b.jobs.Batches.Orphans(ctx); err != nil {
		return err
	}
	if err := b.freeRooms(ctx, now); err != nil {
		return err
	}
	if err := b.seeRoom(ctx); err != nil {
		return err
	}
	b.looked = now
	return nil
}

// orphansOf returns the batches without a job that a session is to cancel.
func (b *Batches) orphansOf(ctx context.Context, session *workers.Session) ([]protocol.BatchOrder, error) {
	orders := []protocol.BatchOrder{}
	for i := range b.orphans {
		one := &b.orphans[i]
		if session.Tenant != "" && session.Tenant != one.Tenant || !slices.Contains(session.Batches(), one.Provider) {
			continue
		}

		// What a session is given is read for it alone, as of other batches. It is gone if it has ended.
		now, taken, err := b.jobs.Batches.Take(ctx, one.Job, one.Number, session.ID, session.Epoch)
		if errs.KindOf(err) == errs.NotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		if taken {
			orders = append(orders, protocol.BatchOrder{Batch: now, Cancel: true, Own: one.Own, Vars: one.Vars})
		}
	}
	return orders, nil
}

// isQuiet reports whether nothing is to be done about a job but by those who see to its batches.
func isQuiet(s *kept.Standing) bool {
	return s.Waiting == 0 && !s.Coming && !slices.ContainsFunc(s.Batches, func(h kept.Held) bool { return h.Session == "" })
}

// lookAt returns how the batches of a job stand, after new ones were made.
func (b *Batches) lookAt(ctx context.Context, id mapreduce.JobID) (*kept.Standing, error) {
	s, err := b.jobs.Batches.Look(ctx, id)
	if err != nil {
		return nil, err
	}
	f, err := b.forecasts.of(ctx, id)
	if err != nil {
		return nil, err
	}

	// What may not wait any more is put in no batch, however many looks it takes to have all of it asked.
	rescued, more, err := b.rescue(ctx, id, s, f)
	if err != nil {
		return nil, err
	}
	planned := false
	if !more {
		planned, err = b.plan(ctx, id, s, f)
	}
	if err != nil || !planned && !rescued {
		return s, err
	}
	return b.jobs.Batches.Look(ctx, id)
}

// mayHave reports whether a session may be given a batch.
func mayHave(session *workers.Session, s *kept.Standing, one *kept.Held) bool {
	cancelled := s.State == mapreduce.JobCancelled
	switch {
	case session.Tenant != "" && session.Tenant != s.Tenant, !slices.Contains(session.Batches(), one.Provider):
		return false
	case one.Filling:
		return cancelled
	case one.State == protocol.BatchPlanned:
		return cancelled || s.State.Running() // what was not begun is not paid for yet
	}
	return true
}

// ordersOf returns those of a job.
func (b *Batches) ordersOf(ctx context.Context, session *workers.Session, id mapreduce.JobID, seen *look) ([]protocol.BatchOrder, error) {
	has, s := false, seen.Standing
	for i := range s.Batches {
		one := &s.Batches[i]
		if !mayHave(session, s, one) {
			continue
		}

		// Only those that nobody sees to take a transaction.
		if one.Session == "" {
			_, taken, err := b.jobs.Batches.Take(ctx, id, one.Number, session.ID, session.Epoch)
			if err != nil {
				return nil, err
			}
			if taken {
				one.Session, one.Filling = session.ID, false
			}
		}
		has = has || one.Session == session.ID
	}
	if !has {
		return nil, nil
	}
	return b.read(ctx, session, id, seen)
}

// read returns the batches of a job that a session has, as they are stored now.
func (b *Batches) read(ctx context.Context, session *workers.Session, id mapreduce.JobID, seen *look) (orders []protocol.BatchOrder, err error) {
	s := seen.Standing
	all, err := b.jobs.Batches.Now(ctx, id)
	if err != nil {
		return nil, err
	}
	job, err := b.specs.Job(ctx, id)
	if err != nil {
		return nil, err
	}

	used, short := make(map[string]*kept.Use), make(map[string]string)
	for i := range all {
		one := &all[i]
		if one.Session != session.ID || !mayHave(session, s, one) {
			continue
		}
		order := protocol.BatchOrder{
			Batch: one.Batch, Cancel: s.State == mapreduce.JobCancelled || one.Ending,
			Vars: job.Spec.Vars, Own: one.Provider == job.Spec.Provider,
		}
		switch {
		case one.State != protocol.BatchPlanned:
		case session.Tenant == "":
			order.Wait = seen.waits[one.Number]
		default: // whose account is another
			if order.Wait, err = b.lack(ctx, one.Batch, session.Tenant, used, short); err != nil {
				return nil, err
			}
		}
		if one.State == protocol.BatchCreating { // it is looked for
			for _, other := range all {
				if other.Vendor != "" && other.Number != one.Number {
					order.Others = append(order.Others, other.Vendor)
				}
			}
		}
		orders = append(orders, order)
	}
	return orders, nil
}

// maxPlans bounds the transactions that put lines of a job in batches while one worker asks.
const maxPlans = 64

// plan makes batches of lines of a job that are due, and reports whether it made any. f is nil of a job without a
// deadline.
func (b *Batches) plan(ctx context.Context, id mapreduce.JobID, s *kept.Standing, f *forecast) (planned bool, err error) {
	if !s.State.Running() {
		return false, nil
	}
	hurry := b.see(id, s.Waiting, s.Coming, time.Now())
	if s.Waiting == 0 {
		return false, nil
	}

	for range maxPlans {
		mark := b.config.NewMark()
		var res *kept.Result
		err := b.supervisor.RetryStoreCall(ctx, "making a batch", func() (err error) {
			res, err = b.jobs.Batches.Plan(ctx, id, mark, hurry, f.roomOf(b.config.Room))
			return err
		})
		if err != nil {
			return planned, err
		}
		if !res.Changed {
			if hurry {
				b.forget(id) // what comes next is counted anew
			}
			return planned, nil
		}
		b.apply(ctx, id, res)
		planned = true
	}
	return planned, nil
}

package check

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/check/walk"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// checkSessions checks that every session's record can be read.
func (c *checker) checkSessions(ctx context.Context) error {
	return c.WalkRange(ctx, "", c.Keys.Nodes().Sessions(), walk.PageOptions(), func(l *walk.Look, page []store.KeyValue) error {
		for _, kv := range page {
			l.Decode(kv.Key, kv.Value, new(storagev1.Session))
		}
		return nil
	}, nil)
}

// checkClaims checks that every claim has a session. A claim may name units that it
// does not hold any more: which claim holds a unit, its record says.
func (c *checker) checkClaims(ctx context.Context) error {
	return c.WalkRange(ctx, "", c.Keys.Nodes().HeldAll(), store.RangeOptions{Limit: 20}, func(l *walk.Look, page []store.KeyValue) error {
		for _, kv := range page {
			_, rest, err := c.Keys.Last(kv.Key)
			if err != nil {
				return err
			}

			if err := c.checkClaim(ctx, l, kv, mapreduce.SessionID(rest.Text())); err != nil {
				return err
			}
		}
		return nil
	}, nil)
}

func (c *checker) checkClaim(ctx context.Context, l *walk.Look, kv store.KeyValue, session mapreduce.SessionID) error {
	var held storagev1.Held
	if !l.Decode(kv.Key, kv.Value, &held) {
		return nil
	}

	alive, err := l.Get(ctx, c.Keys.Nodes().Session(session))
	if err != nil {
		return err
	}

	if alive == nil {
		l.Find(kv.Key, "the claim is of session %q, which is not there: its units will not come back; cancel and submit their jobs again", session)
	}
	return nil
}

// checkIngests finds submissions that nobody will end.
func (c *checker) checkIngests(ctx context.Context) error {
	return c.WalkRange(ctx, "", c.Keys.Ingests(), walk.PageOptions(), func(l *walk.Look, page []store.KeyValue) error {
		for _, kv := range page {
			var in storagev1.Ingest
			if !l.Decode(kv.Key, kv.Value, &in) {
				continue
			}

			alive, err := l.Get(ctx, c.Keys.Nodes().Beat(mapreduce.NodeID(in.Node)))
			if err != nil {
				return err
			}
			if alive == nil {
				l.Find(kv.Key, "node %s, which gives no sign of life, has a submission under way; an orchestrator that starts abandons it", in.Node)
			}
		}
		return nil
	}, nil)
}

// checkRecents checks that every job of the list by time is there.
func (c *checker) checkRecents(ctx context.Context) error {
	return c.WalkRange(ctx, "", c.Keys.RecentJobs(), walk.PageOptions(), func(l *walk.Look, page []store.KeyValue) error {
		for _, kv := range page {
			_, rest, err := c.Keys.Last(kv.Key)
			if err != nil {
				return err
			}

			micros, id := rest.Int(), mapreduce.JobID(rest.Text())
			rec := new(storagev1.Job)
			found, err := l.Load(ctx, c.Keys.Job(id).Record(), rec)
			if err != nil {
				return err
			}

			// Findings name the job.
			if l.Job = id; !found || rec.CreatedAtMicros != micros {
				l.Find(kv.Key, "the list has a job of that time which is not there, so that `coditect mapreduce list` fails or shows it twice; "+walk.WholeOnly)
			}
		}
		return nil
	}, nil)
}

// checkTenantJobs checks that every job of the lists of tenants is there, and theirs.
func (c *checker) checkTenantJobs(ctx context.Context) error {
	return c.WalkRange(ctx, "", c.Keys.AllTenants().Jobs(), walk.PageOptions(), func(l *walk.Look, page []store.KeyValue) error {
		for _, kv := range page {
			_, rest, err := c.Keys.Last(kv.Key)
			if err != nil {
				return err
			}

			tenant, micros, id := rest.Text(), rest.Int(), mapreduce.JobID(rest.Text())
			rec := new(storagev1.Job)
			found, err := l.Load(ctx, c.Keys.Job(id).Record(), rec)
			if err != nil {
				return err
			}

			// Findings name the job.
			if l.Job = id; !found || rec.CreatedAtMicros != micros || rec.Config.GetTenant() != tenant {
				l.Find(kv.Key, "the list of tenant %q has a job of that time which is not there, so that `coditect mapreduce list --tenant` fails or shows one twice; "+walk.WholeOnly, tenant)
			}
		}
		return nil
	}, nil)
}

// checkRequests checks that every request leads to the job that it submitted.
func (c *checker) checkRequests(ctx context.Context) error {
	return c.WalkRange(ctx, "", c.Keys.AllTenants().Requests(), walk.PageOptions(), func(l *walk.Look, page []store.KeyValue) error {
		for _, kv := range page {
			_, rest, err := c.Keys.Last(kv.Key)
			if err != nil {
				return err
			}

			tenant, request := rest.Text(), rest.Text()
			rec := new(storagev1.Job)
			// Findings name the job.
			l.Job = mapreduce.JobID(kv.Value)
			found, err := l.Load(ctx, c.Keys.Job(l.Job).Record(), rec)
			if err != nil {
				return err
			}

			if !found || rec.Config.GetTenant() != tenant || rec.Config.GetRequestId() != request {
				l.Find(kv.Key, "request %q leads to job %q, which it did not submit; submit with another --request-id", request, kv.Value)
			}
		}
		return nil
	}, nil)
}

// checkRuns checks that every job that is listed to run may.
func (c *checker) checkRuns(ctx context.Context) error {
	return c.WalkRange(ctx, "", c.Keys.AllTenants().Runs(), walk.PageOptions(), func(l *walk.Look, page []store.KeyValue) error {
		for _, kv := range page {
			_, rest, err := c.Keys.Last(kv.Key)
			if err != nil {
				return err
			}

			tenant, id := rest.Text(), mapreduce.JobID(rest.Text())
			ctl := new(storagev1.Ctl)
			found, err := l.Load(ctx, c.Keys.Job(id).Ctl(), ctl)
			if err != nil {
				return err
			}

			// Findings name the job.
			l.Job = id
			if !found || !records.IsListed(ctl) || ctl.Tenant != tenant {
				l.Find(kv.Key, "the job is listed to run for tenant %q, and does not; servers pass over it, so there is nothing to do", tenant)
			}

			if _, _, err := records.ParseRun(kv.Value); err != nil {
				l.Find(kv.Key, "%q is no priority and epoch; pause and resume the job", kv.Value)
			}
		}
		return nil
	}, nil)
}

// checkSpace walks over the whole key space, from one kind of key and job to the
// next, and finds what belongs to no job and what nothing knows.
func (c *checker) checkSpace(ctx context.Context) error {
	r := c.Keys.Everything()
	for r.Begin != nil {
		var next []byte
		err := c.Look(ctx, "", func(l *walk.Look) error {
			next = r.Begin

			for range l.PageLimit(walk.Page) {
				pairs, _, err := l.GetRange(ctx, store.Range{Begin: next, End: r.End}, store.RangeOptions{Limit: 1})
				if err != nil || len(pairs) == 0 {
					next = nil
					return err
				}

				// All other keys of this kind and job are passed over.
				if next, err = c.checkPrefix(ctx, l, pairs[0].Key); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}

		r.Begin = next
	}
	return nil
}

// checkPrefix checks the first key of a kind, or of a kind and a job, and returns
// where the next begins.
func (c *checker) checkPrefix(ctx context.Context, l *walk.Look, key []byte) ([]byte, error) {
	name, rest, err := c.Keys.Last(key)
	known, owned := c.Keys.Known(name)
	if err != nil || !known {
		l.Find(key, "nothing of this version writes or reads such a key; a newer one may have written it, else there is nothing to do")
		return store.Single(key).End, nil
	}

	// head is how much of the key names its kind, and then its job.
	head := len(key) - len(rest.Rest())
	var id mapreduce.JobID

	switch {
	case name == "grant":
		if id, owned = keys.GrantScope(&rest).Job(); !owned && rest.Err() == nil {
			head = len(key) - len(rest.Rest())
			return c.Keys.After(key[:head:head]), nil
		}
	case !owned:
		return c.Keys.After(key[:head:head]), nil
	default:
		id = mapreduce.JobID(rest.Text())
	}

	if rest.Err() != nil {
		l.Find(key, "the key names no job; "+walk.WholeOnly)
		return store.Single(key).End, nil
	}

	head = len(key) - len(rest.Rest())
	values, err := l.GetAll(ctx, [][]byte{c.Keys.Job(id).Record(), c.Keys.Job(id).Ctl(), c.Keys.Job(id).Ingest()})
	if err != nil {
		return nil, err
	}

	if l.Job = id; values[0] == nil && values[1] == nil && values[2] == nil {
		l.Find(key, "keys %q of job %s are left, and the job is not there; nothing reads them, so there is nothing to do", name, id)
	} else if (name == "ctl" || name == "jobs") && (values[0] == nil || values[1] == nil) {
		l.Find(key, "job %s has a record or a control record, but not both; "+walk.WholeOnly, id)
	}

	l.Job = ""
	return c.Keys.After(key[:head:head]), nil
}

package batches

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	kept "github.com/coditect/mapreduce/store/jobs/batches"
)

// account returns the account in which a job's batches of a provider are, if workers make them that run for a tenant
// alone; it is empty for those that run for all.
func (b *Batches) account(ctx context.Context, id mapreduce.JobID, provider string, tenant mapreduce.TenantID) (string, error) {
	job, err := b.specs.Job(ctx, id)
	if err != nil {
		return "", err
	}
	address := ""
	if provider == job.Spec.Provider {
		address = job.Spec.Vars["base_url"]
	}
	return accountName(provider, address, b.config.Address(provider), tenant), nil
}

// room returns what an account may have of a model.
func (b *Batches) room(provider, model string) protocol.BatchRoom {
	if b.config.Room == nil {
		return protocol.BatchRoom{}
	}
	return b.config.Room(provider, model)
}

// accountOf returns the account whose room a report takes: that of the batch which it says is begun.
func (b *Batches) accountOf(ctx context.Context, id mapreduce.JobID, number int64, tenant mapreduce.TenantID, r *protocol.BatchReport) (kept.Account, error) {
	if r.State != protocol.BatchCreating {
		return kept.Account{}, nil
	}

	all, err := b.jobs.Batches.Now(ctx, id)
	if err != nil {
		return kept.Account{}, err
	}

	i := slices.IndexFunc(all, func(one kept.Held) bool { return one.Number == number })
	if i < 0 {
		return kept.Account{}, nil // the report is refused
	}

	name, err := b.account(ctx, id, all[i].Provider, tenant)
	return kept.Account{Name: name, Most: b.room(all[i].Provider, all[i].Model)}, err
}

// freeEvery is how often rooms are given back that no batch takes. Only servers of earlier versions leave such.
const freeEvery = time.Minute

// freeRooms gives rooms back that no batch takes, now and then: batches would wait for them for ever.
func (b *Batches) freeRooms(ctx context.Context, now time.Time) error {
	if b.config.Room == nil || !b.freed.IsZero() && now.Sub(b.freed) < freeEvery {
		return nil
	}

	n, err := b.jobs.Batches.FreeRooms(ctx)
	if err != nil {
		return err
	}

	b.freed = now
	if n > 0 {
		b.supervisor.LogFailure(ctx, "rooms of accounts given back", errs.New(errs.Precondition, "batches that are over had left them"), "batches", n)
	}
	return nil
}

// seeRoom tells the batches that may be begun from those for which their account has no room. The batches of an
// account take it in order, and a smaller one does not go before one that waits. What is said here only
// spares workers what would be refused them: another orchestrator may have been asked meanwhile.
func (b *Batches) seeRoom(ctx context.Context) error {
	used, short := make(map[string]*kept.Use), make(map[string]string)
	for _, id := range slices.Sorted(maps.Keys(b.seen)) {
		seen := b.seen[id]
		seen.waits = make(map[int64]string)
		for i := range seen.Batches {
			one := &seen.Batches[i]
			if one.State != protocol.BatchPlanned || one.Filling || !seen.State.Running() {
				continue
			}

			lack, err := b.lack(ctx, one.Batch, "", used, short)
			if errs.KindOf(err) == errs.NotFound {
				break // the job was deleted meanwhile
			}
			if err != nil {
				return err
			}

			if lack != "" {
				seen.waits[one.Number] = lack
			}
		}
	}
	return nil
}

// lack says why a batch is not begun yet by workers of a tenant, or of all, "" if it may be. used is what accounts have
// begun, and short why the first batch of a model waits.
func (b *Batches) lack(ctx context.Context, one protocol.Batch, tenant mapreduce.TenantID, used map[string]*kept.Use, short map[string]string) (string, error) {
	most := b.room(one.Provider, one.Model)
	if most == (protocol.BatchRoom{}) {
		return "", nil
	}
	account, err := b.account(ctx, one.Job, one.Provider, tenant)
	if err != nil {
		return "", err
	}
	if used[account] == nil {
		if used[account], err = b.jobs.Batches.UseOf(ctx, account); err != nil {
			return "", err
		}
	}

	of := account + " " + one.Model
	if short[of] == "" {
		short[of] = used[account].Lack(one, most)
	}
	// A batch that its vendor has refused takes its time, and holds no other up.
	if short[of] == "" && one.Tries == 0 {
		used[account].Add(one)
	}
	return short[of], nil
}

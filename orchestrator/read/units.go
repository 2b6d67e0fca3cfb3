package read

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/memory"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// ListUnits returns a page of the units of a job, 100 unless the query says how many. A page
// holds fewer if their outputs or inputs are large.
func (r *Reader) ListUnits(ctx context.Context, _ mapreduce.Principal, q mapreduce.ListUnitsQuery) (*mapreduce.UnitPage, error) {
	size, err := pageSize(q.PageSize, 100)
	if err != nil {
		return nil, err
	}

	at, err := parseUnitToken(q.PageToken)
	if err != nil {
		return nil, err
	}

	ctl, err := r.jobs.View.Control(ctx, q.Job)
	if err != nil {
		return nil, err
	}
	if q.Standings {
		return r.standings(ctx, q, int64(len(ctl.StageLevels())), at, size)
	}

	rec, err := r.jobs.View.Record(ctx, q.Job)
	if err != nil {
		return nil, err
	}

	compiled, err := r.specs.Compiled(q.Job, &rec.Spec)
	if err != nil {
		return nil, err
	}

	stages := jobspec.NewStages(compiled, ctl)
	page, weight := &mapreduce.UnitPage{}, 0
	locations := outputs.NewLocator(r.jobs.Reader(), q.Job)

	unitsFrom, err := r.source(ctx, q)
	if err != nil {
		return nil, err
	}

	for at.level < int64(len(ctl.StageLevels())) {
		some, err := unitsFrom(at.level, at.index, min(size, 256))
		if err != nil {
			return nil, err
		}

		if len(some) == 0 {
			at = unitToken{level: at.level + 1}
			continue
		}

		parked, err := r.jobs.View.Parkings(ctx, q.Job, some)
		if err == nil {
			err = r.noteBatches(ctx, q.Job, parked)
		}
		if err != nil {
			return nil, err
		}

		for _, u := range some {
			if len(page.Units) == size || weight > pageBytes {
				page.NextPageToken = at.String()
				return page, nil
			}

			if !matchesStates(q.States, u) {
				at = unitToken{at.level, u.Index + 1, 0}
				continue
			}

			unit, next, err := r.listedUnit(ctx, q, u, at.input, locations)
			if err != nil {
				return nil, err
			}

			unit.Stage = stages.StageName(u.Level)
			unit.Parking = parked[u.ID]
			page.Units = append(page.Units, unit)

			// The unit depends on more units than fit, so the next page goes on with it.
			if unit.Continues {
				page.NextPageToken = unitToken{at.level, u.Index, next}.String()
				return page, nil
			}

			at = unitToken{at.level, u.Index + 1, 0}
			weight += len(unit.Output) + idBytes(unit.DependsOn) + locationBytes*len(unit.Locations)
		}
	}
	return page, nil
}

// standings returns a page of how units of a job with so many levels stand.
func (r *Reader) standings(ctx context.Context, q mapreduce.ListUnitsQuery, levels int64, at unitToken, size int) (*mapreduce.UnitPage, error) {
	page := &mapreduce.UnitPage{}
	for at.level < levels {
		// The unit behind the page is its token, if there is one.
		some, err := r.jobs.View.UnitStandings(ctx, q.Job, at.level, at.index, size-len(page.Standings)+1)
		if err != nil {
			return nil, err
		}
		if len(some) == 0 {
			at = unitToken{level: at.level + 1}
			continue
		}

		for _, u := range some {
			if len(page.Standings) == size {
				page.NextPageToken = unitToken{at.level, u.Index, 0}.String()
				return page, nil
			}
			if len(q.States) == 0 || slices.Contains(q.States, u.State) {
				page.Standings = append(page.Standings, u.UnitStanding)
			}
			at.index = u.Index + 1
		}
	}
	return page, nil
}

// A source returns up to limit units of a level from an index on, in order: all of them, or all that a query may choose.
type source func(level, index int64, limit int) ([]*records.Unit, error)

// fewFailed is of how many failed units a job may have for these to be read alone.
const fewFailed = 5000

// source returns where the units of a query come from. Those that have failed are mostly few, and have a list of their own.
func (r *Reader) source(ctx context.Context, q mapreduce.ListUnitsQuery) (source, error) {
	if slices.Equal(q.States, []mapreduce.UnitState{mapreduce.UnitFailed}) {
		failed, few, err := r.jobs.Causes.Few(ctx, q.Job, fewFailed)
		if err != nil {
			return nil, err
		}
		if few {
			return among(failed), nil
		}
	}

	if len(q.States) > 0 {
		return r.chosen(ctx, q), nil
	}
	return func(level, index int64, limit int) ([]*records.Unit, error) {
		return r.jobs.View.UnitsFrom(ctx, q.Job, level, index, limit)
	}, nil
}

// chosen returns the units in some states as a source. It reads how units stand, and no more of those that are in others.
func (r *Reader) chosen(ctx context.Context, q mapreduce.ListUnitsQuery) source {
	return func(level, index int64, limit int) ([]*records.Unit, error) {
		for {
			all, err := r.jobs.View.UnitStandings(ctx, q.Job, level, index, lookedAtOnce)
			if err != nil || len(all) == 0 {
				return nil, err
			}

			var names []mapreduce.UnitID
			for _, u := range all {
				if slices.Contains(q.States, u.State) && len(names) < limit {
					names = append(names, u.ID)
				}
			}
			units, err := r.jobs.View.UnitsNamed(ctx, q.Job, names)
			if err != nil || len(units) > 0 {
				return units, err
			}
			index = all[len(all)-1].Index + 1
		}
	}
}

// lookedAtOnce is of how many units one reading says how they stand.
const lookedAtOnce = 1000

// among returns some units, which are in order of level and index, as a source.
func among(units []*records.Unit) source {
	return func(level, index int64, limit int) (some []*records.Unit, err error) {
		for _, u := range units {
			if u.Level == level && u.Index >= index && len(some) < limit {
				some = append(some, u)
			}
		}
		return some, nil
	}
}

// noteBatches says of parked units which batch they wait for, and how far it is.
func (r *Reader) noteBatches(ctx context.Context, id mapreduce.JobID, parked map[mapreduce.UnitID]*mapreduce.Parking) error {
	var waiting []mapreduce.UnitID
	for unit, p := range parked {
		if protocol.IsLineHandle(p.Handle) {
			waiting = append(waiting, unit)
		}
	}
	if len(waiting) == 0 {
		return nil
	}

	all, err := r.jobs.Batches.Of(ctx, id, waiting)
	if err != nil {
		return err
	}
	// The forecast is for people: nothing fails for want of it.
	until, err := r.config.Until(ctx, id)
	if err != nil {
		until = time.Time{}
	}
	for unit, b := range all {
		parked[unit].Note = b.WaitNote()
		if !until.IsZero() && !b.Ending {
			parked[unit].Note += fmt.Sprintf("; what has not come by %s is asked in real time", until.UTC().Format("2006-01-02 15:04 UTC"))
		}
	}
	return nil
}

// pageBytes bounds the ids and outputs of a page of units, but for the last unit in it.
const pageBytes = 1 << 20

// locationBytes is about what a location takes of a message.
const locationBytes = 128

// A unitToken says where a page of units begins: at the unit of a level with an
// index, and within what that depends on.
type unitToken struct{ level, index, input int64 }

func (t unitToken) String() string { return fmt.Sprintf("%d:%d:%d", t.level, t.index, t.input) }

func parseUnitToken(token string) (unitToken, error) {
	t := unitToken{level: -1}
	if token == "" {
		return t, nil
	}

	parts := strings.Split(token, ":")
	to := []*int64{&t.level, &t.index, &t.input}
	ok := len(parts) == len(to)
	for i := 0; ok && i < len(to); i++ {
		var err error
		*to[i], err = strconv.ParseInt(parts[i], 10, 64)
		ok = err == nil
	}

	if !ok || t.level < -1 || t.index < 0 || t.input < 0 {
		return t, errs.Field("page_token", "is not one that a list returned")
	}
	return t, nil
}

func matchesStates(states []mapreduce.UnitState, u *records.Unit) bool {
	if slices.Contains(states, u.State) {
		return true
	}
	return len(states) == 0
}

// listedUnit returns a unit as a query asks for it. If it depends on more units than
// a page should hold, next says with which of them to go on.
func (r *Reader) listedUnit(ctx context.Context, q mapreduce.ListUnitsQuery, u *records.Unit, input int64, locations *outputs.Locator) (unit *mapreduce.Unit, next int64, err error) {
	unit = u.Describe(q.Job)
	if q.Inputs && u.Inputs != nil {
		if next, err = r.inputsOf(ctx, unit, u, input); err != nil {
			return nil, 0, err
		}
	}

	if q.Outputs && unit.State == mapreduce.UnitComplete && input == 0 { // else it was on the page before
		if _, err := memory.HoldFor(ctx, 3*u.Published().Length); err != nil { // until it was sent: it is encoded, too
			return nil, 0, err
		}
		if unit.Output, err = r.jobs.Content.Output(ctx, q.Job, u); err != nil {
			return nil, 0, err
		}
		if unit.Locations, err = locations.OfOutput(ctx, u, unit.Output); err != nil {
			return nil, 0, err
		}
	}
	return unit, next, nil
}

// inputsOf enters what a unit depends on, from an index on, as far as a page
// should hold it.
func (r *Reader) inputsOf(ctx context.Context, unit *mapreduce.Unit, u *records.Unit, from int64) (next int64, err error) {
	from = max(from, u.Inputs.First)
	for from < u.Inputs.End {
		if idBytes(unit.DependsOn) > pageBytes {
			unit.Continues = true
			return from, nil
		}

		page, err := r.jobs.View.Inputs(ctx, unit.Job, u, from, 1024)
		if err != nil || len(page) == 0 {
			return 0, err
		}

		for _, in := range page {
			unit.DependsOn = append(unit.DependsOn, in.ID)
			from = in.Index + 1
		}
	}
	return 0, nil
}

// idBytes returns about how many bytes of a message ids take.
func idBytes(ids []mapreduce.UnitID) (n int) {
	for _, id := range ids {
		n += len(id) + 3
	}
	return n
}

package jobs_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/label"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// What calls took counts on the day on which it was settled, by what was asked and how it was answered, and
// stays when the job is gone.
func TestCosts(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 2)
	j := w.Nodes[0]
	submit := func(tenant mapreduce.TenantID, documents int, labels map[string]string) mapreduce.JobID {
		s := jobstest.Spec()
		s.Tenant, s.Labels = tenant, labels
		return w.Submit(j, s, jobstest.Texts(documents))
	}

	// One unit of a is settled on the first day, by two nodes; the rest on the next.
	a := submit("a", 3, map[string]string{"team": "sales", "env": "prod"})
	s := w.Session(j)
	u := w.Claim(j, a, s, 1)[0]
	res := w.Turn(j, &queue.Turn{Job: a, Reports: []queue.Report{{Report: jobstest.Done(a, u), Jitter: 0.5}}})
	if len(res.Charges) == 0 || res.Tenant != "a" {
		t.Errorf("%d charges are those of the tenant %q, want a", len(res.Charges), res.Tenant)
	}
	w.Report(w.Nodes[1], jobstest.Done(a, u)) // again: it counts once
	w.Micro += records.Day.Microseconds()
	w.Run(j, a)
	b := submit("b", 1, nil)
	w.Run(j, b)
	w.Healthy()

	// Each unit took this; what it does not tell of its tokens and cost is of no known model.
	done := func(n int64, model string) mapreduce.CostRow {
		row := map[string]mapreduce.CostRow{
			"scripted/a": {Group: []string{"scripted/a", "flex"}, Charge: mapreduce.Charge{Calls: 1, Tokens: mapreduce.Tokens{In: 2, Out: 1}, CostMicros: 2}},
			"scripted/b": {Group: []string{"scripted/b", "standard"}, Charge: mapreduce.Charge{Calls: 2, Tokens: mapreduce.Tokens{In: 1, Out: 1}, CostMicros: 4, Unpriced: 1}},
			"":           {Group: []string{"", ""}, Charge: mapreduce.Charge{Tokens: mapreduce.Tokens{In: 1}, CostMicros: 1}},
		}[model]
		row.Calls, row.CostMicros, row.Unpriced = row.Calls*n, row.CostMicros*n, row.Unpriced*n
		row.Tokens = mapreduce.Tokens{In: row.Tokens.In * n, Out: row.Tokens.Out * n}
		return row
	}
	of := func(n int64) []mapreduce.CostRow {
		return []mapreduce.CostRow{done(n, ""), done(n, "scripted/a"), done(n, "scripted/b")}
	}
	byModel := []mapreduce.CostDimension{mapreduce.ByModel, mapreduce.ByTier}
	first := time.UnixMicro(1_700_000_000_000_000).UTC().Truncate(records.Day)
	unitsOf := func(id mapreduce.JobID) int64 { return w.Job(id).CostMicros / 7 } // each costs 7
	unitsA, unitsB := unitsOf(a), unitsOf(b)

	check := func() {
		t.Helper()
		for _, tc := range []struct {
			name string
			q    mapreduce.CostQuery
			want []mapreduce.CostRow
		}{
			{"all", mapreduce.CostQuery{By: byModel}, of(unitsA + unitsB)},
			{"a tenant", mapreduce.CostQuery{Tenant: "b", By: byModel}, of(unitsB)},
			{"the first day", mapreduce.CostQuery{By: byModel, Until: first}, of(1)},
			{"the second day", mapreduce.CostQuery{By: byModel, Since: first.Add(records.Day), Until: first.Add(records.Day)}, of(unitsA + unitsB - 1)},
			{"a day before", mapreduce.CostQuery{By: byModel, Until: first.Add(-records.Day)}, nil},
			{"a label", mapreduce.CostQuery{By: byModel, Labels: []label.Filter{{Key: "team", Value: "sales"}}}, of(unitsA)},
			{"another value", mapreduce.CostQuery{By: byModel, Labels: []label.Filter{{Key: "team", Value: "law"}}}, nil},
			{"a tier", mapreduce.CostQuery{By: byModel, Tiers: []string{"flex"}}, []mapreduce.CostRow{done(unitsA+unitsB, "scripted/a")}},
			{"a model", mapreduce.CostQuery{By: byModel, Models: []string{"scripted/b"}}, []mapreduce.CostRow{done(unitsA+unitsB, "scripted/b")}},
			{"by day, label and tenant", mapreduce.CostQuery{By: []mapreduce.CostDimension{mapreduce.ByDay, "label:team", mapreduce.ByTenant}, Models: []string{"scripted/a"}}, []mapreduce.CostRow{
				{Group: []string{first.Format(time.DateOnly), "sales", "a"}, Charge: done(1, "scripted/a").Charge},
				{Group: []string{first.Add(records.Day).Format(time.DateOnly), "", "b"}, Charge: done(unitsB, "scripted/a").Charge},
				{Group: []string{first.Add(records.Day).Format(time.DateOnly), "sales", "a"}, Charge: done(unitsA-1, "scripted/a").Charge},
			}},
		} {
			got, err := w.Nodes[1].View.Costs(w.Ctx, &tc.q)
			w.Must(err)
			if diff := cmp.Diff(tc.want, got.Rows); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.name, diff)
			}
		}
	}
	check()

	for _, id := range []mapreduce.JobID{a, b} {
		w.Must(j.Lifecycle.Delete(w.Ctx, id))
	}
	check()
	w.Healthy()
}

// Labels are read only for what is asked by labels: a tenant may have as many sets of them as jobs.
func TestLabelsAreReadIfAskedFor(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	w.Run(j, w.Submit(j, jobstest.Spec(), jobstest.Texts(1)))
	w.Write(func(tx store.Tx) {
		tx.Set(keys.New().Costs("").Labels(records.LabelsID(nil)), []byte("no record")) // so reading them is an error
	})

	for _, tc := range []struct {
		name  string
		q     mapreduce.CostQuery
		reads bool
	}{
		{"all", mapreduce.CostQuery{}, false},
		{"by day, tenant, model and tier", mapreduce.CostQuery{By: []mapreduce.CostDimension{mapreduce.ByDay, mapreduce.ByTenant, mapreduce.ByModel, mapreduce.ByTier}}, false},
		{"by a label", mapreduce.CostQuery{By: []mapreduce.CostDimension{mapreduce.ByDay, "label:team"}}, true},
		{"of a label", mapreduce.CostQuery{Labels: []label.Filter{{Key: "team"}}}, true},
	} {
		if _, err := j.View.Costs(w.Ctx, &tc.q); (err != nil) != tc.reads {
			t.Errorf("%s: reads labels %t: %v", tc.name, tc.reads, err)
		}
	}
}

// Counters that are not what jobs have spent are found, and doctor brings both in line without taking anything away.
// A server of an earlier version removes a job and does not note what it had spent, which was spent all the same; and
// it settles what it does not count, which is put down to the day of the repair.
func TestCostsAreCheckedAndRepaired(t *testing.T) {
	costs := keys.New().Costs("")
	at := keys.CostAt{Labels: records.LabelsID(nil), Model: "scripted/a", Tier: "flex", What: keys.SpentMicros}
	for name, tc := range map[string]struct {
		damage   func(w *jobstest.World, tx store.Tx)
		findings int
		lacks    int64
	}{
		"a job was removed by an earlier version": {func(_ *jobstest.World, tx store.Tx) {
			for what := range records.SpentCounters() {
				tx.Clear(costs.Gone(what))
			}
		}, 3, 0},
		"a call was settled by an earlier version": {func(w *jobstest.World, tx store.Tx) {
			at.Day = w.Micro / records.Day.Microseconds()
			tx.Add(costs.Spent(at), -2)
		}, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := jobstest.NewWorld(t, jobstest.Open(t), 1)
			j := w.Nodes[0]
			for _, keep := range []bool{false, true} {
				id := w.Submit(j, jobstest.Spec(), jobstest.Texts(2))
				w.Run(j, id)
				if !keep {
					w.Must(j.Lifecycle.Delete(w.Ctx, id))
				}
			}
			w.Healthy()
			spent := func(by ...mapreduce.CostDimension) *mapreduce.CostSums {
				sums, err := j.View.Costs(w.Ctx, &mapreduce.CostQuery{By: by})
				w.Must(err)
				return sums
			}
			before := spent(mapreduce.ByDay, mapreduce.ByModel)

			w.Write(func(tx store.Tx) { tc.damage(w, tx) })
			if wrong := w.Findings(); len(wrong) != tc.findings {
				t.Errorf("%d findings, want %d: %+v", len(wrong), tc.findings, wrong)
			}
			w.Must(j.Tenants.Repair(w.Ctx, func(mapreduce.Finding) error { return nil }))
			w.Healthy()

			after := spent(mapreduce.ByDay, mapreduce.ByModel)
			if diff := cmp.Diff(before.Sum, after.Sum); diff != "" {
				t.Errorf("costs after the repair: -want +got:\n%s", diff)
			}
			for i, row := range after.Rows {
				want := before.Rows[i]
				switch row.Group[1] {
				case "":
					want.CostMicros += tc.lacks
				case at.Model:
					want.CostMicros -= tc.lacks
				}
				if diff := cmp.Diff(want, row); diff != "" {
					t.Errorf("a row after the repair: -want +got:\n%s", diff)
				}
			}
		})
	}
}

// What charges say counts as far as it can be true: they add up to what was taken, whatever they say.
func TestWholeCharges(t *testing.T) {
	tokens := mapreduce.Tokens{In: 10, Out: 5}
	flex := mapreduce.Charge{Model: "m", Tier: "flex", Calls: 1, Tokens: mapreduce.Tokens{In: 4, Out: 5}, CostMicros: 30}
	rest := mapreduce.Charge{Tokens: mapreduce.Tokens{In: 6}, CostMicros: 70}
	unknown := mapreduce.Charge{Tokens: tokens, CostMicros: 100}
	all := flex
	all.Tokens, all.CostMicros = tokens, 100
	for _, tc := range []struct {
		name       string
		told, want []mapreduce.Charge
	}{
		{"none", nil, []mapreduce.Charge{unknown}},
		{"a part", []mapreduce.Charge{flex}, []mapreduce.Charge{flex, rest}},
		{"all", []mapreduce.Charge{all}, []mapreduce.Charge{all}},
		{"too much", []mapreduce.Charge{all, flex}, []mapreduce.Charge{unknown}},
		{"negative", []mapreduce.Charge{all, {Model: "n", CostMicros: -1}}, []mapreduce.Charge{unknown}},
		{"more without a price than there is", []mapreduce.Charge{{Model: "n", Unpriced: 1}}, []mapreduce.Charge{unknown}},
	} {
		if diff := cmp.Diff(tc.want, mapreduce.WholeCharges(tc.told, tokens, 100)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.name, diff)
		}
	}

	// Tokens without a cost that no charge tells of were not measured: they have no price, which is not $0.
	free := mapreduce.Charge{Model: "m", Calls: 1, Tokens: mapreduce.Tokens{In: 4, Out: 5}}
	unmeasured := mapreduce.Charge{Tokens: mapreduce.Tokens{In: 6}, Unpriced: 6}
	if diff := cmp.Diff([]mapreduce.Charge{free, unmeasured}, mapreduce.WholeCharges([]mapreduce.Charge{free}, tokens, 0)); diff != "" {
		t.Errorf("without a cost: -want +got:\n%s", diff)
	}
	if got := mapreduce.WholeCharges(nil, mapreduce.Tokens{}, 0); len(got) != 0 {
		t.Errorf("nothing was taken, and it is %+v", got)
	}
}

package view

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/label"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// Costs sums up what jobs have spent. Days are read one after the other, so what is settled meanwhile may
// be in it or not.
func (st *Store) Costs(ctx context.Context, q *mapreduce.CostQuery) (*mapreduce.CostSums, error) {
	s := &costSum{q: q, from: 0, to: math.MaxInt64, groups: make(map[string]*mapreduce.CostRow)}
	if !q.Since.IsZero() {
		s.from = dayOf(q.Since)
	}
	if !q.Until.IsZero() {
		s.to = dayOf(q.Until) + 1
	}

	if q.Tenant != "" {
		if err := st.sumTenant(ctx, q.Tenant, s); err != nil {
			return nil, err
		}
		return s.sums(), nil
	}

	// From one tenant to the next, over what is not asked for.
	next := st.Keys.AllTenants().Costs()
	for {
		var tenant mapreduce.TenantID
		found := false
		err := st.db.View(ctx, func(tx store.Tx) error {
			pairs, _, err := tx.Snapshot().GetRange(ctx, next, store.RangeOptions{Limit: 1})
			if found = len(pairs) > 0; err != nil || !found {
				return err
			}
			tenant, _, err = st.Keys.AllTenants().CostAt(pairs[0].Key)
			return err
		})
		if err != nil {
			return nil, err
		}
		if !found {
			return s.sums(), nil
		}
		if err := st.sumTenant(ctx, tenant, s); err != nil {
			return nil, err
		}
		next.Begin = st.Keys.Costs(tenant).After()
	}
}

// dayOf returns the number of a day of UTC, from 1970 on.
func dayOf(t time.Time) int64 { return t.Unix() / int64(records.Day/time.Second) }

// costsAtOnce is how many counters one transaction reads.
const costsAtOnce = 1000

// sumTenant sums up what the jobs of one tenant have spent.
func (st *Store) sumTenant(ctx context.Context, t mapreduce.TenantID, s *costSum) error {
	labels := make(map[string]map[string]string) // by id, if they are asked for
	rest := st.Keys.Costs(t).Days(s.from, s.to)
	for {
		var pairs []store.KeyValue
		var more bool
		err := st.db.View(ctx, func(tx store.Tx) (err error) {
			pairs, more, err = tx.Snapshot().GetRange(ctx, rest, store.RangeOptions{Limit: costsAtOnce})
			return err
		})
		if err != nil {
			return err
		}

		for _, kv := range pairs {
			_, at, err := st.Keys.AllTenants().CostAt(kv.Key)
			if err != nil {
				return err
			}
			own, read := labels[at.Labels]
			if !read && s.needsLabels() {
				if own, err = st.labels(ctx, t, at.Labels); err != nil {
					return err
				}
				labels[at.Labels] = own
			}
			if err := s.add(t, &at, own, records.DecodeCount(kv.Value)); err != nil {
				return err
			}
		}

		if !more || len(pairs) == 0 {
			return nil
		}
		rest.Begin = store.Single(pairs[len(pairs)-1].Key).End
	}
}

// labels returns the labels that have an id.
func (st *Store) labels(ctx context.Context, t mapreduce.TenantID, id string) (labels map[string]string, err error) {
	err = st.db.View(ctx, func(tx store.Tx) error {
		var set storagev1.LabelSet
		if _, err := records.Read(ctx, tx.Snapshot(), st.Keys.Costs(t).Labels(id), &set); err != nil {
			return err
		}
		labels, err = label.Parse(set.Texts)
		return err
	})
	return labels, err
}

// A costSum is what a query has come to so far.
type costSum struct {
	q        *mapreduce.CostQuery
	from, to int64 // days, the last left out
	groups   map[string]*mapreduce.CostRow
	sum      mapreduce.Charge
}

// needsLabels reports whether the sum depends on the labels of jobs. A tenant may have as many sets of them as jobs.
func (s *costSum) needsLabels() bool {
	return len(s.q.Labels) > 0 || slices.ContainsFunc(s.q.By, func(d mapreduce.CostDimension) bool {
		_, is := d.Label()
		return is
	})
}

// add adds what a counter of a tenant has, if it is asked for.
func (s *costSum) add(t mapreduce.TenantID, at *keys.CostAt, labels map[string]string, n int64) error {
	asked := func(filter []string, value string) bool { return len(filter) == 0 || slices.Contains(filter, value) }
	if !asked(s.q.Models, at.Model) || !asked(s.q.Tiers, at.Tier) || !label.Match(s.q.Labels, labels) {
		return nil
	}

	group := make([]string, len(s.q.By))
	for i, d := range s.q.By {
		group[i] = valueOf(d, t, at, labels)
	}
	key := strings.Join(group, "\x00")
	row := s.groups[key]
	if row == nil {
		if len(s.groups) == mapreduce.MaxCostRows {
			return errs.Field("by", "there are more than %d groups; ask for fewer days, or tell costs apart by less", mapreduce.MaxCostRows)
		}
		row = &mapreduce.CostRow{Group: group}
		s.groups[key] = row
	}

	records.AddSpent(&row.Charge, at.What, n)
	records.AddSpent(&s.sum, at.What, n)
	return nil
}

// valueOf returns which group of a dimension a counter is in.
func valueOf(d mapreduce.CostDimension, t mapreduce.TenantID, at *keys.CostAt, labels map[string]string) string {
	day := time.Unix(at.Day*int64(records.Day/time.Second), 0).UTC().Format(time.DateOnly)
	switch d {
	case mapreduce.ByDay:
		return day
	case mapreduce.ByMonth:
		return day[:len("2006-01")]
	case mapreduce.ByTenant:
		return string(t)
	case mapreduce.ByModel:
		return at.Model
	case mapreduce.ByTier:
		return at.Tier
	}

	key, _ := d.Label()
	return labels[key]
}

// sums returns the rows in the order of their groups.
func (s *costSum) sums() *mapreduce.CostSums {
	sums := &mapreduce.CostSums{Sum: s.sum}
	for _, row := range slices.SortedFunc(maps.Values(s.groups), func(a, b *mapreduce.CostRow) int { return slices.Compare(a.Group, b.Group) }) {
		sums.Rows = append(sums.Rows, *row)
	}
	return sums
}

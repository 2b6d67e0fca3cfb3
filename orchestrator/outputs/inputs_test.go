package outputs_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// levelSource has the units of one level, and counts how often they are read.
type levelSource struct {
	units []*records.Unit
	reads int
}

func (s *levelSource) Inputs(_ context.Context, _ mapreduce.JobID, u *records.Unit, from int64, limit int) (found []*records.Unit, err error) {
	s.reads++
	for _, one := range s.units {
		if one.Level == u.Inputs.Level && one.Index >= from && one.Index < u.Inputs.End && len(found) < limit {
			found = append(found, one)
		}
	}
	return found, nil
}

// TestInputPages: every unit is given what it takes, in order; and what neighbours take is
// read together, however it lies.
func TestInputPages(t *testing.T) {
	const gap = 1 << 20 // between units of documents
	source := &levelSource{}
	for i := range int64(2000) {
		source.units = append(source.units, &records.Unit{ID: mapreduce.UnitID(fmt.Sprint("map-", i)), Index: i * gap})
	}
	taking := func(index, first, end int64) *records.Unit {
		return &records.Unit{ID: mapreduce.UnitID(fmt.Sprint("reduce-", index)), Level: 1, Index: index, Inputs: &records.Inputs{First: first * gap, End: (end-1)*gap + 1}}
	}
	groups := func(indexes ...int64) (units []*records.Unit) {
		for _, i := range indexes {
			units = append(units, taking(i, i*10, i*10+10))
		}
		return units
	}
	neighbours := make([]int64, 64)
	for i := range neighbours {
		neighbours[i] = 7 + int64(i)
	}
	picked := taking(1, 10, 20)
	picked.Inputs.Picked = 10
	for _, tt := range []struct {
		name  string
		units []*records.Unit
		reads int // at most
	}{
		{"neighbours", groups(neighbours...), 5}, // 640 units, 256 at a time, of which those of 25 reduces
		{"apart", groups(3, 90, 5, 4), 4},
		{"backwards", groups(3, 2, 1), 3},
		{"all of a level", []*records.Unit{taking(0, 0, 200), taking(1, 0, 200), taking(2, 0, 200)}, 1},
		{"more than a page", []*records.Unit{taking(0, 0, 700), taking(1, 700, 1400), taking(2, 1400, 2000)}, 9},
		{"nothing is there", []*records.Unit{taking(0, 3000, 3010)}, 2},
		{"picked", []*records.Unit{taking(0, 0, 10), picked, taking(2, 20, 30)}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			source.reads = 0
			pages := outputs.NewInputPages(source.Inputs, "job", tt.units)
			for _, u := range tt.units {
				var got, want []int64
				for _, one := range source.units {
					if one.Index >= u.Inputs.First && one.Index < u.Inputs.End {
						want = append(want, one.Index)
					}
				}
				err := pages.Each(t.Context(), u, func(in *records.Unit) error {
					got = append(got, in.Index)
					return nil
				})
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%s is given %v, want %v: %v", u.ID, got, want, err)
				}
			}
			if source.reads > tt.reads {
				t.Errorf("what %d units take was read in %d transactions, want %d at most", len(tt.units), source.reads, tt.reads)
			}
		})
	}
}

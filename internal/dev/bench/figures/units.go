package figures

import (
	"context"
	"fmt"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/bench/rig"
)

// Units is how fast units that do nothing go through their whole life: claimed,
// sent, run, reported, finished and acknowledged, every step durable.
type Units struct {
	Small, Large Throughput // results of 2 bytes, and of 2 KB
	Raw          float64    // writes a second that Pebble itself, or the cluster, makes durable
	Wire         float64    // units a second over gRPC to a worker and back, without a store
	Cluster      bool
}

// A Throughput is that of one job.
type Throughput struct {
	Units     int
	Output    int           // bytes
	Mapped    time.Duration // from the worker's start to the end of the map level
	Total     int64         // units with the reduces
	Whole     time.Duration // to the end of the job
	Read      time.Duration // of its result, after that
	Commits   float64       // transactions that wrote, a unit
	Conflicts float64       // a commit
	Processor time.Duration // a unit
	Objects   float64       // that were allocated, a unit
	Reduces   ReducePhase   // from the end of the map to that of the job
	Bare      float64       // units a second of the bare store
}

// A ReducePhase is what the units of a job cost that come after the map, and its result.
type ReducePhase struct {
	Commits, Reads float64       // transactions that wrote, and others, a unit
	Processor      time.Duration // a unit
	Result         time.Duration // from the end of the last reduce to that of the job
}

// PerSecond returns the units of the map level a second.
func (t *Throughput) PerSecond() float64 { return rig.PerSecond(t.Units, t.Mapped) }

// MeasureUnits measures them.
func MeasureUnits(ctx context.Context, l *Lab) (*Units, error) {
	u := &Units{Cluster: l.Cluster != "", Small: Throughput{Units: l.Units, Output: 2}, Large: Throughput{Units: l.Units / 2, Output: rig.OutputBytes}}

	var err error
	if u.Raw, err = l.RawWrites(ctx, 5*l.Units); err != nil {
		return nil, err
	}
	if u.Wire, err = rig.WireOnly(ctx, l.Units); err != nil {
		return nil, err
	}

	for _, t := range []*Throughput{&u.Small, &u.Large} {
		if _, t.Bare, err = l.BareUnits(ctx, t.Units, t.Output); err != nil {
			return nil, err
		}
		if err := l.WithSystem(func(s *rig.System) error { return t.measureJob(ctx, s) }); err != nil {
			return nil, err
		}
	}
	return u, nil
}

func (t *Throughput) measureJob(ctx context.Context, s *rig.System) error {
	id, err := s.SubmitDocuments(ctx, rig.NoopSpec(rig.BusySlots), t.Units)
	if err != nil {
		return err
	}

	stats := s.Jobs.DB().Stats()
	commits, conflicts, used, objects, start := stats.Commits.Load(), stats.Conflicts.Load(), rig.ProcessorTime(), rig.Allocations(), time.Now()
	if _, err := s.RunWorker(&rig.Bencher{Output: t.Output}, rig.BusySlots, rig.PrefetchFor(rig.BusySlots)); err != nil {
		return err
	}

	err = s.AwaitJob(ctx, id, func(j *mapreduce.Job) bool { return j.Level > 0 })
	if err != nil {
		return err
	}

	t.Mapped = s.Observer.MappedAt(id).Sub(start)
	t.Commits = float64(stats.Commits.Load()-commits) / float64(t.Units)
	t.Conflicts = float64(stats.Conflicts.Load()-conflicts) / float64(stats.Commits.Load()-commits)
	t.Processor = (rig.ProcessorTime() - used) / time.Duration(t.Units)
	t.Objects = float64(rig.Allocations()-objects) / float64(t.Units)

	// From here on the reduces are counted.
	used = rig.ProcessorTime()
	mapped, read := stats.Commits.Load(), stats.Reads.Load()
	if err := s.AwaitComplete(ctx, id); err != nil {
		return err
	}

	used = rig.ProcessorTime() - used
	mapped, read = stats.Commits.Load()-mapped, stats.Reads.Load()-read
	t.Whole = s.Observer.LastTurn(id).Sub(start)

	job, err := s.GetJob(ctx, id)
	if err != nil {
		return err
	}

	t.Total = job.TotalUnits
	reduces := float64(t.Total - int64(t.Units))
	t.Reduces.Processor = time.Duration(float64(used) / reduces)
	t.Reduces.Commits, t.Reduces.Reads = float64(mapped)/reduces, float64(read)/reduces

	if t.Reduces.Result, err = s.LastPhase(ctx, id); err != nil {
		return err
	}

	ended := time.Now()
	err = s.GetResult(ctx, id, false, func(*mapreduce.ResultPart) error { return nil })
	t.Read = time.Since(ended)
	return err
}

// Rows returns the report.
func (u *Units) Rows() []Row {
	var all []Row
	rate, alone := atLeast(20_000), "Pebble alone"
	if u.Cluster {
		rate, alone = atLeast(8000), "the cluster alone"
	}

	for _, t := range []*Throughput{&u.Small, &u.Large} {
		// The goals of what a unit takes are of those that carry nothing.
		var share, processor, objects *Goal
		if t == &u.Small {
			if share = atLeast(.85); !u.Cluster {
				processor, objects = atMost(25), atMost(60)
			}
		}

		name := fmt.Sprintf("no-op units, results of %s B", Number(float64(t.Output)))
		all = append(all,
			Row{name, t.PerSecond(), "units/s", rate, fmt.Sprintf(
				"bare store loop %s; gRPC and worker alone %s", Number(t.Bare), Number(u.Wire))},
			Row{"— of the bare store loop", t.PerSecond() / t.Bare, "", share, "1"},
			Row{"— with the reduces over them", rig.PerSecond(int(t.Total), t.Whole), "units/s", nil, fmt.Sprintf(
				"%s commits, %s other transactions and %s µs of processor time a reduce; %s s of it all for the result",
				Number(t.Reduces.Commits), Number(t.Reduces.Reads), Number(float64(t.Reduces.Processor)/1000), Number(t.Reduces.Result.Seconds()))},
			Row{"— and its result read", rig.PerSecond(int(t.Total), t.Whole+t.Read), "units/s", nil, ""},
			Row{"— committing transactions", t.Commits, "a unit", atMost(0.1), fmt.Sprintf("%s conflicts a commit", Number(t.Conflicts))},
			Row{"— processor time", float64(t.Processor) / 1000, "µs a unit", processor, "two cores: 50 µs make 40,000 a second"},
			Row{"— allocations", t.Objects, "objects a unit", objects, "of all of the process: client, orchestrator, store and worker"},
		)
	}
	return append(all, Row{alone, u.Raw, "writes/s", nil, "16 writers, batches of 200, synced"})
}

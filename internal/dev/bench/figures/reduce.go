package figures

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/dev/bench/rig"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/worker/step/rules"
)

// Reducing is what reducing costs, by how many map outputs there are: in batches
// of ten, a static tree of tens, and an adaptive one whose bins have room for
// about as many; each without a key and with one.
type Reducing []ReducedTree

// A ReducedTree is what one kind of tree costs.
type ReducedTree struct {
	Tree      string
	Keyed     bool
	Few, Many Reduced
}

// Reduced is what reducing so many map outputs took, measured in a process of its
// own.
type Reduced struct {
	Units  int           // of the map
	Took   time.Duration // from the end of the map to that of the job; of a static tree from that of the submission
	Before int64         // bytes of memory then
	Peak   int64         // the most at any time from then on
	Merge  time.Duration // that merging ten by ten takes alone: decoded, merged and encoded, by one goroutine
}

// timePerOutput returns the time of a map output.
func (r *Reduced) timePerOutput() time.Duration { return r.Took / time.Duration(r.Units) }

// The trees that are measured.
const (
	inBatches = "in batches"
	static    = "static tree, map included" // whose reduces begin while the map runs
	adaptive  = "adaptive tree"
)

type reduceOrder struct {
	Dir, Cluster string
	Units, Lanes int
	Tree         string
	Keyed        bool
}

// jobSpec is that of the job.
func (o *reduceOrder) jobSpec() mapreduce.JobSpec {
	sp := rig.NoopSpec(rig.BusySlots)
	sp.Schema = salesSchema(o.Keyed)
	ten, room := int64(mapreduce.DefaultReduceBatchSize), int64(saleBudget)
	switch o.Tree {
	case static:
		sp.Strategy, sp.ChunkSize, sp.ReduceContextLimit = mapreduce.StrategyStatic, &ten, 0
	case adaptive:
		sp.Strategy, sp.TargetTokenBudget, sp.ReduceContextLimit = mapreduce.StrategyAdaptive, &room, 0
	}
	return sp
}

// MeasureReducing measures a hundredth of the outputs, and all.
func MeasureReducing(ctx context.Context, l *Lab) (Reducing, error) {
	var r Reducing
	for _, name := range []string{inBatches, static, adaptive} {
		for _, keyed := range []bool{false, true} {
			tree := ReducedTree{Tree: name, Keyed: keyed}
			few := &reduceOrder{l.Dir, l.Cluster, max(20, l.Reduced/100), l.Lanes, name, keyed}
			many := &reduceOrder{l.Dir, l.Cluster, l.Reduced, l.Lanes, name, keyed}

			if err := rig.AskChild(ctx, order{Reduce: few}, &tree.Few); err != nil {
				return nil, err
			}
			if err := rig.AskChild(ctx, order{Reduce: many}, &tree.Many); err != nil {
				return nil, err
			}
			r = append(r, tree)
		}
	}

	return r, nil
}

// saleBudget is the tokens of about ten outputs: a sale is some 25.
const saleBudget = 260

const sales = `{"title": "sale", "type": "object", "properties": {
	"shop": {"type": "string", "x-coditect": {"labels": ["SHOP"]}},
	"city": {"type": "string", "x-coditect": {"labels": ["CITY"]}},
	"total": {"type": "number", "x-coditect": {"labels": ["TOTAL"], "merge": "sum"}}}%s}`

func salesSchema(keyed bool) []byte {
	key := ""
	if keyed {
		key = `, "x-coditect": {"key": ["shop"]}`
	}
	return fmt.Appendf(nil, sales, key)
}

// someSales yields n documents. Every tenth is of a shop that ten of them are
// about, far apart; the others are of shops of their own.
func someSales(n int) iter.Seq2[*mapreduce.Document, error] {
	shops := max(1, n/100)

	return func(yield func(*mapreduce.Document, error) bool) {
		for i := range n {
			shop := fmt.Sprint("Shop ", i)
			if i%10 == 0 {
				shop = fmt.Sprint("Chain ", i/10%shops)
			}

			text := fmt.Appendf(nil, "SHOP: %s\nCITY: Town %d\nTOTAL: %d.50\n", shop, i%7, i%1000)
			if !yield(&mapreduce.Document{ID: mapreduce.DocumentID(rig.UnitName(i)), Content: text}, nil) {
				return
			}
		}
	}
}

func (o *reduceOrder) measureOrder(ctx context.Context) (*Reduced, error) {
	r := &Reduced{Units: o.Units}
	site := &rig.Site{Dir: o.Dir, Cluster: o.Cluster, Lanes: o.Lanes}
	return r, site.WithSystem(func(s *rig.System) error { return r.measureReducing(ctx, s, o) })
}

func (r *Reduced) measureReducing(ctx context.Context, s *rig.System, o *reduceOrder) error {
	job, err := s.SubmitJob(ctx, o.jobSpec(), someSales(r.Units))
	if err != nil {
		return err
	}
	if _, err := s.RunWorker(rules.New(), rig.BusySlots, rig.PrefetchFor(rig.BusySlots)); err != nil {
		return err
	}

	since := mapreduce.Reducing
	if o.Tree == static {
		since = mapreduce.Mapping // once the tree is planned
	}
	if err := s.AwaitJob(ctx, job.ID, func(j *mapreduce.Job) bool { return j.Phase >= since }); err != nil {
		return err
	}

	if r.Before, err = rig.ResidentMemory(); err != nil {
		return err
	}

	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	var failed error
	watch.Go(func() { r.Peak, failed = peakMemory(watching) })
	err = s.AwaitComplete(ctx, job.ID)
	stop()
	watch.Wait()
	if err = errors.Join(err, failed); err != nil {
		return err
	}

	if r.Took, err = s.JobDuration(ctx, job.ID, since); err != nil {
		return err
	}

	return r.measureMerging(ctx, s, job.ID)
}

// peakMemory returns the most memory that this process takes until ctx ends, in bytes. It
// looks at least once: a small job may have ended before this begins.
func peakMemory(ctx context.Context) (most int64, err error) {
	for {
		var now int64
		now, err = rig.ProcNumber("/proc/self/status", "VmRSS:", 1024)
		most = max(most, now)
		if err != nil || clock.Sleep(ctx, 20*time.Millisecond) != nil {
			return most, err
		}
	}
}

// measureMerging merges the same outputs once more, with nothing around it.
func (r *Reduced) measureMerging(ctx context.Context, s *rig.System, id mapreduce.JobID) error {
	job, err := s.GetJob(ctx, id)
	if err != nil {
		return err
	}
	sc, err := schema.Parse("schema", job.Spec.Schema)
	if err != nil {
		return err
	}

	m := merger{schema: sc, units: make(map[int64][]byte)}
	level, err := m.readOutputs(ctx, s, id)
	if err != nil {
		return err
	}

	// Only the merging is timed, and not the reading of outputs.
	start := time.Now()
	for first := true; len(level) > 1; first = false {
		if level, err = m.reduceLevel(level, first); err != nil {
			return err
		}
	}
	r.Merge = time.Since(start)
	return nil
}

// A merger reduces outputs in memory.
type merger struct {
	schema *schema.Schema
	units  map[int64][]byte // outputs of map units, by index
}

// readOutputs gets the outputs of all map units, in order.
func (m *merger) readOutputs(ctx context.Context, s *rig.System, id mapreduce.JobID) (level [][]byte, err error) {
	q := mapreduce.ListUnitsQuery{Job: id, Outputs: true, PageSize: 1000}
	for {
		page, err := s.ListUnits(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, u := range page.Units {
			if u.Kind == mapreduce.KindMap {
				out, err := output.Decode(u.Output)
				if err != nil {
					return nil, err
				}
				// Reduces refer to outputs of the map by the number of their unit.
				m.units[out.Entries[0].Members[0].Unit] = u.Output
				level = append(level, u.Output)
			}
		}

		if q.PageToken = page.NextPageToken; q.PageToken == "" {
			return level, nil
		}
	}
}

// reduceLevel makes one level of the one below it.
func (m *merger) reduceLevel(level [][]byte, first bool) ([][]byte, error) {
	var next [][]byte
	for group := range slices.Chunk(level, mapreduce.DefaultReduceBatchSize) {
		var inputs, referred []*output.Output
		for _, data := range group {
			in, err := output.Decode(data)
			if err != nil {
				return nil, err
			}
			inputs = append(inputs, in)
		}

		last := len(level) <= mapreduce.DefaultReduceBatchSize
		// From the second level on, inputs refer to outputs of the map, which are read
		// again.
		if !first {
			for _, w := range output.Wanted(m.schema, inputs, last) {
				of, err := output.Decode(m.units[w.Unit])
				if err != nil {
					return nil, err
				}
				referred = append(referred, of.Only([]output.Open{w}))
			}
		}

		data, err := output.Reduce(m.schema, inputs, referred, last).Encode()
		if err != nil {
			return nil, err
		}
		next = append(next, data)
	}
	return next, nil
}

// Rows returns the report.
func (r Reducing) Rows() []Row {
	var rows []Row
	for _, t := range r {
		name := t.Tree + ", no key"
		if t.Keyed {
			name = t.Tree + ", a tenth with equal keys"
		}

		for _, one := range []Reduced{t.Few, t.Many} {
			rows = append(rows, Row{
				fmt.Sprintf("reducing %s outputs, %s", Number(float64(one.Units)), name), float64(one.timePerOutput().Microseconds()), "µs an output", nil,
				fmt.Sprintf("merging alone %s µs; memory %s MiB before, %s at most", Number(float64(one.Merge.Microseconds())/float64(one.Units)), formatMiB(one.Before), formatMiB(one.Peak)),
			})
		}

		span := fmt.Sprintf("from %s to %s outputs, %s", Number(float64(t.Few.Units)), Number(float64(t.Many.Units)), name)
		rows = append(rows,
			Row{"time an output, " + span, float64(t.Many.timePerOutput()) / float64(t.Few.timePerOutput()), "×", atMost(1.3), fmt.Sprintf("merging alone %s ×", Number(
				float64(t.Many.Merge)*float64(t.Few.Units)/(float64(t.Few.Merge)*float64(t.Many.Units))))},
			Row{"memory at most, " + span, float64(t.Many.Peak-t.Few.Peak) / (1 << 20), "MiB more", nil, ""})
	}
	return rows
}

package figures

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/bench/rig"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/worker/agent"
)

// Pending is what waiting units cost, by how many there are.
type Pending []Size

// A Size is what so many waiting units cost, measured in a process of its own.
type Size struct {
	Units    int
	Before   time.Duration // the median commit of one write, on a cluster, before anything waits
	After    time.Duration // and once the units wait and the cluster has settled, which took
	Settled  time.Duration
	Resident int64 // bytes of memory, once what is not needed is given back
	Heap     int64 // bytes of it that are live
	Stored   int64 // bytes in the store's folder, the log of recent writes included
	Texts    int64 // bytes of them that are the documents' own

	Claims   int
	ClaimP50 time.Duration // from the beginning of a transaction that claims to its acknowledgement
	ClaimP99 time.Duration
	Status   time.Duration // the 99th percentile of GetJob, meanwhile
}

type pendingOrder struct {
	Dir, Cluster string
	Units, Lanes int
}

// MeasurePending measures sizes from a thousandth of the largest on.
func MeasurePending(ctx context.Context, l *Lab) (Pending, error) {
	var all Pending
	for n := max(1, l.Size/1000); n <= l.Size; n *= 10 {
		var size Size
		if err := rig.AskChild(ctx, order{Pending: &pendingOrder{l.Dir, l.Cluster, n, l.Lanes}}, &size); err != nil {
			return nil, err
		}
		all = append(all, size)
	}
	return all, nil
}

// measureSize submits the units, and then has a few workers' slots run some of them.
func (o *pendingOrder) measureSize(ctx context.Context) (*Size, error) {
	size := &Size{Units: o.Units, Texts: int64(o.Units) * rig.TextBytes}
	site := &rig.Site{Dir: o.Dir, Cluster: o.Cluster, Lanes: o.Lanes}
	return size, site.InPlace(func(p rig.Place) error {
		s, err := rig.OpenSystem(p)
		if err != nil {
			return err
		}
		return errors.Join(size.measurePending(ctx, s, p), s.Close())
	})
}

func (z *Size) measurePending(ctx context.Context, s *rig.System, p rig.Place) (err error) {
	if p.Cluster != "" {
		if z.Before, err = p.MeasureCommit(ctx); err != nil {
			return err
		}
	}

	id, err := s.SubmitDocuments(ctx, rig.NoopSpec(rig.BusySlots), z.Units)
	if err != nil {
		return err
	}

	if z.Resident, err = rig.ResidentMemory(); err != nil {
		return err
	}

	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	z.Heap = int64(mem.HeapAlloc)
	if z.Stored, err = rig.FolderSize(p.Dir); err != nil {
		return err
	}

	// The store is busy for a while after so many writes, which would disturb the claims.
	if p.Cluster != "" {
		err = z.awaitSettledCluster(ctx, p)
	} else {
		err = awaitQuiet(ctx)
	}
	if err != nil {
		return err
	}

	return z.measureClaims(ctx, s, id)
}

// awaitSettledCluster waits until a cluster commits about as soon as before anything was
// submitted, or no longer than two minutes. It keeps five seconds of writes in
// memory before it writes them where they stay, and goes on with that for a while.
func (z *Size) awaitSettledCluster(ctx context.Context, p rig.Place) (err error) {
	start := time.Now()
	for {
		if err := clock.Sleep(ctx, 2*store.MaxTxAge); err != nil {
			return err
		}
		if z.After, err = p.MeasureCommit(ctx); err != nil {
			return err
		}
		if z.Settled = time.Since(start); z.After <= z.Before+z.Before/10 || z.Settled > 2*time.Minute {
			return nil
		}
	}
}

// awaitQuiet waits until this process has next to nothing to do: the store goes on
// sorting for a while what was submitted at once, whatever the size.
func awaitQuiet(ctx context.Context) error {
	const look = 200 * time.Millisecond
	for quiet := 0; quiet < 3; {
		used := rig.ProcessorTime()
		if err := clock.Sleep(ctx, look); err != nil {
			return err
		}
		if quiet++; rig.ProcessorTime()-used > look/10 {
			quiet = 0
		}
	}
	return nil
}

// claimedUnits is how many units are run to measure claims.
const claimedUnits = 1000

func (z *Size) measureClaims(ctx context.Context, s *rig.System, id mapreduce.JobID) error {
	enough := make(chan struct{})
	begun := newCount(min(claimedUnits, z.Units), enough)
	run := func(ctx context.Context, task *agent.Task) error {
		if rig.IsMap(task) && !begun.admit() {
			<-ctx.Done() // beyond what is measured
			return context.Cause(ctx)
		}
		return nil
	}

	stop, err := s.RunWorker(&rig.Bencher{Output: 2, Do: run}, 2, 0)
	if err != nil {
		return err
	}

	status := new(rig.Sample)
	for done := false; !done; {
		start := time.Now()
		if _, err := s.GetJob(ctx, id); err != nil {
			return err
		}
		status.Add(time.Since(start))
		t := time.NewTimer(5 * time.Millisecond)
		select {
		case <-enough:
			done = true
		case <-ctx.Done():
			done = true
		case <-t.C:
		}
		t.Stop()
	}

	claims := s.Observer.Claims
	z.Claims, z.ClaimP50, z.ClaimP99 = claims.Len(), claims.Quantile(.5), claims.Quantile(.99)
	z.Status = status.Quantile(.99)

	stop()
	return context.Cause(ctx)
}

// Rows returns the report.
func (p Pending) Rows() []Row {
	least, most := p[0], p[len(p)-1]
	var rows []Row
	for _, z := range p {
		rows = append(rows, Row{
			fmt.Sprintf("claim p50, %s pending", Number(float64(z.Units))), toMilliseconds(z.ClaimP50), "ms", nil, fmt.Sprintf(
				"%d claims, p99 %s ms; status p99 %s ms; memory %s MiB, %s of it live%s",
				z.Claims, Number(toMilliseconds(z.ClaimP99)), Number(toMilliseconds(z.Status)), formatMiB(z.Resident), formatMiB(z.Heap), z.storedText()),
		})
	}

	span := fmt.Sprintf("from %s to %s pending", Number(float64(least.Units)), Number(float64(most.Units)))
	rows = append(rows, Row{"claim p50, " + span, float64(most.ClaimP50) / float64(least.ClaimP50), "×", atMost(1.2), "1"})
	memory := Row{"memory, " + span, float64(most.Resident-least.Resident) / (1 << 20), "MiB more", atMost(64), ""}
	if most.Before > 0 {
		// A cluster keeps its store elsewhere.
		return append(rows, memory)
	}

	memory.Bound = "what the store remembers of recent commits, and its memtables"
	return append(rows, memory,
		Row{"store, largest", float64(most.Stored-most.Texts) / float64(most.Units), "B a unit beside its text", atMost(400), ""})
}

// storedText says what a unit takes in the folder of the store, or how a cluster has
// settled.
func (z *Size) storedText() string {
	if z.Before > 0 {
		return fmt.Sprintf("; one commit %s ms before, %s ms after %s s", Number(toMilliseconds(z.Before)), Number(toMilliseconds(z.After)),
			Number(z.Settled.Seconds()))
	}
	return fmt.Sprintf("; store %s B a unit, %s of it text",
		Number(float64(z.Stored)/float64(z.Units)), Number(float64(z.Texts)/float64(z.Units)))
}

func formatMiB(bytes int64) string { return Number(float64(bytes) / (1 << 20)) }

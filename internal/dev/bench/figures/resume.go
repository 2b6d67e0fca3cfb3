package figures

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/bench/rig"
	"github.com/coditect/mapreduce/worker/agent"
)

// A Resumption is how soon a job goes on of which much is done.
type Resumption struct {
	Done    int           // units
	Restart time.Duration // from opening the store to the first unit's start
	Opening time.Duration // of it, until the orchestrator moved jobs
	Read    int64         // bytes read from files meanwhile
	Resume  time.Duration // from the call for a paused job, in another run, to the first unit's start
}

// remainingUnits is how many units a resumed job has still to do.
const remainingUnits = 1000

// MeasureResume measures it.
func MeasureResume(ctx context.Context, l *Lab) (*Resumption, error) {
	r := &Resumption{Done: l.Size}
	return r, l.InPlace(func(p rig.Place) error {
		id, err := r.prepareJob(ctx, p)
		if err != nil {
			return err
		}
		if err := r.measureRestart(ctx, p, id); err != nil {
			return err
		}
		return r.measureResume(ctx, p, id)
	})
}

// prepareJob runs a job until all but the last units are done.
func (r *Resumption) prepareJob(ctx context.Context, p rig.Place) (id mapreduce.JobID, err error) {
	s, err := rig.OpenSystem(p)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if id, err = s.SubmitDocuments(ctx, rig.NoopSpec(rig.BusySlots), r.Done+remainingUnits); err != nil {
		return "", err
	}

	var begun atomic.Int64 // units may be handed out in another order than the documents'
	run := func(ctx context.Context, _ *agent.Task) error {
		if begun.Add(1) <= int64(r.Done) {
			return nil
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}

	if _, err := s.RunWorker(&rig.Bencher{Output: 2, Do: run}, rig.BusySlots, rig.PrefetchFor(rig.BusySlots)); err != nil {
		return "", err
	}
	return id, s.AwaitJob(ctx, id, func(j *mapreduce.Job) bool { return j.CompletedUnits >= int64(r.Done) })
}

// A firstStart is an agent's run that notes when it is called first and holds
// every unit.
type firstStart struct {
	once sync.Once
	at   chan time.Time // capacity 1
}

func newFirstStart() *firstStart { return &firstStart{at: make(chan time.Time, 1)} }

func (f *firstStart) holdUnit(ctx context.Context, _ *agent.Task) error {
	f.once.Do(func() { f.at <- time.Now() })
	<-ctx.Done()
	return context.Cause(ctx)
}

func (f *firstStart) awaitStart(ctx context.Context) (time.Time, error) {
	select {
	case t := <-f.at:
		return t, nil
	case <-ctx.Done():
		return time.Time{}, context.Cause(ctx)
	}
}

// measureRestart opens the store again, as after a crash, and pauses the job when it
// has gone on.
func (r *Resumption) measureRestart(ctx context.Context, p rig.Place, id mapreduce.JobID) (err error) {
	read, err := rig.BytesRead()
	if err != nil {
		return err
	}

	// The time counts from before the store is opened.
	start := time.Now()
	s, err := rig.OpenSystem(p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	r.Opening = time.Since(start)

	first := newFirstStart()
	if _, err := s.RunWorker(&rig.Bencher{Do: first.holdUnit}, rig.BusySlots, 0); err != nil {
		return err
	}

	at, err := first.awaitStart(ctx)
	if err != nil {
		return err
	}

	r.Restart = at.Sub(start)
	now, err := rig.BytesRead()
	if err != nil {
		return err
	}
	r.Read = now - read

	_, err = s.PauseJob(ctx, id)
	return err
}

func (r *Resumption) measureResume(ctx context.Context, p rig.Place, id mapreduce.JobID) (err error) {
	s, err := rig.OpenSystem(p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()

	first := newFirstStart()
	if _, err := s.RunWorker(&rig.Bencher{Do: first.holdUnit}, rig.BusySlots, 0); err != nil {
		return err
	}

	start := time.Now()
	if _, err := s.ResumeJob(ctx, id, mapreduce.Resume{}); err != nil {
		return err
	}

	at, err := first.awaitStart(ctx)
	r.Resume = at.Sub(start)
	return err
}

// Rows returns the report.
func (r *Resumption) Rows() []Row {
	name := fmt.Sprintf("first unit of a job with %s done", Number(float64(r.Done)))
	return []Row{
		{name + ", after a restart", r.Restart.Seconds(), "s", atMost(1), fmt.Sprintf(
			"opening the store takes %s s of it; %s MiB read", Number(r.Opening.Seconds()), formatMiB(r.Read))},
		{name + ", after resume", r.Resume.Seconds(), "s", atMost(1), "one commit"},
	}
}

package asking

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"time"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/bench/rig"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/llm/fakellm/meter"
)

// Models is how jobs do whose units ask a model, by workers in processes of their
// own.
type Models struct {
	AtOnce int // calls that the fleet may make
	Share  float64
	Kills  int

	Limited   Asked     // the fleet keeps to the limit, and has slots to spare
	Unlimited Asked     // it has no more slots than the limit, and nothing else keeps it back
	Faulty    Asked     // a share of the calls goes wrong
	Metered   Asked     // the model takes fewer calls a minute than there are
	Killing   rig.Tally // workers are killed
	Spared    Asked     // afterwards
}

// Asked is what came of a job whose units ask a model.
type Asked struct {
	Units  int
	Failed int
	Took   time.Duration // from the commit that made the job ready to the one that ended its map level
	Alone  time.Duration // of all its calls, one after the other
	Least  time.Duration // of a list schedule of them
	Tally  rig.Tally
}

// PerMinute is how many documents a minute were read.
func (a *Asked) PerMinute() float64 { return rig.PerSecond(a.Units, a.Took) * 60 }

// Processes is how many workers there are, each in a process of its own; spare is
// how many slots they have for each call that the fleet may make.
const (
	Processes    = 4
	sparePerCall = 1.6
)

// comebackTime is for how long what killed workers held may be kept for them: 1.5 s
// from when their streams break.
const comebackTime = 3 * time.Second

// faulty is the share of calls that go wrong.
const faulty = .05

// MeasureModels measures them.
func MeasureModels(ctx context.Context, l *Load) (*Models, error) {
	m := &Models{AtOnce: l.Calls, Share: faulty, Kills: l.Kills}
	model := modelOrder{Mean: l.Think, Rates: meter.Rates{Concurrent: l.Calls, Requests: 1e5, Input: 1e8, Output: 1e8}}
	wrong := modelOrder{Mean: l.Think / 2, Rates: model.Rates, Faults: faulty}
	tight := modelOrder{Mean: l.Think / 4, Rates: meter.Rates{Concurrent: l.Calls, Requests: float64(l.Units) * .8}}

	for _, one := range []struct {
		to    *Asked
		model modelOrder
		free  bool
	}{
		{&m.Limited, model, false},
		{&m.Unlimited, modelOrder{Mean: l.Think}, true},
		{&m.Faulty, wrong, false},
		{&m.Metered, tight, false},
	} {
		err := m.withSystem(l, one.free, func(s *rig.System, server string) error {
			return m.measureJob(ctx, s, m.newCrew(server, one.free, l), one.model, l.Units, one.to)
		})
		if err != nil {
			return nil, err
		}
	}

	return m, m.withSystem(l, false, func(s *rig.System, server string) error { return m.measureKills(ctx, s, server, l) })
}

// withSystem has a system to which workers connect over TCP.
func (m *Models) withSystem(l *Load, free bool, measure func(s *rig.System, server string) error) error {
	return l.Site.InPlace(func(p rig.Place) error {
		kv, err := p.OpenStore()
		if err != nil {
			return err
		}

		config := orchestrator.Config{Exclusive: p.Cluster == "", MaxCalls: m.AtOnce}
		if free {
			config.MaxCalls = 1 << 20
		}
		s, err := rig.OpenOn(kv, p, config)
		if err != nil {
			return errors.Join(err, kv.Close())
		}

		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return errors.Join(err, s.Close())
		}

		s.ServeOn(listener)
		return errors.Join(measure(s, listener.Addr().String()), s.Close())
	})
}

// A workerCrew is the workers of a job, yet to be started.
type workerCrew struct {
	askerOrder
	slots [Processes]int
}

// newCrew has slots to spare where the fleet is limited, else as many as may be busy.
func (m *Models) newCrew(server string, free bool, l *Load) workerCrew {
	c := workerCrew{askerOrder: askerOrder{Server: server, Unlimited: free, Idle: 15 * l.Think}}
	all := m.AtOnce
	if !free {
		all = int(sparePerCall * float64(all))
	}
	for i := range c.slots {
		c.slots[i] = max(1, (all+i)/Processes)
	}
	c.Prefetch = max(1, c.slots[0]/4) // as the command has it
	return c
}

func (c workerCrew) startWorkers(ctx context.Context, url string) (*askerProcesses, error) {
	a := &askerProcesses{order: c.askerOrder}
	a.order.Model = url
	for _, slots := range c.slots {
		if err := a.startWorker(ctx, slots); err != nil {
			return nil, errors.Join(err, a.killAll())
		}
	}
	return a, nil
}

// measureJob runs a job of n units to its end.
func (m *Models) measureJob(ctx context.Context, s *rig.System, c workerCrew, o modelOrder, n int, a *Asked) (err error) {
	model, err := rig.StartModel(ctx, Order{Model: &o})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, model.EndProcess()) }()

	workers, err := c.startWorkers(ctx, model.URL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, workers.killAll()) }()

	spec := askingSpec(n)
	if o.Faults > 0 {
		spec.UnitTimeout = max(2*c.Idle, 2*time.Second) // answers that never end
	}

	id, err := submitReceipts(ctx, s, spec, n)
	if err != nil {
		return err
	}
	job, err := s.AwaitEnded(ctx, id)
	if err != nil {
		return err
	}

	tally, err := model.ReadTally(ctx)
	if err != nil {
		return err
	}

	*a = Asked{Units: n, Failed: int(job.FailedUnits), Took: s.Observer.MappedAt(id).Sub(s.Observer.ReadyAt(id)), Tally: *tally}
	a.setBounds(o, n, m.AtOnce)
	return nil
}

// setBounds are of as many calls as there are units, in the order in which the model
// draws how long they take.
func (a *Asked) setBounds(o modelOrder, n, atOnce int) {
	latency := o.latencyFunc()
	draws := make([]time.Duration, n)
	for i := range draws {
		draws[i] = latency(fakellm.Call{N: i + 1})
		a.Alone += draws[i]
	}
	a.Least = rig.ListSchedule(draws, atOnce)
}

// askingSpec is a job of receipts, which all may be asked about at once.
func askingSpec(n int) mapreduce.JobSpec {
	return mapreduce.JobSpec{
		Provider: asked, Model: "m", Parallelism: n, BreakerTimeout: 5 * time.Second,
		Schema: []byte(`{"title":"receipt","type":"object","properties":{"total":{"type":"number"}}}`),
	}
}

// submitReceipts submits a job of n receipts.
func submitReceipts(ctx context.Context, s *rig.System, spec mapreduce.JobSpec, n int) (mapreduce.JobID, error) {
	job, err := s.SubmitJob(ctx, spec, receiptDocuments(n))
	if err != nil {
		return "", err
	}
	return job.ID, nil
}

func receiptDocuments(n int) iter.Seq2[*mapreduce.Document, error] {
	return func(yield func(*mapreduce.Document, error) bool) {
		for i := range n {
			d := &mapreduce.Document{
				ID:      mapreduce.DocumentID(fmt.Sprintf("%06d.txt", i)),
				Content: fmt.Appendf(nil, "SHOP NUMBER %d\nBREAD 2 x 1.25\nTOTAL RM %d.50\nTHANK YOU\n", i, i),
			}
			if !yield(d, nil) {
				return
			}
		}
	}
}

// measureKills kills workers in the midst of their calls, one after the other, each
// replaced at once, and then runs a job with those that are left.
func (m *Models) measureKills(ctx context.Context, s *rig.System, server string, l *Load) error {
	c := m.newCrew(server, false, l)
	o := modelOrder{Mean: l.Think}
	if err := m.killWorkers(ctx, s, c, o, l); err != nil {
		return err
	}
	if err := clock.Sleep(ctx, comebackTime); err != nil {
		return err
	}
	return m.measureJob(ctx, s, c, o, 8*m.AtOnce, &m.Spared)
}

func (m *Models) killWorkers(ctx context.Context, s *rig.System, c workerCrew, o modelOrder, l *Load) (err error) {
	o.Mean = max(o.Mean, time.Second) // kills are to meet calls, however slow the machine
	model, err := rig.StartModel(ctx, Order{Model: &o})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, model.EndProcess()) }()

	workers, err := c.startWorkers(ctx, model.URL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, workers.killAll()) }()

	id, err := submitReceipts(ctx, s, askingSpec(l.Units), l.Units)
	if err != nil {
		return err
	}
	if err := s.AwaitJob(ctx, id, func(j *mapreduce.Job) bool { return j.CompletedUnits > 0 }); err != nil {
		return err
	}

	for i := range m.Kills {
		if err := clock.Sleep(ctx, l.Think/8); err != nil {
			return err
		}
		if err := workers.killOldest(); err != nil {
			return err
		}
		if err := workers.startWorker(ctx, c.slots[i%Processes]); err != nil {
			return err
		}
	}

	if _, err := s.CancelJob(ctx, id); err != nil {
		return err
	}
	if err := workers.killAll(); err != nil {
		return err
	}

	tally, err := model.ReadTally(ctx)
	if err != nil {
		return err
	}

	m.Killing = *tally
	return nil
}

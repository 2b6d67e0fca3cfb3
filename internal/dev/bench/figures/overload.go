package figures

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/bench/rig"
)

// An Overload is what is left to work under way while ten times as much is asked of a server as it
// can answer.
type Overload struct {
	Capacity      float64       // status reads that the server answers a second
	Crowd         Crowd         // what came of those who asked for more
	Alone, Beside float64       // units of the running job a second, before and meanwhile
	Before, Peak  int64         // bytes of resident memory
	Growth        float64       // the most of the last quarter, of the most of the second
	Calm          time.Duration // from its end until reads are as quick as before
	After         float64       // units of the running job a second, from then on
}

// The sizes of an overload.
const (
	overloadTimes   = 10                    // the rate at which is asked, of the capacity
	overloadCallers = 2000                  // calls under way at most, as each caller waits for its answer
	overloadSlots   = 20                    // of the worker of the running job
	overloadNap     = 50 * time.Millisecond // that a unit of it takes
	overloadUnended = 1000                  // jobs of a tenant that have not ended, as servers allow
	calmReads       = 50                    // in a row, after which it is calm again
	calmWithin      = 30 * time.Second
)

// MeasureOverload measures it, on a server of its own over TCP, whose worker and callers are in
// processes of their own.
func MeasureOverload(ctx context.Context, l *Lab) (*Overload, error) {
	o := new(Overload)
	site := l.Site
	site.Rules = func(mapreduce.TenantID) (rule mapreduce.TenantRule) {
		rule.Quota.UnendedJobs = overloadUnended
		return rule
	}

	return o, site.WithSystem(func(s *rig.System) (err error) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		s.ServeOn(listener)
		address := listener.Addr().String()

		worker, err := rig.StartChild(ctx, order{Worker: &workerOrder{Server: address, Slots: overloadSlots, Nap: overloadNap}})
		if err != nil {
			return err
		}
		defer func() {
			_ = worker.Cmd.Process.Kill()
			_ = worker.Cmd.Wait() // that it was killed is no news
		}()
		var connected workerNews
		if err := worker.Out.Decode(&connected); err != nil {
			return fmt.Errorf("the worker: %w", err)
		}

		return o.measureBeside(ctx, s, l, address)
	})
}

// measureBeside runs a job that lasts longer than everything else, and measures what becomes of it.
func (o *Overload) measureBeside(ctx context.Context, s *rig.System, l *Lab, address string) error {
	quiet := min(l.Overloaded/5, 10*time.Second)
	lasts := quiet*4 + l.Overloaded + calmWithin
	id, err := s.SubmitDocuments(ctx, rig.NoopSpec(overloadSlots), overloadSlots*int(lasts/overloadNap))
	if err != nil {
		return err
	}

	// What the server can answer is measured while the job runs.
	few := &crowdOrder{Server: address, Job: id, Callers: 32, For: quiet}
	var answered Crowd
	if err := rig.AskChild(ctx, order{Crowd: few}, &answered); err != nil {
		return err
	}
	o.Capacity = float64(answered.Reads.Done) / quiet.Seconds()

	if o.Alone, err = unitsPerSecond(ctx, s, id, quiet); err != nil {
		return err
	}
	usual, err := readTimes(ctx, address, id)
	if err != nil {
		return err
	}
	if o.Before, err = rig.ResidentMemory(); err != nil {
		return err
	}

	if err := o.overload(ctx, s, l, address, id); err != nil {
		return err
	}
	ended := time.Now()
	err = untilCalm(ctx, address, id, 2*slices.Max(usual))
	o.Calm = time.Since(ended)
	if err != nil {
		return err
	}
	if o.After, err = unitsPerSecond(ctx, s, id, quiet); err != nil {
		return err
	}
	_, err = s.CancelJob(ctx, id)
	return err
}

// overload has a crowd ask for far too much, and looks at the job and the memory meanwhile.
func (o *Overload) overload(ctx context.Context, s *rig.System, l *Lab, address string, id mapreduce.JobID) error {
	many := &crowdOrder{
		Server: address, Job: id, Callers: overloadCallers, Submits: true,
		Rate: overloadTimes * o.Capacity, For: l.Overloaded,
	}
	crowd, err := rig.StartChild(ctx, order{Crowd: many})
	if err != nil {
		return err
	}
	gone := make(chan error, 1)
	go func() { gone <- crowd.Out.Decode(&o.Crowd) }()

	// The rate is that of the time in which all of the crowd asks: the second to the ninth tenth.
	if err := clock.Sleep(ctx, l.Overloaded/10); err != nil {
		return err
	}
	memory, stop := sampleMemory(ctx)
	o.Beside, err = unitsPerSecond(ctx, s, id, l.Overloaded*8/10)
	stop()
	if err != nil {
		return err
	}

	if err := <-gone; err != nil {
		return fmt.Errorf("the crowd: %w", err)
	}
	if err := crowd.Cmd.Wait(); err != nil {
		return fmt.Errorf("the crowd: %w", err)
	}
	samples := <-memory
	if len(samples) < 4 {
		return fmt.Errorf("memory was looked at %d times, too few to see how it grows", len(samples))
	}
	quarter := len(samples) / 4
	o.Peak = slices.Max(samples)
	o.Growth = float64(slices.Max(samples[3*quarter:])) / float64(slices.Max(samples[quarter:2*quarter]))
	return nil
}

// unitsPerSecond returns how many units of a job end in a time.
func unitsPerSecond(ctx context.Context, s *rig.System, id mapreduce.JobID, d time.Duration) (float64, error) {
	before, err := s.GetJob(ctx, id)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if err := clock.Sleep(ctx, d); err != nil {
		return 0, err
	}
	after, err := s.GetJob(ctx, id)
	if err != nil {
		return 0, err
	}
	return rig.PerSecond(int(after.CompletedUnits-before.CompletedUnits), time.Since(start)), nil
}

// sampleMemory notes the resident memory, forty times a second at most, until stop is called.
func sampleMemory(ctx context.Context) (samples <-chan []int64, stop func()) {
	ctx, stop = context.WithCancel(ctx)
	out := make(chan []int64, 1)
	go func() {
		var all []int64
		for clock.Sleep(ctx, 25*time.Millisecond) == nil {
			if n, err := rig.ProcNumber("/proc/self/status", "VmRSS:", 1024); err == nil {
				all = append(all, n)
			}
		}
		out <- all
	}()
	return out, stop
}

// readTimes returns how long reads take of one caller that nobody is beside.
func readTimes(ctx context.Context, address string, id mapreduce.JobID) ([]time.Duration, error) {
	c, err := client.Dial(address, client.Config{})
	if err != nil {
		return nil, err
	}
	defer c.Close()

	times := make([]time.Duration, calmReads)
	for i := range times {
		start := time.Now()
		if _, err := c.GetJob(ctx, id); err != nil {
			return nil, err
		}
		times[i] = time.Since(start)
		if err := clock.Sleep(ctx, 5*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return times, nil
}

// untilCalm waits until reads in a row are answered, half of them as soon as usual.
func untilCalm(ctx context.Context, address string, id mapreduce.JobID, usual time.Duration) error {
	ctx, stop := context.WithTimeout(ctx, calmWithin)
	defer stop()
	for {
		times, err := readTimes(ctx, address, id)
		if ctx.Err() != nil {
			return nil // the report says how long it was
		}
		if err != nil {
			continue // refused
		}
		slices.Sort(times)
		if times[len(times)/2] <= usual {
			return nil
		}
	}
}

// ratio returns a of b, and 0 of nothing.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// Rows returns the report.
func (o *Overload) Rows() []Row {
	all := o.Crowd.Reads.plus(o.Crowd.Submissions)
	return []Row{
		{"units/s of work under way while ten times as much is asked as can be answered", ratio(o.Beside, o.Alone), "× alone", atLeast(.9), fmt.Sprintf(
			"alone %s units/s; %s reads/s can be answered", Number(o.Alone), Number(o.Capacity))},
		{"— calls asked for", float64(all.Made) / o.Crowd.Took.Seconds(), "a second", nil, fmt.Sprintf(
			"by %d callers, each of which waits for its answer", overloadCallers)},
		{"— reads answered", float64(o.Crowd.Reads.Done) / o.Crowd.Took.Seconds(), "a second", nil, ""},
		{"— calls refused", float64(all.Refused) / float64(max(1, all.Made)), "of all", nil, fmt.Sprintf(
			"%d of %d submissions taken, %d the quota of a tenant", o.Crowd.Submissions.Done, o.Crowd.Submissions.Made, overloadUnended)},
		{"— refusals that do not say when to ask again", float64(all.Refused - all.Paused), "", atMost(0), ""},
		{"— calls that failed in another way", float64(all.Failed), "", atMost(0), o.Crowd.First},
		{"— memory at the most", float64(o.Peak) / (1 << 20), "MiB", nil, fmt.Sprintf("before %s MiB", Number(float64(o.Before)/(1<<20)))},
		{"— in the last quarter", o.Growth, "× the second", atMost(1.1), "1"},
		{"— until reads are as quick as before", o.Calm.Seconds(), "s", atMost(5), "twice the longest of 50 reads before"},
		{"— units/s from then on", ratio(o.After, o.Alone), "× alone", atLeast(.9), ""},
	}
}

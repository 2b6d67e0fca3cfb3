// Command temporal measures Temporal: its server runs in this process, on SQLite. It is started by rivals.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.temporal.io/server/temporal"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/internal/dev/rivals/lap"
)

func main() { lap.Serve(system{}) }

type system struct{}

const (
	namespace = "rivals"
	queue     = "units"

	senders   = 64 // at once, where many units are submitted: there is no call for many
	busySlots = 1000
	pollers   = 16

	lost      = time.Second // after so long without a sign of life an activity is given to another worker
	lookEvery = 50 * time.Millisecond
)

func (system) Info() lap.Info {
	return lap.Info{
		Name: "Temporal", Module: "go.temporal.io/server", Units: 1000,
		Settings: "server in one process with four shards of history, on SQLite with a log that each commit syncs; a workflow of one activity for each unit, 16 pollers of each kind; no limits of requests",
		Killed:   "an activity says that it lives several times a second, and is given to another worker after a second without a sign, the least that there is",
	}
}

func (system) Open(_ context.Context, dir string) (_ lap.Server, err error) {
	c, err := configOf(filepath.Join(dir, "temporal.db"))
	if err != nil {
		return nil, err
	}
	s := &server{address: c.PublicClient.HostPort}
	if s.node, err = start(c); err != nil {
		return nil, err
	}
	s.client, err = dial(s.address)
	if err != nil {
		return nil, errors.Join(err, s.node.Stop())
	}
	return s, nil
}

// dial returns a client of a server, once that answers.
func dial(address string) (client.Client, error) {
	return client.Dial(client.Options{HostPort: address, Namespace: namespace, Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))})
}

type server struct {
	address string
	node    temporal.Server
	client  client.Client
}

func (s *server) Address() string { return s.address }

// Submit starts workflows, one call for each, and many of them at once.
func (s *server) Submit(ctx context.Context, units []string) error {
	errs := make([]error, len(units))
	places := make(chan struct{}, senders)
	var sending sync.WaitGroup
	for i, unit := range units {
		places <- struct{}{}
		sending.Go(func() {
			defer func() { <-places }()
			_, errs[i] = s.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: unit, TaskQueue: queue}, runUnit, args{unit, lap.Text(unit)})
		})
	}
	sending.Wait()
	return errors.Join(errs...)
}

func (s *server) Work(ctx context.Context, w lap.Worker) error { return work(ctx, s.client, w) }

// AwaitEnded asks the server how many workflows are over: no process is told of what others have ended.
// One that ended in another way than it should never counts as over, so it is an error.
func (s *server) AwaitEnded(ctx context.Context, submitted int) (time.Time, error) {
	for before := int64(-1); ; {
		completed, err := s.count(ctx, "ExecutionStatus = 'Completed'")
		if err != nil {
			return time.Time{}, err
		}
		if completed >= int64(submitted) {
			return time.Now(), nil
		}

		// The server is not asked for more while it gets on, as it is measured.
		if completed == before {
			if err := s.checkEnded(ctx); err != nil {
				return time.Time{}, err
			}
		}
		before = completed

		if err := clock.Sleep(ctx, lookEvery); err != nil {
			return time.Time{}, err
		}
	}
}

// checkEnded returns an error if a workflow has ended in another way than it should.
func (s *server) checkEnded(ctx context.Context) error {
	n, err := s.count(ctx, "ExecutionStatus != 'Completed' AND ExecutionStatus != 'Running'")
	if err == nil && n > 0 {
		err = fmt.Errorf("%d workflows have failed, or were ended", n)
	}
	return err
}

// count returns how many workflows a query finds.
func (s *server) count(ctx context.Context, query string) (int64, error) {
	n, err := s.client.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: query})
	return n.GetCount(), err
}

func (s *server) Close() error {
	s.client.Close()
	return s.node.Stop()
}

func (system) Work(ctx context.Context, address string, w lap.Worker) error {
	c, err := dial(address)
	if err != nil {
		return err
	}
	defer c.Close()
	return work(ctx, c, w)
}

// args are a unit as Temporal keeps it.
type args struct{ Unit, Text string }

// activityName is that of the one activity of a workflow.
const activityName = "run"

// runUnit is the workflow of a unit: what it does is an activity, as workflows themselves may do nothing.
func runUnit(ctx workflow.Context, a args) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Hour, HeartbeatTimeout: lost,
		RetryPolicy: &sdk.RetryPolicy{InitialInterval: time.Millisecond, BackoffCoefficient: 1},
	})
	return workflow.ExecuteActivity(ctx, activityName, a).Get(ctx, nil)
}

// work runs workflows and their activities until ctx ends.
func work(ctx context.Context, c client.Client, w lap.Worker) error {
	slots := w.Slots
	if slots == 0 {
		slots = busySlots
	}
	ours := worker.New(c, queue, worker.Options{
		Identity: w.Name, MaxConcurrentActivityExecutionSize: slots,
		MaxConcurrentActivityTaskPollers: pollers, MaxConcurrentWorkflowTaskPollers: pollers,
		MaxHeartbeatThrottleInterval: lost / 4, WorkerStopTimeout: lost,
	})
	ours.RegisterWorkflow(runUnit)
	ours.RegisterActivityWithOptions(func(ctx context.Context, a args) error {
		ctx, stop := context.WithCancel(ctx)
		var beating sync.WaitGroup
		beating.Go(func() { beat(ctx) })

		// An activity that has ended says no more that it lives.
		defer beating.Wait()
		defer stop()
		return w.Run(ctx, a.Unit)
	}, activity.RegisterOptions{Name: activityName})

	if err := ours.Start(); err != nil {
		return err
	}
	defer ours.Stop()
	w.Begun()
	<-ctx.Done()
	return nil
}

// beat says that an activity lives, until ctx ends.
func beat(ctx context.Context) {
	for clock.Sleep(ctx, lost/4) == nil {
		activity.RecordHeartbeat(ctx)
	}
}

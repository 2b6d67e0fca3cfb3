// Command dbos measures DBOS Transact on PostgreSQL. It is started by rivals.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/internal/dev/rivals/lap"
	"github.com/coditect/mapreduce/internal/dev/rivals/postgres"
)

func main() { lap.Serve(system{}) }

type system struct{}

const (
	application = "rivals"
	queue       = "units"
	workflow    = "unit"

	poll      = 10 * time.Millisecond // between looks into an idle queue
	busySlots = 500

	busyConnections = 40
	closing         = 10 * time.Second
	enqueuers       = 32 // at once, where many units are submitted: there is no call for many
)

func (system) Info() lap.Info {
	return lap.Info{
		Name: "DBOS Transact", Module: "github.com/dbos-inc/dbos-transact-golang", Units: 3000, Again: true,
		Settings: "polls its queue each 10 ms, 500 workflows at once, 40 connections; a workflow without steps for each unit",
		Killed:   "not elsewhere: the same executor was started again at once. Others take over only where its Conductor, a service of its vendor, says so",
	}
}

func (system) Open(ctx context.Context, dir string) (_ lap.Server, err error) {
	pg, err := postgres.Start(ctx, dir)
	if err != nil {
		return nil, err
	}
	s := &server{postgres: pg}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()

	if s.pool, err = pgxpool.New(ctx, s.Address()); err != nil {
		return nil, err
	}
	// An application makes the tables when it is launched, and a client looks whether they are there.
	first, err := launch(ctx, s.Address(), busyConnections, lap.Worker{Name: "first", Slots: 1})
	if err != nil {
		return nil, err
	}
	if err := dbos.Shutdown(first, closing); err != nil {
		return nil, err
	}
	s.client, err = dbos.NewClient(ctx, dbos.ClientConfig{DatabaseURL: s.Address(), AppName: application, Logger: slog.New(slog.DiscardHandler)})
	return s, err
}

type server struct {
	postgres *postgres.Server
	pool     *pgxpool.Pool
	client   dbos.Client
}

func (s *server) Address() string { return s.postgres.URL("postgres") }

// Submit enqueues units, one transaction for each, and many of them at once.
func (s *server) Submit(ctx context.Context, units []string) error {
	rest := make(chan string, len(units))
	for _, unit := range units {
		rest <- unit
	}
	close(rest)

	var submitting sync.WaitGroup
	errs := make([]error, min(enqueuers, len(units)))
	for i := range errs {
		submitting.Go(func() {
			for unit := range rest {
				_, err := dbos.Enqueue[string](s.client, queue, workflow, args{unit, lap.Text(unit)},
					dbos.WithEnqueueWorkflowID(unit), dbos.WithEnqueueApplicationVersion(version))
				if err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	submitting.Wait()
	return errors.Join(errs...)
}

func (s *server) Work(ctx context.Context, w lap.Worker) error {
	return work(ctx, s.Address(), busyConnections, w)
}

// AwaitEnded asks the database: no process is told of what others have ended.
func (s *server) AwaitEnded(ctx context.Context, submitted int) (time.Time, error) {
	for {
		var ended int
		err := s.pool.QueryRow(ctx, `SELECT count(*) FROM dbos.workflow_status WHERE status = 'SUCCESS'`).Scan(&ended)
		if err != nil {
			return time.Time{}, err
		}
		if ended >= submitted {
			return time.Now(), nil
		}
		if err := clock.Sleep(ctx, poll); err != nil {
			return time.Time{}, err
		}
	}
}

func (s *server) Close() error {
	var err error
	if s.client != nil {
		err = dbos.Shutdown(s.client, closing)
	}
	if s.pool != nil {
		s.pool.Close()
	}
	return errors.Join(err, s.postgres.Close())
}

func (system) Work(ctx context.Context, address string, w lap.Worker) error {
	return work(ctx, address, 4, w)
}

// args are a unit as DBOS keeps it.
type args struct{ Unit, Text string }

// version is that of the application: workflows run in their own version alone.
const version = "1"

// launch starts an executor with so many connections.
func launch(ctx context.Context, address string, connections int, w lap.Worker) (dbos.Context, error) {
	pool, err := pgxpool.New(ctx, fmt.Sprintf("%s&pool_max_conns=%d", address, connections)) // closed when the executor is shut down
	if err != nil {
		return nil, err
	}
	c, err := dbos.NewContext(ctx, dbos.Config{
		AppName: application, SystemDBPool: pool, ExecutorID: w.Name, ApplicationVersion: version,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}

	run := func(ctx dbos.Context, a args) (string, error) { return "{}", w.Run(ctx, a.Unit) }
	dbos.RegisterWorkflow(c, run, dbos.WithWorkflowName(workflow), dbos.WithMaxRecoveryAttempts(1000))
	slots := w.Slots
	if slots == 0 {
		slots = busySlots
	}
	if err := dbos.Launch(c); err != nil {
		return nil, fmt.Errorf("launch: %w", err)
	}
	_, err = dbos.RegisterQueue(c, queue, dbos.WithWorkerConcurrency(slots),
		dbos.WithQueueBasePollingInterval(poll), dbos.WithQueueOnConflict(dbos.QueueConflictAlwaysUpdate))
	return c, err
}

// work runs workflows until ctx ends.
func work(ctx context.Context, address string, connections int, w lap.Worker) error {
	c, err := launch(context.WithoutCancel(ctx), address, connections, w)
	if err != nil {
		return err
	}
	w.Begun()
	<-ctx.Done()
	return dbos.Shutdown(c, closing)
}

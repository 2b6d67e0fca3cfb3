// Command river measures River on PostgreSQL. It is started by rivals.
package main

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/internal/dev/rivals/lap"
	"github.com/coditect/mapreduce/internal/dev/rivals/postgres"
)

func main() { lap.Serve(system{}) }

type system struct{}

// longest is how long a unit may run: a job is rescued when it has run for longer than that, and
// one without such a limit never is.
const longest = 10 * time.Second

func (system) Info() lap.Info {
	return lap.Info{
		Name: "River", Module: "github.com/riverqueue/river", Units: 40_000,
		Settings: "fetches each 2 ms at most, polls each 20 ms, 10,000 workers, as its own `river bench` does; jobs are inserted with COPY; given up and rescued after 10 s",
		Killed:   "no job may take longer than 10 s for that, and the leader looks for them each 30 s; as it comes, a job is rescued after an hour",
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

	if s.pool, err = pgxpool.New(ctx, pg.URL("postgres")+"&pool_max_conns=40"); err != nil {
		return nil, err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(s.pool), nil)
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	s.client, err = river.NewClient(riverpgxv5.New(s.pool), &river.Config{Logger: slog.New(slog.DiscardHandler)})
	return s, err
}

type server struct {
	postgres *postgres.Server
	pool     *pgxpool.Pool
	client   *river.Client[pgx.Tx] // only inserts

	ended   atomic.Int64 // jobs that were kept as ended
	last    atomic.Int64 // when the last was, in nanoseconds since 1970
	working atomic.Bool  // a worker of this process is, so that nobody else ends anything
}

func (s *server) Address() string { return s.postgres.URL("postgres") }

// Submit inserts a single job as River's own examples do, and many at once with COPY.
func (s *server) Submit(ctx context.Context, units []string) error {
	if len(units) == 1 {
		_, err := s.client.Insert(ctx, unitArgs{units[0], lap.Text(units[0])}, nil)
		return err
	}

	const batch = 5000
	for len(units) > 0 {
		n := min(batch, len(units))
		params := make([]river.InsertManyParams, n)
		for i, unit := range units[:n] {
			params[i].Args = unitArgs{unit, lap.Text(unit)}
		}
		if _, err := s.client.InsertManyFast(ctx, params); err != nil {
			return err
		}
		units = units[n:]
	}
	return nil
}

func (s *server) Work(ctx context.Context, w lap.Worker) error {
	s.working.Store(true)
	defer s.working.Store(false)
	return work(ctx, s.pool, w, func() {
		s.last.Store(time.Now().UnixNano())
		s.ended.Add(1)
	})
}

// AwaitEnded counts what River tells this process has ended: it does once that is in the
// database. Where this process does not work, it looks there now and then.
func (s *server) AwaitEnded(ctx context.Context, submitted int) (time.Time, error) {
	for n := 1; s.ended.Load() < int64(submitted); n++ {
		if err := clock.Sleep(ctx, time.Millisecond); err != nil {
			return time.Time{}, err
		}
		if s.working.Load() || n%lookEvery != 0 {
			continue
		}

		var left bool
		if err := s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM river_job WHERE state <> 'completed')`).Scan(&left); err != nil {
			return time.Time{}, err
		}
		if !left {
			s.ended.Store(int64(submitted))
			s.last.Store(time.Now().UnixNano())
		}
	}
	return time.Unix(0, s.last.Load()), nil
}

// lookEvery is how many waits of a millisecond pass between looks at the whole.
const lookEvery = 200

func (s *server) Close() error {
	if s.pool != nil {
		s.pool.Close()
	}
	return s.postgres.Close()
}

func (system) Work(ctx context.Context, address string, w lap.Worker) error {
	pool, err := pgxpool.New(ctx, address+"&pool_max_conns=5")
	if err != nil {
		return err
	}
	defer pool.Close()
	return work(ctx, pool, w, func() {})
}

// unitArgs are a unit as River keeps it.
type unitArgs struct {
	Unit string `json:"unit"`
	Text string `json:"text"`
}

// Kind names the kind of job.
func (unitArgs) Kind() string { return "unit" }

type runner struct {
	river.WorkerDefaults[unitArgs]
	run func(ctx context.Context, unit string) error
}

// Work runs a unit.
func (r *runner) Work(ctx context.Context, job *river.Job[unitArgs]) error {
	return r.run(ctx, job.Args.Unit)
}

// atOnce tries a job again at once, so that nothing but the rescue is waited for.
type atOnce struct{}

func (atOnce) NextRetry(*rivertype.JobRow) time.Time { return time.Now() }

// work runs jobs until ctx ends, and calls ended after each that was kept as ended.
func work(ctx context.Context, pool *pgxpool.Pool, w lap.Worker, ended func()) error {
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, &runner{run: w.Run}); err != nil {
		return err
	}
	slots := w.Slots
	if slots == 0 {
		slots = river.QueueNumWorkersMax
	}
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Workers: workers, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: slots}},
		FetchCooldown: 2 * time.Millisecond, FetchPollInterval: 20 * time.Millisecond,
		Logger:     slog.New(slog.DiscardHandler), // it writes to the standard output, which is for news
		JobTimeout: longest, RescueStuckJobsAfter: longest, RetryPolicy: atOnce{},
	})
	if err != nil {
		return err
	}

	events, cancel := client.SubscribeConfig(&river.SubscribeConfig{ChanSize: 1_000_000, Kinds: []river.EventKind{river.EventKindJobCompleted}})
	defer cancel()
	if err := client.Start(ctx); err != nil {
		return err
	}
	w.Begun()

	for {
		select {
		case <-events:
			ended()
		case <-ctx.Done():
			return errors.Join(client.StopAndCancel(context.WithoutCancel(ctx)))
		}
	}
}

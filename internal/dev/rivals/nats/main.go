// Command nats measures NATS JetStream, its server embedded. It is started by rivals.
package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/internal/dev/rivals/lap"
)

func main() { lap.Serve(system{}) }

type system struct{}

// lease is how long a message may be without a sign of life from whoever works on it.
const lease = 2 * time.Second

// busySlots is how many acknowledgements wait for a sync at once where as many messages are to go
// through as can.
const busySlots = 512

const (
	stream   = "units"
	consumer = "workers"
)

func (system) Info() lap.Info {
	return lap.Info{
		Name: "NATS JetStream", Module: "github.com/nats-io/nats-server/v2", Units: 20_000,
		Settings: "file storage, `sync_interval: always`; a work queue, each acknowledgement confirmed, 512 of them at once; the wait for an acknowledgement 2 s",
		Killed:   "the wait is 30 s as it comes; each message in work says so every 0.6 s; no result is kept",
	}
}

func (system) Open(ctx context.Context, dir string) (_ lap.Server, err error) {
	ns, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir,
		SyncInterval: 2 * time.Minute, SyncAlways: true, NoSigs: true, NoLog: true,
	})
	if err != nil {
		return nil, err
	}
	s := &broker{server: ns}
	ns.Start()
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if !ns.ReadyForConnections(time.Minute) {
		return nil, errors.New("the server takes no connections")
	}

	if s.conn, err = nats.Connect("", nats.InProcessServer(ns)); err != nil {
		return nil, err
	}
	if s.stream, err = jetstream.New(s.conn, jetstream.WithPublishAsyncMaxPending(4000)); err != nil {
		return nil, err
	}
	// What is acknowledged is removed from such a stream, and the removal synced.
	if _, err := s.stream.CreateStream(ctx, jetstream.StreamConfig{
		Name: stream, Subjects: []string{stream}, Storage: jetstream.FileStorage, Retention: jetstream.WorkQueuePolicy,
	}); err != nil {
		return nil, err
	}
	_, err = s.stream.CreateConsumer(ctx, stream, jetstream.ConsumerConfig{
		Durable: consumer, AckPolicy: jetstream.AckExplicitPolicy, AckWait: lease, MaxAckPending: 10_000,
	})
	return s, err
}

type broker struct {
	server *server.Server
	conn   *nats.Conn
	stream jetstream.JetStream

	ended   atomic.Int64 // messages whose acknowledgement was confirmed
	last    atomic.Int64 // when the last was, in nanoseconds since 1970
	working atomic.Bool  // a worker of this process is, so that nobody else ends anything
}

func (s *broker) Address() string { return s.server.ClientURL() }

// Submit publishes units, many of them without waiting for each.
func (s *broker) Submit(ctx context.Context, units []string) error {
	if len(units) == 1 {
		_, err := s.stream.PublishMsg(ctx, messageOf(units[0]))
		return err
	}

	kept := make([]jetstream.PubAckFuture, len(units))
	var err error
	for i, unit := range units {
		if kept[i], err = s.stream.PublishMsgAsync(messageOf(unit), jetstream.WithStallWait(time.Minute)); err != nil {
			return err
		}
	}
	for _, k := range kept {
		select {
		case <-k.Ok():
		case err := <-k.Err():
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func messageOf(unit string) *nats.Msg {
	m := nats.NewMsg(stream)
	m.Header.Set("Unit", unit)
	m.Data = []byte(lap.Text(unit))
	return m
}

func (s *broker) Work(ctx context.Context, w lap.Worker) error {
	s.working.Store(true)
	defer s.working.Store(false)
	return work(ctx, s.stream, w, func() {
		s.last.Store(time.Now().UnixNano())
		s.ended.Add(1)
	})
}

// AwaitEnded counts the acknowledgements of this process. Where this
// process does not work, it looks now and then at what is left of the stream.
func (s *broker) AwaitEnded(ctx context.Context, submitted int) (time.Time, error) {
	for n := 1; s.ended.Load() < int64(submitted); n++ {
		if err := clock.Sleep(ctx, time.Millisecond); err != nil {
			return time.Time{}, err
		}
		if s.working.Load() || n%lookEvery != 0 {
			continue
		}

		units, err := s.stream.Stream(ctx, stream)
		if err != nil {
			return time.Time{}, err
		}
		if units.CachedInfo().State.Msgs == 0 {
			s.ended.Store(int64(submitted))
			s.last.Store(time.Now().UnixNano())
		}
	}
	return time.Unix(0, s.last.Load()), nil
}

// lookEvery is how many waits of a millisecond pass between looks at the whole.
const lookEvery = 200

func (s *broker) Close() error {
	if s.conn != nil {
		s.conn.Close()
	}
	s.server.Shutdown()
	s.server.WaitForShutdown()
	return nil
}

func (system) Work(ctx context.Context, address string, w lap.Worker) error {
	conn, err := nats.Connect(address)
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	return work(ctx, js, w, func() {})
}

// work runs messages until ctx ends, and calls ended after each whose acknowledgement was confirmed.
func work(ctx context.Context, js jetstream.JetStream, w lap.Worker, ended func()) (err error) {
	slots := w.Slots
	if slots == 0 {
		slots = busySlots
	}
	c, err := js.Consumer(ctx, stream, consumer)
	if err != nil {
		return err
	}
	messages, err := c.Messages(jetstream.PullMaxMessages(slots))
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, messages.Stop)()
	w.Begun()

	free := make(chan struct{}, slots)
	var running sync.WaitGroup
	defer running.Wait()
	for {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		m, err := messages.Next()
		if errors.Is(err, jetstream.ErrMsgIteratorClosed) {
			return nil
		}
		if err != nil {
			return err
		}

		running.Go(func() {
			defer func() { <-free }()
			if run(ctx, m, w) == nil {
				ended()
			}
		})
	}
}

// run runs one message, says meanwhile that it is worked on, and acknowledges it. What fails is
// given out again by the server.
func run(ctx context.Context, m jetstream.Msg, w lap.Worker) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go sayAlive(ctx, m)

	if err := w.Run(ctx, m.Headers().Get("Unit")); err != nil {
		return err
	}
	return m.DoubleAck(ctx)
}

func sayAlive(ctx context.Context, m jetstream.Msg) {
	for clock.Sleep(ctx, lease*3/10) == nil {
		_ = m.InProgress() // if it does not arrive, the message is given out again
	}
}

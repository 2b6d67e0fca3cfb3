package figures

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/server"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/step"
)

// A system is the whole service in this process, as `coditect mapreduce run` has
// it: store, orchestrator, and a client over a connection in memory.
type system struct {
	*client.Client
	jobs     *jobs.Jobs
	observer *observer
	server   *server.Server

	orchestrator *orchestrator.Orchestrator

	stop    context.CancelFunc
	running sync.WaitGroup // orchestrator and workers
	serving sync.WaitGroup // listeners
	workers []context.CancelFunc

	mu     sync.Mutex // guards the variable below
	failed []error    // of what ran
}

var nodes atomic.Int64

// openSystem starts a system in a place, which is its own.
func openSystem(p storePlace) (*system, error) {
	kv, err := p.openStore()
	if err != nil {
		return nil, err
	}
	s, err := openOn(kv, p, orchestrator.Config{Exclusive: p.cluster == ""})
	if err != nil {
		return nil, errors.Join(err, kv.Close())
	}
	return s, nil
}

// openOn starts a system on a store that it closes in the end.
func openOn(kv store.Store, p storePlace, c orchestrator.Config) (*system, error) {
	s := &system{observer: newObserver(kv, p.keySpace())}
	return s, s.startParts(p, c)
}

// A unclosedStore store is not closed by those who use it.
type unclosedStore struct{ store.Store }

// Close does nothing.
func (unclosedStore) Close() error { return nil }

func (s *system) startParts(p storePlace, c orchestrator.Config) error {
	node := mapreduce.NodeID(fmt.Sprintf("node-%d-%d", os.Getpid(), nodes.Add(1)))
	s.jobs = jobs.New(store.NewDB(s.observer, store.Config{}), p.keySpace(), node, time.Now)
	c.Adopt, c.Lanes, c.Without = true, p.lanes, p.without
	o, err := orchestrator.New(s.jobs, c)
	if err != nil {
		return err
	}
	s.orchestrator = o
	if s.server, err = server.New(o, o, server.Config{}); err != nil {
		return err
	}
	if s.Client, err = client.NewInProcess(s.server, client.Config{}); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	ended := make(chan struct{})
	s.running.Go(func() {
		defer close(ended)
		s.recordFailure(o.Run(ctx))
	})
	select {
	case <-o.Started():
		return nil
	case <-ended:
		return errors.Join(s.failed...)
	}
}

func (s *system) recordFailure(err error) {
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = append(s.failed, err)
}

// serveOn takes connections from a listener until the system is closed.
func (s *system) serveOn(l net.Listener) {
	s.serving.Go(func() { s.recordFailure(s.server.Serve(l)) })
}

// prefetchFor is what a worker in the orchestrator's process holds beside so many
// slots.
func prefetchFor(slots int) int { return min(max(4*slots, 16), 256) }

// provider is the name under which units run: one whose units make no calls, so
// that what the fleet may call at once bounds nothing here.
const provider = "rules"

// runWorker runs units in this process until the returned function is called.
func (s *system) runWorker(a agent.Agent, slots, prefetch int) (stop func(), err error) {
	return s.runWorkerOver(func(ctx context.Context) (worker.Stream, error) { return s.Connect(ctx) }, a, slots, prefetch)
}

// runWorkerOver does the same over streams that connect begins.
func (s *system) runWorkerOver(connect worker.Connect, a agent.Agent, slots, prefetch int) (stop func(), err error) {
	w, err := worker.New(worker.Config{
		Steps: step.Serving(provider, a), Slots: slots, Prefetch: prefetch, Embedded: true,
		DrainTimeout: time.Second, Connect: []worker.Connect{connect},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	s.running.Go(func() {
		defer close(done)
		s.recordFailure(w.Run(ctx))
	})
	stop = func() {
		cancel()
		<-done
	}
	s.workers = append(s.workers, stop)
	return stop, nil
}

// close ends the system, workers first.
func (s *system) close() error {
	for _, stop := range s.workers {
		stop()
	}
	s.stop()
	s.running.Wait()
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	s.server.Shutdown(ctx)
	s.serving.Wait()
	s.recordFailure(s.orchestrator.Retire(ctx))
	s.recordFailure(s.Client.Close())
	s.recordFailure(s.observer.Close())
	return errors.Join(s.failed...)
}

// withSystem measures something on a new system, which it removes afterwards.
func (l *Lab) withSystem(measure func(s *system) error) error {
	return l.inPlace(func(p storePlace) error {
		s, err := openSystem(p)
		if err != nil {
			return err
		}
		return errors.Join(measure(s), s.close())
	})
}

// noopSpec is a job whose outputs are reduced ten at a time.
func noopSpec(slots int) mapreduce.JobSpec {
	return mapreduce.JobSpec{
		Provider: provider, Schema: []byte(`{"type":"object"}`), Parallelism: slots, ReduceContextLimit: 1,
	}
}

// letters are what noise is spelled with where it has to be text.
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 ."

// noiseDocuments yields n small documents, all different, which no compression makes
// much less.
func noiseDocuments(n, size int) iter.Seq2[*mapreduce.Document, error] {
	return func(yield func(*mapreduce.Document, error) bool) {
		for i := range n {
			text := randomBytes(int64(i), size)
			for k, b := range text {
				text[k] = letters[b%64]
			}
			d := &mapreduce.Document{ID: mapreduce.DocumentID(bareUnit(i)), Content: text}
			if !yield(d, nil) {
				return
			}
		}
	}
}

func (s *system) submitDocuments(ctx context.Context, spec mapreduce.JobSpec, n int) (mapreduce.JobID, error) {
	job, err := s.SubmitJob(ctx, spec, noiseDocuments(n, textBytes))
	if err != nil {
		return "", err
	}
	return job.ID, nil
}

// What a unit reads and writes, unless a figure says otherwise.
const (
	textBytes   = 256
	outputBytes = 2048
)

// awaitComplete waits until a job is complete.
func (s *system) awaitComplete(ctx context.Context, id mapreduce.JobID) error {
	return s.awaitJob(ctx, id, func(*mapreduce.Job) bool { return false })
}

var errSeen = errors.New("seen")

// awaitJob watches a job until it is as wanted, or complete.
func (s *system) awaitJob(ctx context.Context, id mapreduce.JobID, wanted func(*mapreduce.Job) bool) error {
	var last *mapreduce.Job
	err := s.WatchJob(ctx, id, func(j *mapreduce.Job) error {
		if last = j; wanted(j) {
			return errSeen
		}
		return nil
	})
	switch {
	case errors.Is(err, errSeen):
		return nil
	case err != nil:
		return err
	case last.State != mapreduce.JobComplete || last.FailedUnits > 0:
		return fmt.Errorf("job %s ended %v with %d failed units: %s", id, last.State, last.FailedUnits, last.Error)
	}
	return nil
}

// A bencher takes as long over a unit as run does, and returns as many bytes as
// it is told to, which no compression makes less.
type bencher struct {
	output int
	run    func(ctx context.Context, task *agent.Task) error
}

// Run implements agent.Agent.
func (b *bencher) Run(ctx context.Context, task *agent.Task, _ agent.Calls) (*agent.Result, error) {
	if b.run != nil {
		if err := b.run(ctx, task); err != nil {
			return nil, err
		}
	}
	out := outputOf(randomBytes(task.Index, b.output))
	return &agent.Result{Output: out, Size: int64(b.output), Confidence: 1}, nil
}

// reasonField is the number of the field of an encoded output that says why it has
// no records.
const reasonField = 4

// outputOf makes noise an encoded output of as many bytes, or about as many: one
// without records, that says why.
func outputOf(noise []byte) []byte {
	head := protowire.AppendVarint(protowire.AppendTag(nil, reasonField, protowire.BytesType), uint64(max(0, len(noise)-3)))
	text := noise[:max(0, len(noise)-3)]
	for i, b := range text {
		text[i] = letters[b%64]
	}
	return append(head, text...)
}

// randomBytes returns n bytes, the same for the same seed.
func randomBytes(seed int64, n int) []byte {
	out := make([]byte, 0, n+8)
	for r := newRandom(uint64(seed)); len(out) < n; {
		out = binary.LittleEndian.AppendUint64(out, r.Uint64())
	}
	return out[:n]
}

// documentIndex returns which of the job's documents a map unit works on.
func documentIndex(task *agent.Task) int { return int(task.Index >> 20) }

func isMap(task *agent.Task) bool { return task.Kind == mapreduce.KindMap }

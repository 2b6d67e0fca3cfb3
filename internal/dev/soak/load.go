package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// slowest is how long a job may take, killed workers and batches included.
const slowest = 10 * time.Minute

// atOnce bounds the jobs that are under way: on a busy machine fewer are submitted, and none wait
// for all that came before them.
const atOnce = 10

// schema is what jobs look for.
const schema = `{"title":"package","type":"array","items":{"type":"object","properties":{
"name":{"type":"string","x-coditect":{"labels":["Package"]}},
"version":{"type":"string","x-coditect":{"labels":["Version"]}},
"size":{"type":"number","x-coditect":{"labels":["Size"]}}}}}`

// A kind is a kind of job.
type kind struct {
	name      string
	spec      *pb.JobSpec
	documents func(r *rand.Rand) []*pb.DocumentPiece
}

// kinds returns jobs of every kind that runs without the world outside.
func kinds() []kind {
	scripted := map[string]string{"script.latency": "lognormal:20ms,1", "script.calls": "2", "script.tokens_in": "900", "script.tokens_out": "50", "script.fail_rate": "0.1"}
	agents := map[string]string{"script.latency": "5ms", "script.pages": "2", "script.page_bytes": "60000"}
	all := []kind{
		{"rules", &pb.JobSpec{Provider: "rules"}, func(r *rand.Rand) []*pb.DocumentPiece { return texts(r, 40, 3) }},
		{"rules, kept a while", &pb.JobSpec{Provider: "rules", Keep: durationpb.New(2 * time.Minute)}, func(r *rand.Rand) []*pb.DocumentPiece { return texts(r, 10, 3) }},
		{
			"tree of a scripted model", &pb.JobSpec{Provider: "scripted", Vars: scripted, MaxAttempts: 20, ReduceBatchSize: 3, ReduceContextTokens: 100, BudgetTokens: 100_000_000, Capture: pb.Capture_CAPTURE_FULL},
			func(r *rand.Rand) []*pb.DocumentPiece { return texts(r, 12, 20) },
		},
		{"scripted agents with evidence", &pb.JobSpec{Provider: "scripted", Vars: agents, MaxAttempts: 20}, func(r *rand.Rand) []*pb.DocumentPiece { return texts(r, 4, 1) }},
		{"pages of the web", &pb.JobSpec{Provider: "rules"}, pages},
		{"a long text", &pb.JobSpec{Provider: "rules", MaxUnitTokens: 20_000}, func(r *rand.Rand) []*pb.DocumentPiece { return texts(r, 1, 6_000) }},
		{"batches", &pb.JobSpec{Provider: "anthropic", Model: "claude-haiku-4-5", Vars: map[string]string{"tier": "batch"}}, func(r *rand.Rand) []*pb.DocumentPiece { return texts(r, 6, 2) }},
	}

	for _, k := range all {
		k.spec.Schema, k.spec.TenantId = schema, "soak"
	}
	return all
}

// texts returns documents of so many packages each.
func texts(r *rand.Rand, documents, packages int) (all []*pb.DocumentPiece) {
	for d := range documents {
		var b strings.Builder
		for i := range packages {
			fmt.Fprintf(&b, "Package: pkg-%d-%d\nVersion: %d.%d\nSize: %d\n\n", d, i, i, d, r.IntN(1_000_000))
		}
		all = append(all, &pb.DocumentPiece{DocumentId: fmt.Sprintf("%03d.txt", d), Content: []byte(b.String())})
	}
	return all
}

func pages(r *rand.Rand) (all []*pb.DocumentPiece) {
	for d := range 6 {
		text := strings.Repeat(fmt.Sprintf("<p>Package: page-%d</p><p>Version: %d</p>", d, r.IntN(1000)), 20)
		all = append(all, &pb.DocumentPiece{DocumentId: fmt.Sprintf("page%d.html", d), MediaType: "text/html", Content: []byte("<html><body>" + text + "</body></html>")})
	}
	return all
}

// A load submits jobs, and does with them what clients do.
type load struct {
	config config
	jobs   pb.MapReduceServiceClient
	kinds  []kind

	mu    sync.Mutex     // guards the variables below
	rand  *rand.Rand     //
	ended []string       // jobs that may be deleted, the oldest first
	count map[string]int // what was done, by its name
	wrong []error        // what went wrong, the first hundred
}

func newLoad(h *house, c config) *load {
	return &load{config: c, jobs: pb.NewMapReduceServiceClient(h.conn), kinds: kinds(), rand: rand.New(rand.NewPCG(c.seed, 0)), count: make(map[string]int)} //nolint:gosec // the same jobs each time
}

// run submits jobs until working ends, and waits for those under way, unless life ends before them.
func (l *load) run(life, working context.Context) {
	var under sync.WaitGroup
	defer under.Wait()
	next := time.NewTicker(l.config.jobs)
	defer next.Stop()
	room := make(chan struct{}, atOnce)

	for n := 0; ; n++ {
		select {
		case room <- struct{}{}:
		case <-working.Done():
			return
		}

		k := l.kinds[n%len(l.kinds)]
		under.Go(func() {
			defer func() { <-room }()
			// A job that has begun is followed to its end, so that the last table has none under way.
			ctx, stop := context.WithTimeout(life, slowest)
			defer stop()
			if err := l.live(ctx, k); err != nil && life.Err() == nil {
				l.note(fmt.Errorf("%s: %w", k.name, err))
			}
		})

		select {
		case <-next.C:
		case <-working.Done():
			return
		}
	}
}

// live submits a job, follows it to its end, reads it, and deletes an older one.
func (l *load) live(ctx context.Context, k kind) error {
	l.mu.Lock()
	cancels, documents := l.rand.IntN(8) == 0, k.documents(rand.New(rand.NewPCG(l.rand.Uint64(), 1))) //nolint:gosec // the same documents each time
	l.mu.Unlock()

	id, err := l.submit(ctx, k.spec, documents)
	if err != nil {
		return err
	}
	l.did("submitted", 1)

	if cancels {
		if _, err := l.jobs.CancelJob(ctx, &pb.CancelJobRequest{JobId: id}); err != nil {
			return fmt.Errorf("cancel job %s: %w", id, err)
		}
		l.did("cancelled", 1)
	}

	job, err := l.follow(ctx, id)
	if err != nil {
		return err
	}
	switch {
	case job.GetState() == pb.JobState_JOB_STATE_COMPLETE:
		if err := l.read(ctx, id); err != nil {
			return err
		}
	case !cancels || job.GetState() != pb.JobState_JOB_STATE_CANCELLED:
		return fmt.Errorf("job %s is %v: %s", id, job.GetState(), job.GetError())
	}
	if k.spec.Keep != nil {
		return nil // the service deletes it
	}
	return l.deleteOld(ctx, id)
}

func (l *load) submit(ctx context.Context, spec *pb.JobSpec, documents []*pb.DocumentPiece) (string, error) {
	stream, err := l.jobs.SubmitJob(ctx)
	if err != nil {
		return "", err
	}

	// Send says io.EOF where CloseAndRecv says why.
	if err := stream.Send(&pb.SubmitJobRequest{Spec: spec, Documents: documents}); err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	reply, err := stream.CloseAndRecv()
	return reply.GetJob().GetJobId(), err
}

// follow watches a job until it has ended.
func (l *load) follow(ctx context.Context, id string) (*pb.Job, error) {
	stream, err := l.jobs.WatchJob(ctx, &pb.WatchJobRequest{JobId: id})
	if err != nil {
		return nil, err
	}
	for {
		m, err := stream.Recv()
		if err != nil {
			return nil, fmt.Errorf("job %s has not ended: %w", id, err)
		}
		switch s := m.GetJob().GetState(); s {
		case pb.JobState_JOB_STATE_COMPLETE, pb.JobState_JOB_STATE_FAILED, pb.JobState_JOB_STATE_CANCELLED, pb.JobState_JOB_STATE_PAUSED:
			return m.GetJob(), nil
		}
	}
}

// read reads what clients read of a job.
func (l *load) read(ctx context.Context, id string) error {
	result, err := l.jobs.GetResult(ctx, &pb.GetResultRequest{JobId: id})
	for err == nil {
		_, err = result.Recv()
	}
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("result of job %s: %w", id, err)
	}

	if _, err := l.jobs.ListUnits(ctx, &pb.ListUnitsRequest{JobId: id, Outputs: true}); err != nil {
		return fmt.Errorf("units of job %s: %w", id, err)
	}
	if _, err := l.jobs.ListEvents(ctx, &pb.ListEventsRequest{JobId: id, Verify: true}); err != nil {
		return fmt.Errorf("events of job %s: %w", id, err)
	}
	if _, err := l.jobs.ListJobs(ctx, &pb.ListJobsRequest{TenantId: "soak"}); err != nil {
		return fmt.Errorf("list: %w", err)
	}
	l.did("read", 1)
	return nil
}

// deleteOld deletes the oldest jobs where there are more than are kept.
func (l *load) deleteOld(ctx context.Context, ended string) error {
	l.mu.Lock()
	l.ended = append(l.ended, ended)
	old := l.ended[:max(0, len(l.ended)-l.config.keep)]
	l.ended = l.ended[len(old):]
	l.mu.Unlock()

	for _, id := range old {
		if _, err := l.jobs.DeleteJob(ctx, &pb.DeleteJobRequest{JobId: id}); err != nil {
			return fmt.Errorf("delete job %s: %w", id, err)
		}
		l.did("deleted", 1)
	}
	return nil
}

func (l *load) did(what string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count[what] += n
}

// note keeps what went wrong.
func (l *load) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count["went wrong"]++; len(l.wrong) < 100 {
		l.wrong = append(l.wrong, err)
	}
}

// seen returns what was done, and what went wrong.
func (l *load) seen() (string, []error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for _, what := range []string{"submitted", "read", "cancelled", "deleted", "went wrong"} {
		all = append(all, fmt.Sprintf("%d %s", l.count[what], what))
	}
	return strings.Join(all, ", "), l.wrong
}

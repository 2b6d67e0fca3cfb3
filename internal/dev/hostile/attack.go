package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// A Config says what is attacked and for how long. All of it must be set but the last two.
type Config struct {
	Program string        // the program whose server is attacked
	Time    time.Duration // that the attacks last
	Settle  time.Duration // that the server has to give memory back
	Seed    uint64        // of what is drawn at random
	Only    string        // the attacks whose names match this expression; "" is all
	Untimed bool          // how quick the server was is printed, and no failure: other things run here
}

// The limits that a server has to keep while it is attacked.
const (
	mostMemory = 1 << 30                // bytes, at any time
	restMemory = 300 << 20              // bytes, a while after the attacks
	mostDelay  = 200 * time.Millisecond // of the honest tenant's GetJob, of 99 in 100
)

// An attacker has what the attacks share.
type attacker struct {
	config  Config
	address string
	report  *Report
	honest  *honest

	mu   sync.Mutex // guards the variable below
	rand *rand.Rand
}

// A campaign is one kind of attack. It goes on until ctx ends, or has no more to do.
type campaign struct {
	name  string
	flood bool // it begins after a third of the time, as it leaves the others little to send
	run   func(context.Context, *attacker) error
}

var campaigns = []campaign{
	{"lies of a client", false, clientLies},
	{"lies of a worker", false, workerLies},
	{"calls in the wrong order", false, wrongOrders},
	{"schemas", false, schemas},
	{"documents", false, documents},
	{"half-open submissions", true, halfOpenSubmissions},
	{"idle connections", true, idleConnections},
	{"headers that never end", true, endlessHeaders},
	{"frames", true, frameFlood},
	{"streams", true, streamFlood},
	{"replies that are not read", true, unreadReplies},
	{"workers that do not read", true, deafWorkers},
	{"names that are made up", true, inventedNames},
}

// Run starts a server, attacks it, and says what came of it. The error says what the
// server failed at, or that something else did.
func Run(ctx context.Context, c Config) (report *Report, err error) {
	only, err := regexp.Compile(c.Only)
	if err != nil {
		return nil, err
	}

	dir, err := os.MkdirTemp("", "hostile-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	s, err := startServer(ctx, c.Program, dir)
	if err != nil {
		return nil, err
	}
	defer s.kill()

	a := &attacker{config: c, address: s.address, report: newReport(), rand: rand.New(rand.NewPCG(c.Seed, 0))}
	if a.honest, err = newHonest(ctx, a); err != nil {
		return nil, fmt.Errorf("before any attack: %w", err)
	}

	// The server and the tenant were started before, and keep their priority.
	if err := yieldToOthers(); err != nil {
		return nil, err
	}

	measuring, stop := context.WithCancel(ctx)
	defer stop()
	var watching sync.WaitGroup
	watching.Go(func() { s.sampleMemory(measuring, a.report) })

	a.runCampaigns(ctx, only)
	err = a.settle(ctx, s)
	stop()
	watching.Wait()

	return a.report, errors.Join(err, s.finish(ctx, a.report), a.report.verdict(!c.Untimed))
}

// runCampaigns attacks for as long as the configuration says, while the honest tenant
// works.
func (a *attacker) runCampaigns(ctx context.Context, only *regexp.Regexp) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer time.AfterFunc(a.config.Time, stop).Stop() // no deadline of any call

	var all sync.WaitGroup
	for _, c := range campaigns {
		if !only.MatchString(c.name) {
			continue
		}
		all.Go(func() {
			if c.flood && !pause(ctx, a.config.Time/3) {
				return
			}
			if err := c.run(ctx, a); err != nil && ctx.Err() == nil {
				a.report.addFailure(c.name + ": " + err.Error())
			}
		})
	}

	all.Wait()
}

// settle waits until the server has given memory back, or for as long as it may take,
// and has the honest tenant run a last job.
func (a *attacker) settle(ctx context.Context, s *server) error {
	ctx, stop := context.WithTimeout(ctx, a.config.Settle+time.Minute)
	defer stop()

	if err := a.honest.finish(ctx); err != nil {
		a.report.addFailure("the honest tenant, after the attacks: " + err.Error())
	}

	deadline := time.NewTimer(a.config.Settle)
	defer deadline.Stop()
	look := time.NewTicker(time.Second)
	defer look.Stop()

	for {
		rest, err := s.memory()
		if err != nil {
			return err
		}
		a.report.setRest(rest)
		if rest < restMemory {
			return nil
		}

		select {
		case <-look.C:
		case <-deadline.C:
			return nil // the report says how much it is
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// dial returns a connection of its own to the server. It must be closed.
func (a *attacker) dial(options ...grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient(a.address, append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64 << 20)),
	}, options...)...)
}

// draw returns a number below n.
func (a *attacker) draw(n int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.rand.IntN(n)
}

const (
	victim   = "honest"  // the tenant that works
	villain  = "hostile" // the tenant that attacks
	vendor   = "openai"  // the provider of its jobs, for which the server has no key, so that they are its workers' alone
	labelled = `{"title": "order", "type": "object", "properties": {"order": {"type": "string", "x-coditect": {"labels": ["ORDER"]}}}}`
)

// submitJob submits a job whole.
func submitJob(ctx context.Context, conn grpc.ClientConnInterface, spec *pb.JobSpec, docs ...*pb.DocumentPiece) (*pb.Job, error) {
	stream, err := pb.NewMapReduceServiceClient(conn).SubmitJob(ctx)
	if err != nil {
		return nil, err
	}
	if err := stream.Send(&pb.SubmitJobRequest{Spec: spec, Documents: docs}); err != nil {
		_, err = stream.CloseAndRecv()
		return nil, err
	}

	reply, err := stream.CloseAndRecv()
	return reply.GetJob(), err
}

// pause waits, and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// courtesy is how much lower the priority of the attacker is than that of the server and
// the tenant: the processors it needs itself say nothing about those.
const courtesy = 5

// yieldToOthers lowers the priority of all threads of this process, and of those that
// they start.
func yieldToOthers() error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}

	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			return err
		}
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, id, courtesy); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

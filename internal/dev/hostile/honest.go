package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// A tenant runs the same job over and over, and compares the results with that of
// a time without attacks. It is a process of its own, so that what is measured is
// how soon the server answers, and not how busy the attacker is.
type tenant struct {
	conn *grpc.ClientConn
	out  io.Writer
	want [sha256.Size]byte

	mu  sync.Mutex // guards the variable below, and writing to out
	job string     // the latest
}

// The words with which a tenant tells the attacker what has come of its calls. Each begins
// a line, the rest of which says more.
const (
	sayReady   = "ready"   // the first result is there
	sayJob     = "job"     // the latest job
	sayDelay   = "delay"   // nanoseconds that GetJob took
	sayEqual   = "equal"   // a job whose result is equal to the first
	sayUnequal = "unequal" // a job whose result is not
	sayFailure = "failure" // what did not go as it should
	sayLast    = "last"    // the job after the attacks has ended
)

// RunTenant is an honest tenant of the server at an address: until in has a line it works,
// then it runs one job more.
func RunTenant(ctx context.Context, address string, in io.Reader, out io.Writer) error {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()

	t := &tenant{conn: conn, out: out}
	if t.want, err = t.result(ctx); err != nil {
		return err
	}
	t.say(sayReady, "")

	working, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = bufio.NewReader(in).ReadString('\n') // its end says the same
		stop()
	}()

	var all sync.WaitGroup
	all.Go(func() { t.work(working) })
	all.Go(func() { t.poll(working) })
	all.Wait()

	t.runJob(ctx)
	t.say(sayLast, "")
	return nil
}

func (t *tenant) say(word, more string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, "%s %s\n", word, strings.ReplaceAll(more, "\n", " "))
}

// work runs jobs until ctx ends.
func (t *tenant) work(ctx context.Context) {
	for ctx.Err() == nil {
		t.runJob(ctx)
		pause(ctx, 200*time.Millisecond)
	}
}

// runJob runs a job, and says whether its result is equal to the first.
func (t *tenant) runJob(ctx context.Context) {
	got, err := t.result(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		t.say(sayFailure, err.Error())
		pause(ctx, time.Second)
	case got != t.want:
		t.say(sayUnequal, t.jobID())
	default:
		t.say(sayEqual, t.jobID())
	}
}

// poll asks for the latest job, ten times a second, and says how long that takes.
func (t *tenant) poll(ctx context.Context) {
	jobs := pb.NewMapReduceServiceClient(t.conn)
	for pause(ctx, 100*time.Millisecond) {
		begun := time.Now()
		_, err := jobs.GetJob(ctx, &pb.GetJobRequest{JobId: t.jobID()})
		if ctx.Err() != nil {
			return
		}

		t.say(sayDelay, strconv.FormatInt(int64(time.Since(begun)), 10))
		if err != nil {
			t.say(sayFailure, "GetJob: "+err.Error())
		}
	}
}

// jobID returns the latest job.
func (t *tenant) jobID() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.job
}

// An honest is the tenant's process, as the attacker sees it.
type honest struct {
	report  *Report
	command *exec.Cmd
	in      io.WriteCloser
	ready   chan struct{} // closed when it has its first result
	last    chan struct{} // closed when it has run its last job
	ended   chan struct{} // closed when the process has ended

	mu  sync.Mutex // guards the variable below
	job string     // the latest
}

// newHonest starts a tenant, and waits until it has run its job once.
func newHonest(ctx context.Context, a *attacker) (*honest, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}

	h := &honest{
		report: a.report, command: exec.CommandContext(ctx, self, "-tenant", a.address),
		ready: make(chan struct{}), last: make(chan struct{}), ended: make(chan struct{}),
	}

	h.command.Stderr = os.Stderr
	if h.in, err = h.command.StdinPipe(); err != nil {
		return nil, err
	}

	out, err := h.command.StdoutPipe()
	if err != nil {
		return nil, err
	}

	if err := h.command.Start(); err != nil {
		return nil, err
	}

	go func() {
		defer close(h.ended)
		h.listen(out)
		_ = h.command.Wait() // the tenant has reported its failures
	}()

	select {
	case <-h.ready:
		return h, nil
	case <-h.ended:
		return nil, errors.New("the honest tenant has ended")
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// listen notes what the tenant says.
func (h *honest) listen(out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		word, more, _ := strings.Cut(lines.Text(), " ")

		switch word {
		case sayReady:
			close(h.ready)
		case sayLast:
			close(h.last)
		case sayJob:
			h.mu.Lock()
			h.job = more
			h.mu.Unlock()
		case sayDelay:
			n, _ := strconv.ParseInt(more, 10, 64) // as say wrote it
			h.report.noteDelay(time.Duration(n))
		case sayFailure:
			h.report.addFailure("the honest tenant: " + more)
		default:
			h.report.addResult(word == sayEqual, more)
		}
	}
}

// finish has the tenant run its last job.
func (h *honest) finish(ctx context.Context) error {
	if err := h.in.Close(); err != nil {
		return err
	}

	select {
	case <-h.last:
		return nil
	case <-h.ended:
		return errors.New("the honest tenant has ended")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// jobID returns the latest job of the tenant.
func (h *honest) jobID() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.job
}

// refusals is how often in a row the honest tenant tries again what was refused for want
// of room, as the refusal asks.
const refusals = 20

// result runs a job and returns the hash of its result.
func (t *tenant) result(ctx context.Context) (sum [sha256.Size]byte, err error) {
	spec := &pb.JobSpec{TenantId: victim, Schema: labelled, Provider: "rules"}
	var docs []*pb.DocumentPiece
	for i := range 40 {
		docs = append(docs, &pb.DocumentPiece{DocumentId: fmt.Sprintf("order%02d.txt", i), Content: fmt.Appendf(nil, "ORDER: K-%d\n", i)})
	}

	var job *pb.Job
	for range refusals {
		job, err = submitJob(ctx, t.conn, spec, docs...)
		if status.Code(err) != codes.ResourceExhausted || !pause(ctx, time.Second) {
			break
		}
	}
	if err != nil {
		return sum, fmt.Errorf("SubmitJob: %w", err)
	}

	// The attacker learns of the job, and names it in its lies.
	t.mu.Lock()
	t.job = job.GetJobId()
	t.mu.Unlock()
	t.say(sayJob, job.GetJobId())

	jobs := pb.NewMapReduceServiceClient(t.conn)
	for !ended(job) {
		if !pause(ctx, 20*time.Millisecond) {
			return sum, context.Cause(ctx)
		}
		if job, err = jobs.GetJob(ctx, &pb.GetJobRequest{JobId: job.GetJobId()}); err != nil {
			return sum, fmt.Errorf("GetJob: %w", err)
		}
	}

	if job.GetState() != pb.JobState_JOB_STATE_COMPLETE {
		return sum, fmt.Errorf("job %s is %v: %s", job.GetJobId(), job.GetState(), job.GetError())
	}
	return t.hashResult(ctx, job.GetJobId())
}

func ended(job *pb.Job) bool {
	switch job.GetState() {
	case pb.JobState_JOB_STATE_COMPLETE, pb.JobState_JOB_STATE_FAILED, pb.JobState_JOB_STATE_CANCELLED, pb.JobState_JOB_STATE_PAUSED:
		return true
	}
	return false
}

// hashResult hashes all of a result but what tells one job from another.
func (t *tenant) hashResult(ctx context.Context, id string) (sum [sha256.Size]byte, err error) {
	stream, err := pb.NewMapReduceServiceClient(t.conn).GetResult(ctx, &pb.GetResultRequest{JobId: id})
	if err != nil {
		return sum, err
	}

	hash := sha256.New()
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return [sha256.Size]byte(hash.Sum(nil)), nil
		}
		if err != nil {
			return sum, fmt.Errorf("GetResult: %w", err)
		}

		for _, part := range m.GetParts() {
			// Only records and citations are equal from job to job.
			if part.GetRecord() == "" && part.GetCitation() == nil {
				continue
			}

			data, err := proto.MarshalOptions{Deterministic: true}.Marshal(part)
			if err != nil {
				return sum, err
			}
			hash.Write(data)
		}
	}
}

package embedded_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/coditect/mapreduce/api/auth"
	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/cmd/coditect/internal/embedded"
	"github.com/coditect/mapreduce/cmd/coditect/internal/runners"
	"github.com/coditect/mapreduce/cmd/coditect/internal/script"
	"github.com/coditect/mapreduce/proto/externalscaler"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/step"
)

// A town is a server that its callers reach over TCP, each with a token.
type town struct {
	t       *testing.T
	node    *embedded.Node
	address string
	secrets map[string]string
	steps   *step.Registry
	policy  string // file
	guard   *auth.Guard

	http    string // address of HTTP, once it is served
	browser *http.Client
	log     logbook
	metrics *sdkmetric.ManualReader
}

const townPolicy = `
principals:
- {match: "token:alice", tenant: a, roles: [submitter, operator]}
- {match: "token:bob", tenant: b, roles: [submitter, operator]}
- {match: "token:worker", roles: [worker]}
- {match: "token:worker-of-a", tenant: a, roles: [worker]}
`

func newTown(t *testing.T, policy string) *town {
	t.Helper()
	dir := t.TempDir()
	w := &town{t: t, secrets: make(map[string]string), policy: filepath.Join(dir, "policy.yaml")}
	var lines strings.Builder
	for _, name := range []string{"alice", "bob", "worker", "worker-of-a"} {
		secret, line, err := auth.NewToken(name, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		w.secrets[name] = secret
		lines.WriteString(line + "\n")
	}
	write(t, w.policy, policy)
	write(t, filepath.Join(dir, "tokens"), lines.String())
	known, err := auth.New(auth.Config{Policy: w.policy, Tokens: filepath.Join(dir, "tokens")})
	if err != nil {
		t.Fatal(err)
	}
	w.guard = auth.NewGuard(known)
	r := &runners.Runners{Getenv: func(string) string { return "" }, Extra: script.Extra()}
	if w.steps, err = r.StepRegistry(); err != nil {
		t.Fatal(err)
	}
	w.metrics = sdkmetric.NewManualReader()
	w.node, err = embedded.Open(embedded.Config{
		Dir: filepath.Join(dir, "data"), Steps: w.steps, Adopt: true, Drain: 10 * time.Millisecond, Guard: w.guard, Rules: w.guard.RuleOf,
		HTTP: true, Logger: w.log.logger(), Meter: sdkmetric.NewMeterProvider(sdkmetric.WithReader(w.metrics)).Meter("coditect"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.node.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := w.node.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.address = l.Addr().String()
	w.node.Serve(l)
	return w
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A secret is a bearer token.
type secret string

func (s secret) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(s)}, nil
}

func (secret) RequireTransportSecurity() bool { return false }

func (w *town) as(name string) *client.Client {
	w.t.Helper()
	c, err := client.Dial(w.address, client.Config{Options: []grpc.DialOption{grpc.WithPerRPCCredentials(secret(w.secrets[name]))}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close() })
	return c
}

// work runs a worker with a token until the test ends.
func (w *town) work(name string, slots int) {
	w.t.Helper()
	c := w.as(name)
	one, err := worker.New(worker.Config{
		Steps: w.steps, Slots: slots, Prefetch: 1, Addresses: []string{w.address}, DrainTimeout: 10 * time.Millisecond,
		Connect: []worker.Connect{func(ctx context.Context) (worker.Stream, error) { return c.Connect(ctx) }},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var working sync.WaitGroup
	working.Go(func() { _ = one.Run(ctx) })
	w.t.Cleanup(func() { stop(); working.Wait() })
}

// documents yields documents by their names.
func documents(all ...*mapreduce.Document) func(func(*mapreduce.Document, error) bool) {
	return func(yield func(*mapreduce.Document, error) bool) {
		for _, d := range all {
			if !yield(d, nil) {
				return
			}
		}
	}
}

func (w *town) submit(c *client.Client, s mapreduce.JobSpec, all ...*mapreduce.Document) *mapreduce.Job {
	w.t.Helper()
	job, err := c.SubmitJob(w.t.Context(), s, documents(all...))
	if err != nil {
		w.t.Fatal(err)
	}
	return job
}

const personSchema = `{"type":"object","properties":{"name":{"type":"string"},"email":{"type":"string","format":"email"}}}`

// byRules is a job that asks no model.
func byRules() mapreduce.JobSpec { return mapreduce.JobSpec{Schema: []byte(personSchema)} }

func doc(name, text string) *mapreduce.Document {
	return &mapreduce.Document{ID: mapreduce.DocumentID(name), Content: []byte(text)}
}

// A worker that a test plays by hand.
type puppet struct {
	t       *testing.T
	stream  client.WorkerStream
	session mapreduce.SessionID
	given   map[mapreduce.JobID][]protocol.Assignment
	drop    []protocol.Held
	end     context.CancelFunc
}

// puppet greets the server, as a session that holds something.
func (w *town) puppet(name string, session mapreduce.SessionID, holding ...protocol.Held) *puppet {
	w.t.Helper()
	ctx, stop := context.WithCancel(w.t.Context())
	stream, err := w.as(name).Connect(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(stop)
	p := &puppet{t: w.t, stream: stream, session: session, given: make(map[mapreduce.JobID][]protocol.Assignment), end: stop}
	p.send(&protocol.FromWorker{Hello: &protocol.Hello{Session: session, Slots: 4, Offer: mapreduce.Offer{Providers: w.steps.Names()}, Holding: holding}})
	p.until(func(m *protocol.ToWorker) bool {
		if m.Welcome == nil {
			return false
		}
		p.drop = m.Welcome.Drop
		return true
	})
	return p
}

func (p *puppet) send(m *protocol.FromWorker) {
	p.t.Helper()
	if err := p.stream.Send(m); err != nil {
		p.t.Fatal(err)
	}
}

// until reads what the server says until something is there.
func (p *puppet) until(there func(*protocol.ToWorker) bool) {
	p.t.Helper()
	for {
		m, err := p.stream.Recv()
		if err != nil {
			p.t.Fatal(err)
		}
		for _, a := range m.Assignments {
			p.given[a.Job] = append(p.given[a.Job], a)
		}
		if there(m) {
			return
		}
	}
}

// unit waits for a unit of one of some jobs.
func (p *puppet) unit(ids ...mapreduce.JobID) protocol.Held {
	p.t.Helper()
	for {
		for _, id := range ids {
			if len(p.given[id]) > 0 {
				a := p.given[id][0]
				return protocol.Held{Job: id, Unit: a.Unit, Attempt: a.Attempt}
			}
		}
		p.until(func(*protocol.ToWorker) bool { return true })
	}
}

// leave ends the stream and waits until the server has ended it too: until then the session
// belongs to the principal of this stream.
func (p *puppet) leave() {
	p.t.Helper()
	if err := p.stream.CloseSend(); err != nil {
		p.t.Fatal(err)
	}
	for {
		if _, err := p.stream.Recv(); err != nil {
			return
		}
	}
}

// A worker that is bound to a tenant gets units of that tenant alone; what it holds of
// others when it is bound is taken from it, and what it reports of them changes nothing.
func TestWorkerOfATenant(t *testing.T) {
	w := newTown(t, townPolicy)
	alice, bob := w.as("alice"), w.as("bob")
	ofB := w.submit(bob, byRules(), doc("b1", "Name: Bob\n"), doc("b2", "Name: Bert\n"))
	free := w.puppet("worker", "session-of-a-worker")
	held := free.unit(ofB.ID)
	free.leave()
	bound := w.puppet("worker-of-a", "session-of-a-worker", held)
	if len(bound.drop) != 1 || bound.drop[0].Unit != held.Unit {
		t.Errorf("of %v it drops %v", held, bound.drop)
	}
	bound.send(&protocol.FromWorker{Reports: []protocol.Report{{
		Job: held.Job, Unit: held.Unit, Attempt: held.Attempt, Outcome: protocol.Errored, Class: protocol.PermanentJob, Errors: []string{"made up"},
	}}})
	bound.until(func(m *protocol.ToWorker) bool {
		for _, v := range m.Verdicts {
			if v.Verdict != protocol.Gone {
				t.Errorf("the report is %v", v.Verdict)
			}
		}
		return len(m.Verdicts) > 0
	})
	_, err := bound.stream.PutBlob(t.Context(), &protocol.BlobRequest{Held: held, Session: "session-of-a-worker", Blob: protocol.Blob{Kind: protocol.BlobJournal, Length: 1}},
		func() ([]byte, error) { return nil, io.EOF })
	if errs.KindOf(err) != errs.Precondition {
		t.Errorf("it puts a journal of a unit of another tenant: %v", err)
	}
	ofA := w.submit(alice, byRules(), doc("a1", "Name: Ann\n"), doc("a2", "Name: Abe\n"))
	bound.unit(ofA.ID)
	bound.end()
	w.work("worker-of-a", 2)
	if job := ended(t, alice, ofA.ID); job.State != mapreduce.JobComplete {
		t.Errorf("the job of a is %v: %s", job.State, job.Error)
	}
	job, err := bob.GetJob(t.Context(), ofB.ID)
	if err != nil || job.State.Ended() || job.RunningUnits+job.CompletedUnits+job.FailedUnits > 0 {
		t.Errorf("the job of b, whom no worker serves, is %v: %d running, %d complete, %d failed (%v)", job.State, job.RunningUnits, job.CompletedUnits, job.FailedUnits, err)
	}
	w.work("worker", 2)
	if job := ended(t, bob, ofB.ID); job.State != mapreduce.JobComplete {
		t.Errorf("the job of b is %v: %s", job.State, job.Error)
	}
}

// canary is in everything of b: names, documents, ids, labels, values and errors.
const canary = "Kanarienvogel"

// A cage is all that a tenant has read, in any spelling.
type cage struct {
	mu   sync.Mutex // guards the variable below
	seen map[string][]byte
}

// add notes what was read by a method.
func (c *cage) add(what string, values ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range values {
		if err, ok := v.(error); ok {
			s, _ := status.FromError(err)
			details, _ := protojson.Marshal(s.Proto())
			c.seen[what] = append(fmt.Appendf(c.seen[what], "%v\n", err), details...)
			continue
		}
		data, err := json.Marshal(v)
		c.seen[what] = append(fmt.Appendf(append(c.seen[what], data...), "%+v %v", v, err), '\n')
	}
}

// find returns where any spelling of a text was read.
func (c *cage) find(text string) (where []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	spelt := [][]byte{[]byte(text), []byte(hex.EncodeToString([]byte(text)))}
	for shift := range 3 { // wherever it begins in what is encoded
		enc := base64.RawStdEncoding.EncodeToString(append(make([]byte, shift), text...))
		spelt = append(spelt, []byte(enc[4:len(enc)-4]))
	}
	for what, data := range c.seen {
		for _, s := range spelt {
			if bytes.Contains(bytes.ToLower(data), bytes.ToLower(s)) {
				where = append(where, what)
				break
			}
		}
	}
	return where
}

// canaryJob is a job of b that has the canary in all that a client can say.
func canaryJob(n int) (mapreduce.JobSpec, []*mapreduce.Document) {
	s := byRules()
	s.Schema = []byte(`{"type":"object","properties":{"name":{"type":"string","description":"` + canary + `"},"` + canary + `":{"type":"string"}}}`)
	s.RequestID = mapreduce.RequestID(fmt.Sprintf("request-%d", n)) // as a's
	s.Vars = map[string]string{canary: canary}
	s.Cache = true
	var docs []*mapreduce.Document
	for i := range 4 {
		d := doc(fmt.Sprintf("%s-%d-%d", canary, n, i), fmt.Sprintf("Name: %s %d\n%s: %s\n", canary, i, canary, canary))
		d.Metadata = map[string]string{canary: canary, "title": canary}
		docs = append(docs, d)
	}
	return s, append(docs, &mapreduce.Document{ID: canary + "-skipped", Skip: "it is a " + canary})
}

// Two tenants work on one fleet. Nothing of b is in anything that a can read, by any method.
func TestNothingOfATenantReachesAnother(t *testing.T) {
	w := newTown(t, townPolicy)
	w.serveHTTP()
	alice, bob := w.as("alice"), w.as("bob")
	const rounds = 3
	c := &cage{seen: make(map[string][]byte)}

	s, docs := canaryJob(rounds)
	parked := w.submit(bob, s, docs...) // which a puppet runs
	byHand := w.puppet("worker", "session-by-hand")
	unit := byHand.unit(parked.ID)
	answer := []byte("the answer is " + canary)
	key, sum := sha256.Sum256([]byte("one question")), sha256.Sum256(answer)
	sent := false
	_, err := byHand.stream.PutBlob(t.Context(), &protocol.BlobRequest{
		Held: unit, Session: "session-by-hand", Blob: protocol.Blob{Kind: protocol.BlobAnswer, Key: key[:], Length: int64(len(answer)), SHA256: sum[:]},
	}, func() ([]byte, error) {
		if sent {
			return nil, io.EOF
		}
		sent = true
		return answer, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	byHand.send(&protocol.FromWorker{Reports: []protocol.Report{{
		Job: unit.Job, Unit: unit.Unit, Attempt: unit.Attempt, Outcome: protocol.Errored, Class: protocol.PermanentUnit, Errors: []string{"failed as " + canary},
	}}})
	own := byRules()
	own.Cache = true
	shared := w.submit(alice, own, doc("a-cache", "Name: Ann\n"))
	asked := byHand.unit(shared.ID)
	err = byHand.stream.GetBlob(t.Context(), &protocol.BlobRequest{
		Held: asked, Session: "session-by-hand", Blob: protocol.Blob{Kind: protocol.BlobAnswer, Key: key[:], End: 1 << 20},
	}, func(part []byte) error { c.add("answer cache", string(part)); return nil })
	if c.add("answer cache", err); !errors.Is(err, errs.NotFound) {
		t.Errorf("a unit of a is given the answer to a question of b: %v", err)
	}
	byHand.end()
	w.work("worker", 4)
	w.work("worker", 4)

	var jobs sync.WaitGroup
	var ofA, ofB [rounds]*mapreduce.Job
	for n := range rounds {
		jobs.Go(func() {
			s, docs := canaryJob(n)
			ofB[n], _ = bob.SubmitJob(t.Context(), s, documents(docs...))
		})
		jobs.Go(func() {
			s := byRules()
			s.RequestID = mapreduce.RequestID(fmt.Sprintf("request-%d", n))
			var err error
			ofA[n], err = alice.SubmitJob(t.Context(), s, documents(doc("one", "Name: Ann\n"), doc("two", "Name: Abe\n")))
			c.add("submit", ofA[n], err)
		})
	}
	jobs.Wait()
	ids := []mapreduce.JobID{parked.ID, shared.ID}
	for n := range rounds {
		if ofA[n] == nil || ofB[n] == nil {
			t.Fatal("a submission failed")
		}
		ids = append(ids, ofA[n].ID, ofB[n].ID)
	}
	var reading sync.WaitGroup
	for _, id := range ids { // while they run
		reading.Go(func() { readJob(t.Context(), alice, id, c) })
	}
	reading.Wait()
	for n := range rounds {
		if job := ended(t, bob, ofB[n].ID); job.State != mapreduce.JobComplete {
			t.Errorf("a job of b is %v: %s", job.State, job.Error)
		}
		ended(t, alice, ofA[n].ID)
	}
	for _, id := range ids { // and when they have ended
		readJob(t.Context(), alice, id, c)
	}
	readTenant(w, alice, bob, c)
	w.readWeb("alice", []mapreduce.JobID{ofA[0].ID, shared.ID}, []mapreduce.JobID{ofB[0].ID, parked.ID, "mr_20260101_000000"}, c)
	if err := bob.DeleteJob(t.Context(), ofB[0].ID); err != nil {
		t.Error(err)
	}
	readTenant(w, alice, bob, c)
	w.readWeb("alice", nil, []mapreduce.JobID{ofB[0].ID}, c)
	w.operatorsSee(canary)

	if found := c.find(canary); len(found) > 0 {
		t.Errorf("a has read of b by %v", found)
	}
	listed := string(c.seen["list"]) + string(c.seen["log"]) + string(c.seen["scaler"])
	for what, data := range c.seen { // of which no request names a job
		if strings.HasSuffix(what, " ListJobs") || strings.HasSuffix(what, " GetTenantUse") || what == "pages" {
			listed += string(data)
		}
	}
	for _, job := range append(ofB[:], parked) {
		if strings.Contains(listed, string(job.ID)) {
			t.Errorf("a has read of %s of b", job.ID)
		}
	}
	of := &cage{seen: make(map[string][]byte)}
	readJob(t.Context(), bob, parked.ID, of)
	readJob(t.Context(), bob, ofB[1].ID, of)
	readTenant(w, bob, alice, of)
	w.readWeb("bob", []mapreduce.JobID{ofB[1].ID}, nil, of)
	found := of.find(canary)
	for _, what := range []string{
		"get", "units", "watch", "result", "result file", "text", "list", "REST GetJob", "REST ListJobs", "REST ListUnits", "REST WatchJob", "REST GetResult",
		"REST GetResultFile", "Connect GetJob", "Connect ListUnits", "Connect GetResult", "gRPC-Web ListJobs", "gRPC-Web WatchJob", "gRPC-Web GetResult",
	} {
		if !slices.Contains(found, what) {
			t.Errorf("b itself reads nothing of the canary by %s (but by %s): it would not be found", what, found)
		}
	}
}

// readJob reads all of a job that can be read, and tries all that can be done to it but what
// would change a job of the caller's own.
func readJob(ctx context.Context, by *client.Client, id mapreduce.JobID, c *cage) {
	job, err := by.GetJob(ctx, id)
	c.add("get", job, err)
	own := err == nil
	watching, stop := context.WithCancel(ctx)
	defer stop()
	if !own || !job.State.Ended() { // else watching ends by itself
		time.AfterFunc(50*time.Millisecond, stop)
	}
	c.add("watch", by.WatchJob(watching, id, func(j *mapreduce.Job) error { c.add("watch", j); return nil }))
	q := mapreduce.ListUnitsQuery{Job: id, Outputs: true, Inputs: true, PageSize: 2}
	var units []*mapreduce.Unit
	for {
		page, err := by.ListUnits(ctx, q)
		c.add("units", page, err)
		if err != nil {
			break
		}
		for _, u := range page.Units {
			units = append(units, u)
			c.add("units", *u)
		}
		if q.PageToken = page.NextPageToken; q.PageToken == "" {
			break
		}
	}
	c.add("result", by.GetResult(ctx, id, true, func(p *mapreduce.ResultPart) error {
		c.add("result", string(p.Record), string(p.Conflict), p.Summary, p.Job, p.Source, p.Citation)
		return nil
	}))
	var file bytes.Buffer
	c.add("result file", by.GetResultFile(ctx, id, true, &file), file.String())
	for _, u := range append(units, &mapreduce.Unit{ID: canaryUnit, Document: canaryUnit}) {
		if u.ID == canaryUnit && own {
			continue
		}
		c.add("text", by.ReadText(ctx, id, u.ID, u.Document, func(part []byte) error { c.add("text", string(part)); return nil }))
	}
	events, err := by.ListEvents(ctx, mapreduce.ListEventsQuery{Job: id, Verify: true, Proofs: true})
	c.add("events", events, err)
	if err == nil {
		for _, e := range events.Checkpoints {
			c.add("events", *e)
		}
	}
	decisions, err := by.ListDecisions(ctx, mapreduce.ListDecisionsQuery{Job: id})
	c.add("decisions", decisions, err)
	if own {
		return
	}
	_, err = by.DecideValue(ctx, mapreduce.NewDecision{Job: id, Record: "0.0", Field: "name", Verdict: mapreduce.ReviewAccept})
	c.add("decide", err)
	_, err = by.PauseJob(ctx, id)
	c.add("pause", err)
	_, err = by.ResumeJob(ctx, id, mapreduce.Resume{})
	c.add("resume", err)
	_, err = by.MarkCause(ctx, id, "cause", mapreduce.CauseIgnored)
	c.add("mark", err)
	_, err = by.CancelJob(ctx, id)
	c.add("cancel", err, by.DeleteJob(ctx, id))
	_, err = by.WakeUnit(ctx, id, "unit", "handle", nil)
	c.add("wake", err)
	s := byRules()
	s.Replay = id
	_, err = by.SubmitJob(ctx, s, documents())
	c.add("replay", err)
}

// canaryUnit is a unit that b has, by a name that a could guess without knowing the canary.
const canaryUnit = "unit"

// readTenant reads what is of no one job, for the caller's tenant and for the other.
func readTenant(w *town, by, other *client.Client, c *cage) {
	ctx := w.t.Context()
	foreign, err := other.ListJobs(ctx, mapreduce.ListJobsQuery{PageSize: 1})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, tenant := range []mapreduce.TenantID{"", "a", "b"} {
		for _, token := range []string{"", foreign.NextPageToken} {
			q := mapreduce.ListJobsQuery{Tenant: tenant, PageSize: 2, PageToken: token}
			for {
				page, err := by.ListJobs(ctx, q)
				c.add("list", page, err)
				if err != nil {
					break
				}
				for _, j := range page.Jobs {
					c.add("list", *j)
				}
				if q.PageToken = page.NextPageToken; q.PageToken == "" {
					break
				}
			}
		}
		log, err := by.ListEvents(ctx, mapreduce.ListEventsQuery{Tenant: tenant, Verify: true, Proofs: true})
		c.add("log", log, err)
		if err == nil {
			for _, e := range log.Checkpoints {
				c.add("log", *e, e.Deleted)
			}
		}
		sums, err := by.SumCosts(ctx, mapreduce.CostQuery{Tenant: tenant, By: []mapreduce.CostDimension{mapreduce.ByTenant, mapreduce.ByModel}})
		c.add("costs", sums, err)
		certificates, err := by.ListCertificates(ctx, tenant)
		c.add("certificates", certificates, err)
		answers, err := by.AnswerCache(ctx, tenant, false)
		c.add("answers", answers, err)
		s := byRules()
		s.Tenant = tenant
		plan, err := by.PlanJob(ctx, mapreduce.PlanQuery{Spec: s}, documents(doc("p", "Name: Pat\n")))
		c.add("plan", plan, err)
	}
	c.add("check", by.CheckStore(ctx, mapreduce.CheckQuery{}, func(f mapreduce.Finding) error { c.add("check", f); return nil }))
	for name, secretOf := range w.secrets {
		if name != "alice" {
			continue
		}
		conn, err := grpc.NewClient(w.address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithPerRPCCredentials(secret(secretOf)))
		if err != nil {
			w.t.Fatal(err)
		}
		metrics, err := externalscaler.NewExternalScalerClient(conn).GetMetrics(ctx, &externalscaler.GetMetricsRequest{
			ScaledObjectRef: &externalscaler.ScaledObjectRef{ScalerMetadata: map[string]string{"slots": "1"}}, MetricName: "units",
		})
		c.add("scaler", metrics, err)
		if err := conn.Close(); err != nil {
			w.t.Error(err)
		}
	}
}

// A tenant that may run few units at once runs as many and no more, on however many workers;
// its jobs end, and another tenant is not held up.
func TestUnitsAtOnceOfATenant(t *testing.T) {
	w := newTown(t, townPolicy+"tenants:\n- {tenant: a, quotas: {calls: 3}}\n")
	alice, bob := w.as("alice"), w.as("bob")
	var docs []*mapreduce.Document
	for i := range 40 {
		docs = append(docs, doc(fmt.Sprintf("d%02d", i), fmt.Sprintf("Name: Ann %d\n", i)))
	}
	one, two := w.submit(alice, byRules(), docs...), w.submit(alice, byRules(), docs...)
	held := w.puppet("worker", "session-that-holds")
	held.unit(one.ID, two.ID) // and gets no more than the quota, however many wait
	if n := len(held.given[one.ID]) + len(held.given[two.ID]); n > 3 {
		t.Errorf("%d units run of a tenant that may run 3", n)
	}
	ofB := w.submit(bob, byRules(), docs...)
	held.unit(ofB.ID)
	job, err := alice.GetJob(t.Context(), one.ID)
	other, err2 := alice.GetJob(t.Context(), two.ID)
	if err != nil || err2 != nil || job.RunningUnits+other.RunningUnits > 3 {
		t.Errorf("%d and %d units run of a tenant that may run 3 (%v, %v)", job.RunningUnits, other.RunningUnits, err, err2)
	}
	w.work("worker", 8)
	w.work("worker", 8)
	held.end()
	for _, id := range []mapreduce.JobID{one.ID, two.ID} {
		if job := ended(t, alice, id); job.State != mapreduce.JobComplete {
			t.Errorf("a job of a is %v: %s", job.State, job.Error)
		}
	}
	if job := ended(t, bob, ofB.ID); job.State != mapreduce.JobComplete {
		t.Errorf("the job of b is %v: %s", job.State, job.Error)
	}
	w.sound()
}

// sound checks that nothing is wrong in the store.
func (w *town) sound() {
	w.t.Helper()
	err := w.node.CheckStore(w.t.Context(), mapreduce.CheckQuery{}, func(f mapreduce.Finding) error {
		if f.Severity == mapreduce.Wrong {
			w.t.Errorf("check: %s %s: %s", f.Job, f.Key, f.Message)
		}
		return nil
	})
	if err != nil {
		w.t.Error(err)
	}
}

// Quotas are refused through the wire with what is exceeded and how long to wait.
func TestQuotasThroughTheWire(t *testing.T) {
	w := newTown(t, townPolicy+`tenants:
- {tenant: a, quotas: {unended_jobs: 1, requests_per_minute: 5}}
- {tenant: b, quotas: {tokens_per_day: 1000, jobs: 1}}
`)
	alice, bob := w.as("alice"), w.as("bob")
	w.submit(alice, byRules(), doc("d", "Name: Ann\n"))
	_, err := alice.SubmitJob(t.Context(), byRules(), documents(doc("d", "Name: Ann\n")))
	refused := func(err error, waits bool, words ...string) {
		t.Helper()
		e, ok := errors.AsType[*errs.Error](err)
		if !ok || e.Kind != errs.Exhausted || e.Reason != mapreduce.QuotaExceeded || (e.RetryAfter > 0) != waits {
			t.Errorf("%v (%+v)", err, e)
			return
		}
		for _, word := range words {
			if !strings.Contains(e.Message, word) {
				t.Errorf("%q does not say %q", e.Message, word)
			}
		}
	}
	refused(err, true, `tenant "a"`, "quota (unended_jobs) of 1", "uses 1", "asks for 1 more")
	for range 11 { // the minute may change once
		if _, err = alice.ListJobs(t.Context(), mapreduce.ListJobsQuery{}); err != nil {
			break
		}
	}
	refused(err, true, `tenant "a"`, "quota (requests_per_minute) of 5")
	s := byRules()
	s.Provider = "scripted"
	_, err = bob.SubmitJob(t.Context(), s, documents(doc("d", "Name: Bob\n")))
	if errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), "budget") {
		t.Errorf("a job without a budget, of a tenant with a quota of tokens: %v", err)
	}
	s.Budget = 20_000
	_, err = bob.SubmitJob(t.Context(), s, documents(doc("d", "Name: Bob\n")))
	refused(err, false, `tenant "b"`, "quota (tokens_per_day) of 1000", "uses 0", "asks for 20000 more")
	w.submit(bob, byRules(), doc("d", "Name: Bob\n"))
	_, err = bob.SubmitJob(t.Context(), byRules(), documents(doc("d", "Name: Bob\n")))
	refused(err, false, `tenant "b"`, "quota (jobs) of 1")
	write(t, w.policy, townPolicy+"tenants:\n- {tenant: a, quotas: {unended_jobs: 1}}\n- {tenant: b, quotas: {tokens_per_day: 1000, jobs: 1}}\n")
	w.guard.Recheck()
	for _, c := range []struct {
		by          *client.Client
		tenant      mapreduce.TenantID
		name        string
		used, limit int64
	}{
		{alice, "", "unended_jobs", 1, 1},
		{alice, "a", "jobs", 1, 0},
		{alice, "", "waiting_units", 1, 0},
		{alice, "", "stored_bytes", 10, 0},
		{bob, "", "jobs", 1, 1},
		{bob, "", "tokens_per_day", 0, 1000},
	} {
		use, err := c.by.TenantUse(t.Context(), c.tenant)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(use.Quotas, func(q mapreduce.QuotaUse) bool { return q.Name == c.name })
		if q := use.Quotas[i]; q.Used != c.used || q.Limit != c.limit {
			t.Errorf("of %s %q uses %d of %d, want %d of %d", q.Name, use.Tenant, q.Used, q.Limit, c.used, c.limit)
		}
	}
	if _, err := bob.TenantUse(t.Context(), "a"); errs.KindOf(err) != errs.Denied {
		t.Errorf("b is told what a uses: %v", err)
	}
	if _, err := bob.SumCosts(t.Context(), mapreduce.CostQuery{Tenant: "a"}); errs.KindOf(err) != errs.Denied {
		t.Errorf("b is told what a has spent: %v", err)
	}
	if _, err := bob.ListCertificates(t.Context(), "a"); errs.KindOf(err) != errs.Denied {
		t.Errorf("b is told what a has certified: %v", err)
	}
	if err := bob.DropCertificate(t.Context(), "a", "c"); errs.KindOf(err) != errs.Denied {
		t.Errorf("b drops what a has certified: %v", err)
	}
	write(t, w.policy, townPolicy) // without quotas: it is read again
	w.guard.Recheck()
	w.submit(bob, byRules(), doc("d", "Name: Bob\n"))
	w.sound()
}

package orchestrator_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/store/storetest/driver"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/model"
	"github.com/coditect/mapreduce/worker/batching"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/llm/fakellm/batches"
)

// The kills of this file are counted, and go round all places at which a process can die with a call that goes by
// batch half done: of orchestrators the failpoints of the path, before and after; of workers each request to
// the vendor, before it is sent and after it was answered.

// By hand: make batch-kills.
var (
	killedDocuments = flag.Int("batch.killed", 200, "documents of jobs whose calls go by batch while processes are killed")
	batchKills      = flag.Int("batch.kills", 20, "how many processes are killed meanwhile")
)

// A request to a vendor of batches, as kills of workers name it.
const (
	uploading = "upload"
	creating  = "create"
	asking    = "get"
	fetching  = "results"
	listing   = "list"
)

// requestPoint names a request to a vendor of batches; "" is one that kills pass over.
func requestPoint(r *http.Request) string {
	path := r.URL.Path
	switch {
	case strings.HasSuffix(path, "cancel"):
		return ""
	case r.Method == http.MethodPost && strings.Contains(path, "/files"):
		return uploading
	case r.Method == http.MethodPost:
		return creating
	case strings.HasSuffix(path, "/results"), strings.HasSuffix(path, "/content"), strings.HasPrefix(path, "/download"):
		return fetching
	case strings.HasSuffix(path, "/batches"):
		return listing
	}
	return asking
}

// A mishap is what befalls a request to a vendor that asks for something, beside what befalls those that make it.
type mishap string

const (
	unavailable mishap = "unavailable" // 503
	cutBefore   mishap = "before"      // the connection breaks, and the vendor got nothing
	cutAfter    mishap = "after"       // it breaks before the answer
	cutWithin   mishap = "within"      // it breaks in the middle of the answer
)

var errCut = errors.New("the connection broke")

// befall has a mishap befall a request.
func (kind mishap) befall(r *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	switch kind {
	case unavailable:
		return &http.Response{
			StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("no server is ready")), Request: r,
		}, nil
	case cutBefore:
		return nil, errCut
	}

	res, err := send(r)
	if err != nil {
		return nil, err
	}
	if kind == cutAfter {
		_ = res.Body.Close() // nobody reads it
		return nil, errCut
	}

	data, err := io.ReadAll(res.Body)
	_ = res.Body.Close() // it was read
	if err != nil {
		return nil, err
	}
	half := strings.NewReader(string(data[:len(data)/2]))
	res.Body = io.NopCloser(io.MultiReader(half, iotest.ErrReader(errCut)))
	return res, nil
}

// A killer has workers die at their requests to a vendor.
type killer struct {
	mishaps func() (kind mishap, ok bool) // of requests that ask for something; may be nil

	mu    sync.Mutex // guards the variables below
	point string     // at which the next worker dies; "" if none does
	dead  *mortal    // that has died there
}

// aim has the worker die that comes to a point next, "" none. It returns the one that has died at the point before, if any.
func (k *killer) aim(point string) (dead *mortal) {
	k.mu.Lock()
	defer k.mu.Unlock()
	dead = k.dead
	k.point, k.dead = point, nil
	return dead
}

// fallen returns the worker that has died at the point; nil if none has yet.
func (k *killer) fallen() *mortal {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.dead
}

// strikes reports whether a worker dies at a point.
func (k *killer) strikes(m *mortal, point string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.point != point || m.gone.Load() {
		return false
	}
	k.point, k.dead = "", m
	m.gone.Store(true)
	return true
}

// A mortal is a worker that dies where a killer aims.
type mortal struct {
	*enginetest.Member
	fleet *vendorFleet
	aims  *killer
	gone  atomic.Bool // it does nothing any more
}

// RoundTrip implements http.RoundTripper. A worker that dies sends nothing more, and hears no answer.
func (m *mortal) RoundTrip(r *http.Request) (*http.Response, error) {
	point := requestPoint(r)
	if m.gone.Load() || point != "" && m.aims.strikes(m, point+".before") {
		return nil, m.die(r.Context())
	}
	res, err := m.send(r, point)
	if m.gone.Load() || point != "" && m.aims.strikes(m, point+".after") {
		if err == nil {
			_ = res.Body.Close() // nobody reads it
		}
		return nil, m.die(r.Context())
	}
	return res, err
}

// send sends a request, which a mishap may befall.
func (m *mortal) send(r *http.Request, point string) (*http.Response, error) {
	if m.aims.mishaps != nil && slices.Contains([]string{asking, fetching, listing}, point) {
		if kind, ok := m.aims.mishaps(); ok {
			return kind.befall(r, m.fleet.RoundTrip)
		}
	}
	return m.fleet.RoundTrip(r)
}

// die waits until what the worker is about is over.
func (*mortal) die(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// joinMortal runs a worker that dies where a killer aims.
func (f *vendorFleet) joinMortal(k *killer) *mortal {
	f.T.Helper()
	m := &mortal{fleet: f, aims: k}
	own, err := model.New(model.Config{
		Provider: f.seller.name, Vendors: f.table, Prices: f.prices, Random: func() float64 { return 0.5 },
		LLM: llm.Config{Key: llm.NewKey(batchKey), BaseURL: f.seller.base, Transport: m},
	})
	if err != nil {
		f.T.Fatal(err)
	}
	m.Member = f.Join(worker.Config{Slots: stormSlots, DrainTimeout: f.pace(time.Minute), Batches: batching.New(batching.Config{
		Names: []string{f.seller.name}, Create: f.pace(time.Minute), Ask: f.pace(5 * time.Second), Poll: f.pace(15 * time.Second), Slowest: f.pace(2 * time.Minute), Gone: f.pace(time.Hour), Skew: f.pace(time.Hour),
		Vendor: func(o *protocol.BatchOrder) (batch.Vendor, error) { return own.Batches(o) },
		Prices: func(o *protocol.BatchOrder) (*llm.Prices, error) { return own.BatchPrices(o) },
	})})
	return m
}

// A siege is a fleet of a vendor whose processes are killed.
type siege struct {
	*vendorFleet
	random  *die
	aims    *killer
	workers []*mortal
	jobs    []mapreduce.JobID
	asked   int            // documents of these
	kills   map[string]int // by where somebody died
	spoilt  atomic.Int64   // answers that were paid for, and are no use
	fates   atomic.Int64   // lines that were not just answered
}

// Each document is answered once, no batch is made twice, and the money agrees with the vendor's own account,
// wherever workers and orchestrators are killed.
func TestBatchesSurviveKills(t *testing.T) {
	testenv.Lengthy(t)
	for _, of := range sellers {
		t.Run(of.name, func(t *testing.T) {
			enginetest.VirtuallyIfItCan(t, func(t *testing.T) { besiege(t, of, false) })
		})
	}
}

// The same holds where one in twenty of all that can go wrong goes wrong besides, of each kind.
func TestBatchesSurviveKillsAndFaults(t *testing.T) {
	testenv.Lengthy(t)
	for _, of := range sellers {
		t.Run(of.name, func(t *testing.T) {
			enginetest.VirtuallyIfItCan(t, func(t *testing.T) { besiege(t, of, true) })
		})
	}
}

// oneInTwenty draws one of some kinds of fault, each one time in twenty; ok is false otherwise.
func oneInTwenty[T any](random *die, kinds ...T) (kind T, ok bool) {
	if n := random.IntN(20); n < len(kinds) {
		return kinds[n], true
	}
	return kind, false
}

// storeFaults has one in twenty operations of the store fail, by each kind. Batches of large jobs have reports of
// many lines, each of which is read in the one transaction that takes the report. If one in twenty reads failed, no such
// transaction would ever commit, so the more lines there are, the fewer of their reads fail.
func storeFaults() fault.Rates {
	rates := fault.Retryable(0.05)
	for _, kind := range []fault.Kind{fault.ReadTooOld, fault.ReadBehind} {
		rates[kind] *= min(1, 200/float64(*killedDocuments))
	}
	return rates
}

// besiege runs jobs until so many processes were killed.
func besiege(t *testing.T, of seller, faults bool) {
	random := newDie(uint64(len(of.name)))
	s := &siege{random: random, aims: &killer{}, kills: make(map[string]int)}
	script := batches.Config{
		Takes:  func(int) time.Duration { return s.pace(time.Duration(1+random.IntN(8)) * time.Minute) },
		Hidden: time.Duration(random.IntN(100)) * time.Second,
		Limits: siegeLimits(of),
	}
	if _, real := driver.Cluster(t); real {
		script.Hidden /= quicker
	}

	rates := fault.Retryable(0.01)
	if faults {
		rates = storeFaults()
		s.failRequests(of, &script)
	}
	s.vendorFleet = newFleetOf(t, of, 1, 2, max(7, *killedDocuments/80), rates, script)
	if faults {
		s.spoilLines()
	}

	for range 3 {
		s.workers = append(s.workers, s.joinMortal(s.aims))
	}
	s.submit(*killedDocuments)
	for blows := s.blows(); s.killed() < *batchKills; {
		for _, strike := range blows {
			if s.killed() < *batchKills {
				s.keepBusy()
				strike()
				s.wait(time.Duration(1+random.IntN(20)) * time.Second)
			}
		}
	}

	for _, id := range s.jobs {
		if job := s.Any().EndWithin(id, s.pace(48*time.Hour)); job.State != mapreduce.JobComplete || job.FailedUnits > 0 || job.CompletedUnits != job.TotalUnits {
			t.Fatalf("job is %v, with %d of %d units complete and %d failed: %s", job.State, job.CompletedUnits, job.TotalUnits, job.FailedUnits, job.Error)
		}
	}
	s.Faults.Heal()
	s.Faults.Settle()

	// An answer that is no use is paid for, and has the same asked again.
	lost, micros := s.lost()
	s.verifyAll(s.jobs, s.asked+int(s.spoilt.Load())+lost, micros)
	if !faults {
		s.verifyOnce()
	} else if s.spoilt.Load() == 0 || s.fates.Load() == 0 {
		t.Errorf("%d answers were spoilt, and %d lines had another fate: the test shows nothing", s.spoilt.Load(), s.fates.Load())
	}
	refused, _ := s.server.Crowds()
	if refused > 0 {
		t.Errorf("%d batches were refused, as they passed a limit", refused)
	}
	t.Logf("%s: %d documents in %d jobs and %d batches, while %d processes died, and %d calls in real time with them: %v", of.name, s.asked, len(s.jobs), s.server.Made(), s.killed(), lost, s.kills)
}

// failRequests has one in twenty requests to the vendor go wrong in each way that there is, and one in twenty batches fail
// as a whole.
func (s *siege) failRequests(of seller, script *batches.Config) {
	s.aims.mishaps = func() (mishap, bool) { return oneInTwenty(s.random, unavailable, cutBefore, cutAfter, cutWithin) }

	if of.wire != fakellm.Anthropic { // whose batches do not fail as a whole
		script.Fails = func(int) string {
			code, _ := oneInTwenty(s.random, "server_error")
			return code
		}
	}

	var lost atomic.Int64
	script.Creates = func(int, bool) batches.Loss {
		if loss, ok := oneInTwenty(s.random, batches.Refused, batches.Before, batches.After, batches.ErrAfter); ok && lost.Add(1) < mostLosses(*killedDocuments) {
			return loss
		}
		return batches.Kept
	}
}

// spoilLines has one in twenty lines go wrong in each way that there is, and counts those that are paid for and no use.
func (s *siege) spoilLines() {
	s.fault = func(fakellm.Call) fakellm.Fault {
		kind, _ := oneInTwenty(s.random, lineFaults...)
		if slices.Contains([]fakellm.Fault{fakellm.WrongShape, fakellm.Prose, fakellm.EmptyAnswer}, kind) {
			s.spoilt.Add(1)
		}
		return kind
	}
	s.fate = func(int, string) batches.Fate {
		kind, ok := oneInTwenty(s.random, batches.Twice, batches.Unasked, batches.Late, batches.Withdrawn)
		if ok {
			s.fates.Add(1)
		}
		return kind
	}
}

// siegeLimits are those of a vendor, with room for fewer batches at a time, so that jobs take a while.
func siegeLimits(of seller) batches.Limits {
	room := max(40, *killedDocuments/10)
	switch of.wire {
	case fakellm.OpenAI:
		return batches.Limits{Lines: 50_000, Bytes: 200_000_000, WaitingTokens: int64(room) * 1000, Window: 24 * time.Hour, Kept: 30 * 24 * time.Hour}
	case fakellm.Gemini:
		return batches.Limits{Bytes: 2_000_000_000, WaitingBatches: 8, Window: 48 * time.Hour, Kept: 48 * time.Hour}
	}
	return batches.Limits{Lines: 100_000, Bytes: 256_000_000, Waiting: room, Window: 24 * time.Hour, Kept: 29 * 24 * time.Hour}
}

func (s *siege) submit(documents int) {
	spec := specOf(s.seller)
	spec.Budget, spec.BudgetIn = 100_000*int64(documents), mapreduce.InDollars
	s.jobs, s.asked = append(s.jobs, s.Any().Submit(spec, documents)), s.asked+documents
}

// keepBusy submits another job if the last one has ended.
func (s *siege) keepBusy() {
	job, err := s.Any().GetJob(s.T.Context(), s.jobs[len(s.jobs)-1])
	switch {
	case err != nil:
		s.T.Fatal(err)
	case job.State == mapreduce.JobComplete:
		s.submit(max(20, *killedDocuments/10))
	case !job.State.Running():
		s.T.Fatalf("job is %v: %s", job.State, job.Error)
	}
}

func (s *siege) killed() (n int) {
	for _, times := range s.kills {
		n += times
	}
	return n
}

// wait waits for as long as d is in virtual time.
func (s *siege) wait(d time.Duration) { <-time.After(s.pace(d)) }

// blows returns all ways in which somebody is killed.
func (s *siege) blows() (all []func()) {
	for _, step := range batchPoints {
		all = append(all, func() { s.killServerAt(step.Before()) }, func() { s.killServerAt(step.After()) })
	}
	requests := []string{uploading, creating, asking, fetching, listing}
	if s.seller.wire == fakellm.Anthropic {
		requests = requests[1:]
	}
	for _, of := range requests {
		all = append(all, func() { s.killWorkerAt(of + ".before") }, func() { s.killWorkerAt(of + ".after") })
	}
	return append(all, s.killServer, s.killWorker)
}

// patience is how long somebody is waited for who comes to a place where he dies.
const patience = 90

// killServerAt kills the orchestrator that comes to a point first, if one does for a while.
func (s *siege) killServerAt(point failpoint.Point) {
	s.KillAt(point)
	defer s.KillAt("")
	for range patience {
		s.wait(time.Second)
		for i, n := range s.Nodes {
			if n != nil && n.Gate.Dead.Load() {
				s.kills[string(point)]++
				s.Stop(i, true)
				s.wait(time.Duration(s.random.IntN(10)) * time.Second)
				s.Start(i)
				return
			}
		}
	}
}

// killWorkerAt kills the worker that comes to a request first, if one does for a while.
func (s *siege) killWorkerAt(point string) {
	s.aims.aim(point)
	for range patience {
		s.wait(time.Second)
		if s.aims.fallen() != nil {
			break
		}
	}

	// One that dies just now is replaced too: nobody else would, as it goes on saying that it lives.
	if m := s.aims.aim(""); m != nil {
		s.kills[point]++
		s.replace(m)
	}
}

// replace has another worker in the place of one that is dead.
func (s *siege) replace(dead *mortal) {
	s.Kill(dead.Member)
	s.wait(time.Duration(s.random.IntN(20)) * time.Second)
	for i, m := range s.workers {
		if m == dead {
			s.workers[i] = s.joinMortal(s.aims)
		}
	}
}

// killServer kills an orchestrator wherever it is.
func (s *siege) killServer() {
	i := s.random.IntN(len(s.Nodes))
	s.kills["server"]++
	s.Stop(i, true)
	s.wait(time.Duration(s.random.IntN(10)) * time.Second)
	s.Start(i)
}

// killWorker kills a worker wherever it is.
func (s *siege) killWorker() {
	m := s.workers[s.random.IntN(len(s.workers))]
	s.kills["worker"]++
	m.gone.Store(true)
	s.replace(m)
}

// verifyOnce checks that the vendor was asked of no document of a job twice.
func (s *siege) verifyOnce() {
	asked := make(map[[sha256.Size]byte]int)
	for _, c := range s.server.Bill() {
		asked[sha256.Sum256([]byte(c.Entry.Prompt()))]++
	}
	for _, e := range s.live.Entries() {
		asked[sha256.Sum256([]byte(e.Prompt()))]++
	}
	for _, times := range asked {
		if times > len(s.jobs) {
			s.T.Errorf("the vendor was asked %d times of one document, in %d jobs", times, len(s.jobs))
		}
	}
	if want := *killedDocuments; len(asked) != want {
		s.T.Errorf("the vendor was asked of %d documents, want %d", len(asked), want)
	}
}

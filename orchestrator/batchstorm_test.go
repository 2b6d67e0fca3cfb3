package orchestrator_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/store/storetest/driver"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/model"
	"github.com/coditect/mapreduce/worker/agent/model/steps"
	"github.com/coditect/mapreduce/worker/batching"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/llm/fakellm/batches"
	"github.com/coditect/mapreduce/worker/llm/vendors"
)

// The tests of this file run jobs whose calls go by batch, in virtual time, while workers and orchestrators
// die. What the vendor charges is the measure of all of them.

const batchKey = "sk-test-0123456789abcdefghij"

// A seller is a vendor of batches, as a fleet is told of it, and how it is spoken to.
type seller struct {
	name, model, base string
	wire              fakellm.Wire
	charges           tariff
}

// A tariff is what a vendor charges for a token of each kind, in thousandths of a millionth of a dollar, as its
// price list has it, so that what the program reckons is held against another's account.
type tariff struct{ input, write, read, output int64 }

// micros are what a call costs, rounded up to a millionth of a dollar.
func (t tariff) micros(e fakellm.Entry) int64 {
	return (e.Input*t.input + e.CacheWrite*t.write + e.CacheRead*t.read + e.Output*t.output + 999) / 1000
}

// ofBatch is the tariff of what goes by batch: half, but for what is read from the cache of a vendor who has no
// discount on that.
func (s seller) ofBatch() tariff {
	half := s.charges
	half.input, half.write, half.output = half.input/2, half.write/2, half.output/2
	if s.wire != fakellm.Gemini {
		half.read /= 2
	}
	return half
}

// sellers are one for each format of batches.
var sellers = []seller{
	{"openai", "gpt-4.1-mini", "http://vendor.test/v1", fakellm.OpenAI, tariff{input: 400, write: 400, read: 100, output: 1600}},
	{"anthropic", "claude-haiku-4-5", "http://vendor.test/", fakellm.Anthropic, tariff{input: 1000, write: 1250, read: 100, output: 5000}},
	{"gemini", "gemini-2.5-flash", "http://vendor.test/v1beta", fakellm.Gemini, tariff{input: 300, write: 300, read: 30, output: 2500}},
}

// A vendorFleet is a fleet whose workers ask a scripted vendor.
type vendorFleet struct {
	*enginetest.Fleet
	server *batches.Server // of batches
	live   *fakellm.Server // of calls in real time
	agent  *model.Agent
	table  vendors.Table
	prices *llm.Prices
	seller seller
	hurry  time.Duration                    // how many times as fast as in virtual time all of it goes: 1 but on a cluster
	fault  func(fakellm.Call) fakellm.Fault // of lines
	fate   func(n int, id string) batches.Fate

	mu     sync.Mutex                  // guards the variable below
	askers map[attempt]context.Context // whose end is the death of the worker that made a call in real time
}

// An attempt at a unit, as the headers of its calls name it.
type attempt struct{ job, unit, number string }

func attemptOf(h http.Header) attempt {
	return attempt{h.Get("X-Coditect-Job"), h.Get("X-Coditect-Unit"), h.Get("X-Coditect-Attempt")}
}

// spoil has one line in so many go wrong.
func (f *vendorFleet) spoil(random *die, one int) {
	f.fault = func(fakellm.Call) fakellm.Fault {
		if random.IntN(one) > 0 {
			return fakellm.None
		}
		return lineFaults[random.IntN(len(lineFaults))]
	}
	f.fate = func(int, string) batches.Fate {
		if random.IntN(one) == 0 {
			return batches.Twice
		}
		return batches.Answered
	}
}

// quicker is how many times as fast storms go on a cluster, whose time is real.
const quicker = 20

// pace returns how long something takes that takes d in virtual time.
func (f *vendorFleet) pace(d time.Duration) time.Duration { return d / f.hurry }

// batchConfig are settings under which hours of waiting for batches cost little: nobody beats, polls or seals
// often.
func batchConfig() orchestrator.Config {
	c := calm()
	c.Beat, c.Heartbeat, c.Poll, c.Seal = 5*time.Second, 5*time.Second, 10*time.Second, 5*time.Second
	c.Grace = 3 * time.Second // so that a store that fails for a moment takes nobody who lives for dead
	return c
}

// newVendorFleet returns one with so many orchestrators and no worker, that asks the first of the sellers. A
// batch takes most lines.
func newVendorFleet(t *testing.T, seed uint64, nodes, most int, rates fault.Rates, script batches.Config) *vendorFleet {
	t.Helper()
	return newFleetOf(t, sellers[0], seed, nodes, most, rates, script)
}

// newFleetOf is newVendorFleet of a seller.
func newFleetOf(t *testing.T, of seller, seed uint64, nodes, most int, rates fault.Rates, script batches.Config) *vendorFleet {
	t.Helper()
	prices, err := llm.ListPrices()
	if err != nil {
		t.Fatal(err)
	}

	answer := func(fakellm.Call) fakellm.Reply {
		return fakellm.Reply{Text: `{"fields":{"company":[],"total":[]},"not_found":["company","total"]}`}
	}
	if script.Model != nil {
		answer = script.Model
	}
	script.Wire, script.Key, script.Model, script.Seed = of.wire, batchKey, answer, seed
	f, config := &vendorFleet{prices: prices, seller: of, hurry: 1, askers: make(map[attempt]context.Context)}, batchConfig()
	if _, real := driver.Cluster(t); real {
		f.hurry, config = quicker, enginetest.Steady()
		config.BatchLinger, config.BatchWait = 500*time.Millisecond, 15*time.Second
	}
	if roomy := script.Limits; roomy.Waiting+roomy.WaitingBatches+roomy.CreatesPerHour > 0 || roomy.WaitingTokens > 0 {
		config.Limits = func(string) orchestrator.ModelLimits {
			return orchestrator.ModelLimits{Batches: protocol.BatchRoom{
				Lines: int64(roomy.Waiting), Tokens: roomy.WaitingTokens, Batches: int64(roomy.WaitingBatches), Creates: int64(roomy.CreatesPerHour),
			}}
		}
	}
	script.Fault = func(c fakellm.Call) fakellm.Fault { return f.fault(c) }
	script.Fate = func(n int, id string) batches.Fate { return f.fate(n, id) }
	f.fault, f.fate = func(fakellm.Call) fakellm.Fault { return fakellm.None }, func(int, string) batches.Fate { return batches.Answered }
	script.Price = of.ofBatch().micros
	over := enginetest.NewCluster
	if script.Lean {
		over = enginetest.NewLargeCluster
	}
	f.Fleet = enginetest.NewFleetOver(t, over(t), seed, nodes, rates, config)
	f.server, f.live = batches.New(script), fakellm.New(fakellm.Config{Key: batchKey, Model: answer})

	table := slices.Clone(vendors.All())
	table = slices.DeleteFunc(table, func(v vendors.Vendor) bool { return v.Name != of.name })
	makes := table[0].NewBatches
	table[0].NewBatches = func(cfg llm.Config) (batch.Vendor, error) {
		v, err := makes(cfg)
		return few{v, most, f.pace(2 * time.Minute)}, err
	}
	if f.agent, err = model.New(model.Config{
		Provider: of.name, Vendors: table, Prices: prices, Random: rand.Float64,
		LLM: llm.Config{Key: llm.NewKey(batchKey), BaseURL: of.base, Transport: f, SendTrace: true},
	}); err != nil {
		t.Fatal(err)
	}
	f.table = table
	f.Counter.Agent, f.Works = steps.Of(f.agent), of.name
	return f
}

// few is a vendor whose batches take few lines, and are shown soon.
type few struct {
	batch.Vendor
	most   int
	settle time.Duration
}

// Limits implements batch.Vendor.
func (f few) Limits(m llm.Model) batch.Limits {
	l := f.Vendor.Limits(m)
	l.Lines, l.Settle = f.most, f.settle
	return l
}

// RoundTrip implements http.RoundTripper: what is of batches and files goes to one server, and the rest to
// the other.
func (f *vendorFleet) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.Path, "/batches") || strings.Contains(r.URL.Path, ":batch") || strings.Contains(r.URL.Path, "/files") {
		return f.server.Transport().RoundTrip(r)
	}
	if life := enginetest.LifeIn(r.Context()); life != nil {
		f.mu.Lock()
		f.askers[attemptOf(r.Header)] = life
		f.mu.Unlock()
	}
	return f.live.Transport().RoundTrip(r)
}

// hasDied reports whether the worker that made the calls of an attempt is dead.
func (f *vendorFleet) hasDied(a attempt) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	life := f.askers[a]
	return life != nil && life.Err() != nil
}

// join runs a worker that makes batches too.
func (f *vendorFleet) join() *enginetest.Member {
	return f.Join(worker.Config{Slots: stormSlots, DrainTimeout: time.Minute, Batches: batching.New(batching.Config{
		Names: []string{f.seller.name}, Create: f.pace(time.Minute), Ask: f.pace(5 * time.Second), Poll: f.pace(15 * time.Second), Slowest: f.pace(2 * time.Minute), Gone: f.pace(time.Hour), Skew: f.pace(time.Hour),
		Vendor: func(o *protocol.BatchOrder) (batch.Vendor, error) { return f.agent.Batches(o) },
		Prices: func(o *protocol.BatchOrder) (*llm.Prices, error) { return f.agent.BatchPrices(o) },
	})})
}

// batchedSpec is of a job whose documents are asked by batch, and whose records are merged without a model.
func batchedSpec() mapreduce.JobSpec { return specOf(sellers[0]) }

// specOf is batchedSpec of a seller.
func specOf(of seller) mapreduce.JobSpec {
	return mapreduce.JobSpec{
		Pipeline: "extract", Provider: of.name, Model: of.model, Parallelism: stormParallelism, MaxAttempts: 20, BreakerThreshold: 1 << 20,
		Schema: []byte(`{"type":"object","properties":{"company":{"type":"string"},"total":{"type":"number"}}}`),
		Vars:   map[string]string{"tier": "batch", "merge": "typed"},
	}
}

// bill is what the vendor has charged for batches, and for how many lines; each line is of another batch or
// has another id, or the batch was made twice.
func (f *vendorFleet) bill() (micros int64, lines int) {
	seen := make(map[string]bool)
	for _, c := range f.server.Bill() {
		micros += c.Micros
		lines++
		if seen[c.CustomID] {
			f.T.Errorf("line %s was charged twice: its batch was made twice", c.CustomID)
		}
		seen[c.CustomID] = true
	}
	return micros, lines
}

// paid is what the vendor has charged for calls in real time.
func (f *vendorFleet) paid() (micros int64, calls int) {
	for _, e := range f.live.Entries() {
		if e.Status == http.StatusOK {
			micros, calls = micros+f.seller.charges.micros(e), calls+1
		}
	}
	return micros, calls
}

// lost returns how many calls in real time were answered for workers that died before they could pass the answer on, and
// what these cost: whoever takes over has to ask again. Where time is virtual calls take none, and nobody dies in one.
func (f *vendorFleet) lost() (calls int, micros int64) {
	last := make(map[[2]string]fakellm.Entry) // by job and unit
	for _, e := range f.live.Entries() {
		if e.Status != http.StatusOK {
			continue
		}
		unit := [2]string{e.Job, e.Unit}
		before, again := last[unit]
		last[unit] = e
		if !again {
			continue
		}
		if !f.hasDied(attemptOf(before.Header)) {
			f.T.Errorf("unit %s of job %s was asked of in attempt %d and again in attempt %d, and the worker of the first lives", e.Unit, e.Job, before.Attempt, e.Attempt)
			continue
		}
		calls, micros = calls+1, micros+f.seller.charges.micros(before)
	}
	return calls, micros
}

// anyCalls says that units are answered as often as it takes.
const anyCalls = -1

// verifyMoney checks that a job has spent what the vendor has charged.
func (f *vendorFleet) verifyMoney(id mapreduce.JobID, units int) {
	f.T.Helper()
	f.verifyAll([]mapreduce.JobID{id}, units, 0)
}

// verifyAll checks that jobs have spent what the vendor has charged, but for what was lost with those who died.
func (f *vendorFleet) verifyAll(ids []mapreduce.JobID, units int, lost int64) {
	f.T.Helper()
	batched, lines := f.bill()
	live, calls := f.paid()
	var spent int64
	for _, id := range ids {
		job, err := f.Any().GetJob(f.T.Context(), id)
		if err != nil {
			f.T.Fatal(err)
		}
		spent += job.CostMicros
	}
	if spent+lost != batched+live {
		f.T.Errorf("%d jobs have spent %d, %d were lost with those who died, and the vendor has charged %d for %d lines and %d for %d calls", len(ids), spent, lost, batched, lines, live, calls)
	}
	if units != anyCalls && lines+calls != units {
		f.T.Errorf("the vendor has answered %d lines and %d calls, for %d units", lines, calls, units)
	}
	if err := f.Any().CheckStore(f.T.Context(), mapreduce.CheckQuery{}, func(found mapreduce.Finding) error {
		if found.Severity > mapreduce.Info {
			f.T.Errorf("doctor: %+v", found)
		}
		return nil
	}); err != nil {
		f.T.Error(err)
	}
}

// A job whose calls go by batch is one batch, in which each document is one line at half the price, and
// while it waits no slot is held.
func TestJobGoesByBatch(t *testing.T) {
	testenv.Unraced(t, testenv.Alike)

	enginetest.Virtually(t, func(t *testing.T) {
		f := newVendorFleet(t, 1, 1, 1000, nil, batches.Config{Takes: func(int) time.Duration { return 10 * time.Minute }})
		f.join()
		const documents = 30
		begun := time.Now()
		id := f.Any().Submit(batchedSpec(), documents)
		f.Any().Until(id, func(j *mapreduce.Job) bool { return j.ParkedUnits == documents })
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("%d units were on their way to a batch for %v", documents, took)
		}
		job := f.Any().EndWithin(id, 48*time.Hour)
		if job.State != mapreduce.JobComplete || job.FailedUnits > 0 {
			t.Fatalf("the job is %v with %d failed units: %s", job.State, job.FailedUnits, job.Error)
		}
		if n := f.server.Made(); n != 1 {
			t.Errorf("%d batches were made, want 1", n)
		}
		if took := time.Since(begun); took < 10*time.Minute || took > 15*time.Minute {
			t.Errorf("a batch of ten minutes took %v", took)
		}
		f.verifyMoney(id, documents)
	})
}

// Lines that go wrong in any way that may go right another time are asked again, each call is charged once, and
// the job is complete.
func TestLinesThatGoWrong(t *testing.T) {
	testenv.Unraced(t, testenv.Alike)

	enginetest.Virtually(t, func(t *testing.T) {
		f := newVendorFleet(t, 1, 1, 9, nil, batches.Config{Takes: func(int) time.Duration { return 2 * time.Minute }})
		f.spoil(newDie(1), 4)
		f.join()
		id := f.Any().Submit(batchedSpec(), 40)
		job := f.Any().EndWithin(id, 48*time.Hour)
		if job.State != mapreduce.JobComplete || job.FailedUnits > 0 {
			t.Fatalf("the job is %v with %d failed units: %s", job.State, job.FailedUnits, job.Error)
		}
		if _, calls := f.paid(); calls == 0 {
			t.Error("no line went wrong")
		}
		f.verifyMoney(id, anyCalls)
	})
}

// A budget that holds the calls of few units at a time is kept, and is enough for all of them: what a batch did
// not cost is there for the next, and the job is not paused for want of what comes back.
func TestBatchesKeepTheBudget(t *testing.T) {
	testenv.Unraced(t, testenv.Alike)

	enginetest.Virtually(t, func(t *testing.T) {
		f := newVendorFleet(t, 1, 1, 1000, nil, batches.Config{Takes: func(int) time.Duration { return 2 * time.Minute }})
		f.join()
		const documents = 12
		spec := batchedSpec()
		spec.Budget, spec.BudgetIn = 30_000, mapreduce.InDollars // a call may cost some 6,600 by batch, and costs 130
		id := f.Any().Submit(spec, documents)
		job := f.Any().EndWithin(id, 48*time.Hour)
		if job.State != mapreduce.JobComplete || job.FailedUnits > 0 {
			t.Fatalf("the job is %v with %d failed units: %s", job.State, job.FailedUnits, job.Error)
		}
		if n := f.server.Made(); n < 2 {
			t.Errorf("%d batches were made: the budget held back nothing", n)
		}
		f.verifyMoney(id, documents)
	})
}

// A batchWeather is how a storm of batches is.
type batchWeather struct {
	documents int
	most      int // lines of a batch
	hits      int // that happen at most
	bad       int // one line in so many goes wrong; none if it is 0
}

// The storms that are run by hand are larger: -batch.documents 10000 -batch.hits 200.
var (
	batchDocuments = flag.Int("batch.documents", 60, "documents of a storm of batches")
	batchHits      = flag.Int("batch.hits", 30, "how much happens to a job in a storm of batches at most: whoever takes over a batch whose creation was lost looks for it for minutes, in which it may die as well")
)

// storms runs some storms of each format for which runs answers.
func storms(t *testing.T, times, bad int, runs func(seller) bool) {
	w := batchWeather{documents: *batchDocuments, most: max(7, *batchDocuments/80), hits: *batchHits, bad: bad}
	for _, of := range slices.DeleteFunc(slices.Clone(sellers), func(of seller) bool { return !runs(of) }) {
		for seed := range times {
			t.Run(fmt.Sprintf("%s/%d", of.name, seed), func(t *testing.T) {
				enginetest.Virtually(t, func(t *testing.T) { batchStorm(t, of, uint64(seed), w) })
			})
		}
	}
}

// Jobs whose calls go by batch survive all of it: each document is answered once, no batch is made twice,
// and the money agrees with the vendor's own account.
func TestSoakBatchStorms(t *testing.T) {
	storms(t, testenv.Storms(t, 1), 0, func(of seller) bool { return testenv.VariantRuns(of.name == "openai") })
}

// The same holds where lines go wrong besides, one in twenty, and are told twice.
func TestSoakBatchStormsOfBadLines(t *testing.T) {
	storms(t, testenv.Storms(t, 1), 20, func(of seller) bool { return testenv.VariantRuns(of.name == "anthropic") })
}

// lineFaults are ways in which the answer to a line goes wrong that may go right another time.
var lineFaults = []fakellm.Fault{fakellm.RateLimit, fakellm.Overloaded, fakellm.ServerError, fakellm.WrongShape, fakellm.Prose, fakellm.EmptyAnswer}

// batchPoints are where orchestrators die while calls go by batch.
var batchPoints = []failpoint.Step{failpoint.Ask, failpoint.Group, failpoint.Take, failpoint.Tell, failpoint.Turn, failpoint.Bind, failpoint.Expire}

// mostLosses is how many creations are lost or refused of so many documents: after each the next try of its
// batch is later.
func mostLosses(documents int) int64 { return int64(8 + documents/200) }

// A die is thrown by a test, its vendor and its workers at once.
type die struct {
	mu     sync.Mutex // guards the variable below
	random *rand.Rand
}

func newDie(seed uint64) *die { return &die{random: rand.New(rand.NewPCG(seed, 7))} }

// IntN returns a number below n.
func (d *die) IntN(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.random.IntN(n)
}

// batchStorm runs a job through a storm.
func batchStorm(t *testing.T, of seller, seed uint64, w batchWeather) {
	random := newDie(seed)
	losses := []batches.Loss{batches.Kept, batches.Kept, batches.Kept, batches.Refused, batches.Before, batches.After, batches.ErrAfter}
	var lost atomic.Int64
	limits := batches.Limits{} // those of the vendor
	if of.wire == fakellm.OpenAI {
		limits = batches.Limits{Lines: 50_000, Bytes: 200_000_000, Window: 24 * time.Hour, Kept: 30 * 24 * time.Hour}
	}
	f := newFleetOf(t, of, seed, 2, w.most, fault.Retryable(0.01), batches.Config{
		Takes: func(int) time.Duration { return time.Duration(1+random.IntN(8)) * time.Minute },
		Creates: func(int, bool) batches.Loss {
			loss := losses[random.IntN(len(losses))]
			if loss == batches.Kept || lost.Add(1) > mostLosses(w.documents) {
				return batches.Kept
			}
			return loss
		},
		Hidden: time.Duration(random.IntN(100)) * time.Second,
		Limits: limits,
	})
	answers := w.documents
	if w.bad > 0 {
		f.spoil(random, w.bad)
		answers = anyCalls
	}

	members := []*enginetest.Member{f.join(), f.join(), f.join()}
	spec := specOf(of)
	spec.Budget, spec.BudgetIn = 100_000*int64(w.documents), mapreduce.InDollars
	id := f.Any().Submit(spec, w.documents)
	hits, begun := 0, time.Now()

	for end := time.Now().Add(3*time.Hour + time.Duration(w.hits)*10*time.Minute); ; {
		job, err := f.Any().GetJob(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if job.State == mapreduce.JobComplete && job.FailedUnits == 0 {
			break
		}
		if !job.State.Running() {
			t.Fatalf("job is %v with %d failed units: %s", job.State, job.FailedUnits, job.Error)
		}
		if time.Now().After(end) {
			for _, u := range f.Any().Units(id) {
				if u.State != mapreduce.UnitComplete {
					t.Errorf("unit %s is %v after %d attempts: %v, %+v", u.ID, u.State, u.Attempts, u.Errors, u.Parking)
				}
			}
			t.Fatalf("job has not ended: %+v", job)
		}

		// A quiet time now and then lets it get further, and in the end it has to come to one.
		<-time.After(time.Duration(1+random.IntN(40)) * time.Second)
		if hits == w.hits || random.IntN(3) == 0 {
			continue
		}
		f.hit(random, members)
		hits++
	}

	f.Faults.Heal()
	f.Faults.Settle()
	f.verifyMoney(id, answers)
	t.Logf("%s: %d batches were made of %d documents while %d things happened: %s", of.name, f.server.Made(), w.documents, hits, time.Since(begun))
}

// hit lets one thing happen: a worker dies, or leaves; an orchestrator dies, at a point of the path or
// wherever it is; or stands still.
func (f *vendorFleet) hit(random *die, members []*enginetest.Member) {
	switch i := random.IntN(len(members)); random.IntN(5) {
	case 0:
		f.Kill(members[i])
		<-time.After(time.Duration(random.IntN(20)) * time.Second)
		members[i] = f.join()
	case 1:
		members[i].Stop()
		members[i] = f.join()
	case 2:
		node := random.IntN(len(f.Nodes))
		f.Stop(node, random.IntN(2) == 0)
		<-time.After(time.Duration(random.IntN(10)) * time.Second)
		f.Start(node)
	case 3:
		zombie(f.Fleet)
	default:
		step := batchPoints[random.IntN(len(batchPoints))]
		point := step.Before()
		if random.IntN(2) == 0 {
			point = step.After()
		}
		f.KillAt(point)
		<-time.After(time.Duration(5+random.IntN(30)) * time.Second)
		for node, n := range f.Nodes {
			if n != nil && n.Gate.Dead.Load() {
				f.Stop(node, true)
				f.Start(node)
			}
		}
		f.KillAt("")
	}
}

// A job that is cancelled has its batch cancelled, and has spent what its vendor charged for lines that were
// done by then.
func TestCancelledJobCancelsItsBatches(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		f := newVendorFleet(t, 1, 1, 1000, nil, batches.Config{Takes: func(int) time.Duration { return 10 * time.Minute }})
		f.join()
		const documents = 40
		id := f.Any().Submit(batchedSpec(), documents)
		f.Any().Until(id, func(j *mapreduce.Job) bool { return j.ParkedUnits == documents })
		<-time.After(5 * time.Minute)
		if _, err := f.Any().CancelJob(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Minute)
		micros, lines := f.bill()
		job, err := f.Any().GetJob(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if lines == 0 || lines == documents || job.CostMicros != micros {
			t.Errorf("after a cancel the vendor has charged %d for %d of %d lines, and the job has spent %d", micros, lines, documents, job.CostMicros)
		}
		if err := f.Any().DeleteJob(t.Context(), id); err != nil {
			t.Errorf("deleting the job once its batch has ended: %v", err)
		}
	})
}

// An answer that does not fit is mended by another line: neither is paid for twice.
func TestAnswersOfBatchesAreMended(t *testing.T) {
	testenv.Unraced(t, testenv.Alike)

	enginetest.Virtually(t, func(t *testing.T) {
		f := newVendorFleet(t, 1, 1, 1000, nil, batches.Config{
			Takes: func(int) time.Duration { return 10 * time.Minute },
			Model: func(c fakellm.Call) fakellm.Reply {
				if len(c.Turns) == 1 {
					return fakellm.Reply{Text: "Let me think about that."}
				}
				return fakellm.Reply{Text: `{"fields":{"company":[],"total":[]},"not_found":["company","total"]}`}
			},
		})
		f.join()
		const documents = 4
		id := f.Any().Submit(batchedSpec(), documents)
		job := f.Any().EndWithin(id, 48*time.Hour)
		if job.State != mapreduce.JobComplete || job.FailedUnits > 0 {
			t.Fatalf("the job is %v with %d failed units: %s", job.State, job.FailedUnits, job.Error)
		}
		f.verifyMoney(id, 2*documents)
	})
}

// A batch whose job was deleted while no worker lived is cancelled by the one that comes next.
func TestBatchOfDeletedJobIsCancelled(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		f := newVendorFleet(t, 1, 1, 1000, nil, batches.Config{Takes: func(int) time.Duration { return 20 * time.Minute }})
		member := f.join()
		const documents = 20
		id := f.Any().Submit(batchedSpec(), documents)
		f.Any().Until(id, func(j *mapreduce.Job) bool { return j.ParkedUnits == documents })
		<-time.After(time.Minute)
		f.Kill(member)
		<-time.After(10 * time.Second)
		if _, err := f.Any().CancelJob(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if err := f.Any().DeleteJob(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if all, err := f.Any().Jobs.Batches.Orphans(t.Context()); err != nil || len(all) != 1 {
			t.Fatalf("batches that the job has left: %+v, %v", all, err)
		}

		f.join()
		<-time.After(10 * time.Minute)
		if all, err := f.Any().Jobs.Batches.Orphans(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("batches that the job has left, after ten minutes: %+v, %v", all, err)
		}
		<-time.After(10 * time.Minute)
		if _, lines := f.bill(); f.server.Made() != 1 || lines > documents/2 {
			t.Errorf("%d batches were made, and %d of %d lines were answered", f.server.Made(), lines, documents)
		}
		f.Any().Sound()
	})
}

// Calls of a job that are more than a vendor takes in one batch become several, and a vendor without limits gets one.
func TestJobBecomesSeveralBatches(t *testing.T) {
	testenv.Lengthy(t)
	for _, c := range []struct{ documents, most, made int }{{1_100, 0, 1}, {1_100, 500, 3}} {
		t.Run(fmt.Sprint(c.most), func(t *testing.T) {
			enginetest.Virtually(t, func(t *testing.T) {
				f := newVendorFleet(t, 1, 1, c.most, nil, batches.Config{Takes: func(int) time.Duration { return time.Minute }})
				f.join()
				id := f.Any().Submit(batchedSpec(), c.documents)
				if job := f.Any().EndWithin(id, 48*time.Hour); job.State != mapreduce.JobComplete || job.FailedUnits > 0 {
					t.Fatalf("the job is %v with %d failed units: %s", job.State, job.FailedUnits, job.Error)
				}
				if n := f.server.Made(); n != c.made {
					t.Errorf("%d batches were made, want %d", n, c.made)
				}
				f.verifyMoney(id, c.documents)
			})
		})
	}
}

// leaveRooms leaves all room taken that the account of the seller has, as a server does that ends batches and knows no rooms.
func (f *vendorFleet) leaveRooms() {
	err := store.NewDB(f.Faults, store.Config{}).Update(f.T.Context(), func(tx store.Tx) error {
		for n := range int64(2) {
			room := &storagev1.BatchRoom{Model: f.seller.model, Lines: 1 << 30, Tokens: 1 << 40}
			tx.Set(keys.New().Batches("mr_gone").Room(f.seller.name, n), records.Encode(room))
		}
		return nil
	})
	if err != nil {
		f.T.Fatal(err)
	}
}

// A job is put to its vendor as fast as the limits of its account allow, of whatever kind these are, and no faster: the
// vendor, which counts for itself, refuses nothing. No batch is larger than the room.
func TestLimitsOfWhatWaitsAreKept(t *testing.T) {
	testenv.Lengthy(t)

	const documents = 60
	for name, c := range map[string]struct {
		of     int
		limits batches.Limits
		took   time.Duration // at least
	}{
		"calls":   {1, batches.Limits{Lines: 100_000, Bytes: 256_000_000, Waiting: 25}, 30 * time.Minute},
		"tokens":  {0, batches.Limits{Lines: 50_000, Bytes: 200_000_000, WaitingTokens: 45_000}, 30 * time.Minute},
		"batches": {2, batches.Limits{Bytes: 2_000_000_000, WaitingBatches: 2}, 30 * time.Minute},
		"rate":    {0, batches.Limits{Lines: 50_000, Bytes: 200_000_000, CreatesPerHour: 3}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			enginetest.Virtually(t, func(t *testing.T) {
				c.limits.Window, c.limits.Kept = 24*time.Hour, 24*time.Hour
				f := newFleetOf(t, sellers[c.of], 1, 2, 10, nil, batches.Config{Takes: func(int) time.Duration { return 10 * time.Minute }, Limits: c.limits})
				f.leaveRooms()
				f.join()
				f.join()
				begun := time.Now()
				ids := []mapreduce.JobID{f.Any().Submit(specOf(f.seller), documents/2), f.Any().Submit(specOf(f.seller), documents/2)}
				for _, id := range ids {
					if job := f.Any().EndWithin(id, 48*time.Hour); job.State != mapreduce.JobComplete || job.FailedUnits > 0 {
						t.Fatalf("the job is %v with %d failed units: %s", job.State, job.FailedUnits, job.Error)
					}
				}

				refused, waited := f.server.Crowds()
				took := time.Since(begun)
				if refused > 0 || took < c.took || took > c.took+time.Hour {
					t.Errorf("%d batches were refused, %d calls waited at a time, and it took %v", refused, waited, took)
				}
				f.verifyAll(ids, documents, 0)
				t.Logf("%d batches, at most %d calls at a time, %v", f.server.Made(), waited, took)
			})
		})
	}
}

// Short answers in batches are two lines at most: what the second one asks is the same whenever its unit goes on, whatever
// characters the first answer has.
func TestShortAnswersInBatches(t *testing.T) {
	testenv.Unraced(t, testenv.Alike)

	enginetest.Virtually(t, func(t *testing.T) {
		f := newFleetOf(t, sellers[1], 1, 1, 1000, nil, batches.Config{
			Takes: func(int) time.Duration { return 10 * time.Minute },
			Model: func(c fakellm.Call) fakellm.Reply {
				if len(c.Turns) == 1 {
					return fakellm.Reply{Text: `{"fields":{"company":["GIFT & <HOME> DÉCO"],"total":[]}}`}
				}
				return fakellm.Reply{Text: `{"places":[{"number":1,"passages":[]}]}`}
			},
		})
		f.join()
		const documents = 4
		spec := specOf(f.seller)
		spec.Vars["quotes"] = "auto"
		id := f.Any().Submit(spec, documents)
		job := f.Any().EndWithin(id, 48*time.Hour)
		if job.State != mapreduce.JobComplete || job.FailedUnits > 0 {
			t.Fatalf("the job is %v with %d failed units: %s", job.State, job.FailedUnits, job.Error)
		}
		f.verifyMoney(id, 2*documents)
	})
}

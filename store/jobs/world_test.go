package jobs_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/lifecycle"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/store/storetest/driver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, driver.Leaks()...) }

// A failer is what *testing.T and *rapid.T have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Logf(format string, args ...any)
}

func open(t driver.Test) store.Store {
	t.Helper()
	return driver.Open(t)
}

// A world is a store with nodes that work on it.
type world struct {
	failer
	ctx   context.Context
	store store.Store
	space *keys.Space
	nodes []*jobs.Jobs
	micro int64
	look  *jobs.Jobs // on the store without faults
	made  int        // jobs, claims and sessions so far
}

func newWorld(t failer, s store.Store, count int) *world {
	w := &world{failer: t, ctx: context.Background(), store: s, space: keys.New(), micro: 1_700_000_000_000_000}
	for i := range count {
		w.nodes = append(w.nodes, jobs.New(store.NewDB(s, store.Config{MaxBackoff: time.Millisecond}), w.space,
			mapreduce.NodeID(fmt.Sprintf("node-%d", i)), w.clock))
	}
	w.look = w.nodes[0]
	for _, n := range w.nodes {
		_, err := n.Nodes.Beat(w.ctx, 1, nodes.News{})
		w.must(err)
	}
	return w
}

// clock never shows the same time twice.
func (w *world) clock() time.Time {
	w.micro++
	return time.UnixMicro(w.micro)
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("unexpected: %v", err)
	}
}

func (w *world) name(kind string) string {
	w.made++
	return fmt.Sprintf("%s-%06d", kind, w.made)
}

// A document has an id, a text and a number of chunks.
type document struct {
	id     string
	text   []byte
	chunks int
	parse  bool
	item   []byte // of the list that its unit is one of; may be nil
}

func texts(n int) []document {
	docs := make([]document, n)
	for i := range docs {
		docs[i] = document{id: fmt.Sprintf("doc-%05d", i), text: fmt.Appendf(nil, "text of document %d", i), chunks: 1}
	}
	return docs
}

const estimate = 10 // tokens of every map unit's first call

// batch is what is staged of the n-th document.
func batch(d document, n int64, shards int64) records.Batch {
	var b records.Batch
	sum := sha256.Sum256(d.text)
	for i := 0; i*store.ChunkSize < len(d.text); i++ {
		data := d.text[i*store.ChunkSize : min((i+1)*store.ChunkSize, len(d.text))]
		b.Blobs = append(b.Blobs, records.BlobChunk{SHA256: sum[:], Index: int64(i), Data: data})
	}
	size := int64(len(d.text))
	for i := range int64(d.chunks) {
		from, to := size*i/int64(d.chunks), size*(i+1)/int64(d.chunks)
		u := &records.Unit{
			ID: mapreduce.UnitID(d.id), Document: mapreduce.DocumentID(d.id), Kind: mapreduce.KindMap, Index: keys.MapIndex(n, i), Estimate: estimate,
			Shard: n % shards, Item: d.item,
			Source: &records.Source{
				SHA256: sum[:], Length: size, Start: from, CoreStart: from, CoreEnd: to, End: to,
				CharOffset: from, CharStart: from, CharEnd: to, ChunkIndex: i, Chunks: int64(d.chunks),
			},
		}
		switch {
		case d.parse:
			u.ID, u.Level, u.Kind = mapreduce.ParseUnit(mapreduce.DocumentID(d.id)), -1, mapreduce.KindParse
			u.Source.CharEnd, u.Source.Chunks = 0, 1
		case d.chunks > 1:
			u.ID = mapreduce.ChunkUnit(mapreduce.DocumentID(d.id), int(i))
		}
		b.Units = append(b.Units, u)
	}
	return b
}

func spec() *mapreduce.JobSpec {
	return &mapreduce.JobSpec{
		Pipeline: "extract", Provider: "scripted", Parallelism: 64, MaxAttempts: 3, ReduceBatchSize: 3, ReduceShare: 0.2,
	}
}

// mapLevel is level 0 of a job whose first stage maps documents.
var mapLevel = records.Level{Phase: mapreduce.Mapping}

// rootOf reports whether a level is the last of the tree of a job.
func rootOf(s *lifecycle.Status) bool { return s.Planned[s.Level].Unit == mapreduce.FinalUnit }

// treeOver is the tree of a job whose second stage reduces groups.
func treeOver(epoch, group int64) lifecycle.TreePlan {
	return lifecycle.TreePlan{
		Epoch: epoch, First: mapLevel, Stage: 1, Name: "reduce", Root: mapreduce.FinalUnit, Phase: mapreduce.Reducing, Group: group,
	}
}

// reduceLevel is a level of the tree of a job whose second stage reduces groups.
func reduceLevel(epoch, depth, units int64) lifecycle.Plan {
	return lifecycle.Plan{Epoch: epoch, Number: depth, Kind: mapreduce.KindReduce, Level: records.Level{
		Units: units, Stage: 1, Depth: int(depth), Source: depth - 1, Phase: mapreduce.Reducing,
		Prefix: mapreduce.TreePrefix("reduce", int(depth)),
	}}
}

// stage begins a submission and stages all of docs.
func (w *world) stage(j *jobs.Jobs, id mapreduce.JobID, s *mapreduce.JobSpec, shards int64, docs []document) (*lifecycle.Publication, error) {
	if err := j.Submit.Begin(w.ctx, id, s); err != nil {
		return nil, err
	}
	p := &lifecycle.Publication{Spec: s, Shards: shards, Level: mapLevel, MapEarly: len(docs)%2 == 0}
	for n, d := range docs {
		b := batch(d, int64(n), shards)
		if err := j.Submit.Stage(w.ctx, id, &b); err != nil {
			return nil, err
		}
		p.Documents++
		if d.parse {
			p.Parse++
			continue
		}
		p.Map += int64(len(b.Units))
		p.Characters += int64(len(d.text))
	}
	return p, nil
}

// submit submits docs as a job.
func (w *world) submit(j *jobs.Jobs, s *mapreduce.JobSpec, docs []document) mapreduce.JobID {
	w.Helper()
	id := mapreduce.JobID(w.name("job"))
	p, err := w.stage(j, id, s, 2, docs)
	w.must(err)
	won, err := j.Submit.Publish(w.ctx, id, p)
	w.must(err)
	return won
}

// A binding is a session that a node has bound.
type binding struct {
	id    mapreduce.SessionID
	epoch int64
}

func (w *world) bind(j *jobs.Jobs, id mapreduce.SessionID, holding ...mapreduce.Held) (binding, *queue.Binding) {
	w.Helper()
	epoch, _, err := j.Nodes.Epoch(w.ctx, id)
	w.must(err)
	w.micro++
	epoch = max(epoch, w.micro) + 1
	b, err := j.Sessions.Bind(w.ctx, &mapreduce.Hello{Session: id, Slots: 10, Holding: holding}, "", epoch)
	w.must(err)
	return binding{id, b.Epoch}, b
}

func (w *world) session(j *jobs.Jobs) binding {
	w.Helper()
	s, _ := w.bind(j, mapreduce.SessionID(w.name("session")))
	return s
}

// waiting returns all units of a job that may be claimed.
func (w *world) waiting(j *jobs.Jobs, id mapreduce.JobID) []records.Candidate {
	w.Helper()
	ctl, err := j.View.Control(w.ctx, id)
	w.must(err)
	var all []records.Candidate
	for shard := range ctl.Shards {
		found, _, err := j.Queue.Scan(w.ctx, id, queue.Stretch{Shard: shard, To: keys.Seq(ctl.OpenLevel()+1, 0), Returned: true})
		w.must(err)
		all = append(all, found...)
	}
	return all
}

func (w *world) turn(j *jobs.Jobs, t *queue.Turn) *queue.Result {
	w.Helper()
	res, err := j.Turns.FinishAndClaim(w.ctx, t)
	w.must(err)
	return res
}

// claim claims up to n units of a job for a session.
func (w *world) claim(j *jobs.Jobs, id mapreduce.JobID, s binding, n int) []*records.Unit {
	w.Helper()
	res := w.turn(j, &queue.Turn{Job: id, Claim: w.claimOf(j, id, s, n)})
	var units []*records.Unit
	for _, c := range res.Claimed {
		units = append(units, c.Unit)
	}
	return units
}

// claimOf asks for units among as many of those that wait as an orchestrator asks
// for at once.
func (w *world) claimOf(j *jobs.Jobs, id mapreduce.JobID, s binding, n int) *queue.Claim {
	found := w.waiting(j, id)
	return &queue.Claim{
		ID: w.name("claim"), Workers: []queue.WorkerSlots{{Session: s.id, Epoch: s.epoch, Slots: n}},
		Candidates: found[:min(len(found), records.MaxBatch)],
	}
}

func done(id mapreduce.JobID, u *records.Unit) *mapreduce.Report {
	return &mapreduce.Report{
		Job: id, Unit: u.ID, Attempt: int(u.Attempt), Outcome: mapreduce.Done,
		Output: []byte("result of " + string(u.ID)), Size: 5, Tokens: mapreduce.Tokens{In: 4, Out: 2}, CostMicros: 7,
	}
}

func errored(id mapreduce.JobID, u *records.Unit, class mapreduce.FailureClass) *mapreduce.Report {
	return &mapreduce.Report{
		Job: id, Unit: u.ID, Attempt: int(u.Attempt), Outcome: mapreduce.Errored,
		Class: class, Errors: []string{"it broke"}, Tokens: mapreduce.Tokens{In: 3},
	}
}

func returned(id mapreduce.JobID, u *records.Unit) *mapreduce.Report {
	return &mapreduce.Report{Job: id, Unit: u.ID, Attempt: int(u.Attempt), Outcome: mapreduce.Returned}
}

func parked(id mapreduce.JobID, u *records.Unit, handle string, after time.Duration) *mapreduce.Report {
	r := returned(id, u)
	r.Outcome, r.Tokens = mapreduce.Parked, mapreduce.Tokens{In: 1, Out: 1}
	r.Parking = &mapreduce.Parking{Handle: handle, WakeAfter: after, Note: "it waits for " + handle}
	return r
}

// report takes a report, alone in its turn.
func (w *world) report(j *jobs.Jobs, r *mapreduce.Report) queue.Settled {
	w.Helper()
	return w.turn(j, &queue.Turn{Job: r.Job, Reports: []queue.Report{{Report: r, Jitter: 0.5}}}).Verdicts[0]
}

// advance plans the next level of a job whose level has ended, or ends the job.
// It reports whether anything was to be done.
func (w *world) advance(j *jobs.Jobs, id mapreduce.JobID) bool {
	w.Helper()
	s, err := j.Levels.Status(w.ctx, id)
	w.must(err)
	if s.State.Running() && !s.Ended() && s.Level < 0 && s.MapEarly {
		_, err := j.Levels.PlantReady(w.ctx, id, s.Epoch, new(lifecycle.Planted), w.plant(j, id))
		w.must(err)
	}
	if !s.State.Running() || !s.Ended() {
		return false
	}
	switch {
	case s.Level < 0:
		w.must(j.Levels.PlantParsed(w.ctx, id, s.Epoch, w.plant(j, id)))
		w.must(j.Levels.StartMapping(w.ctx, id, s.Epoch, mapLevel, lifecycle.Dissolve{}))
	case s.Completed == 0:
		w.must(j.Lifecycle.Fail(w.ctx, id, records.AnyEpoch, "all failed"))
	case rootOf(s):
		w.must(j.Levels.CompleteWith(w.ctx, id, s.Epoch, []byte("the result")))
	default:
		next := nextOf(s)
		for finished := false; !finished; {
			_, finished, err = j.Levels.PlanStep(w.ctx, id, next)
			w.must(err)
		}
	}
	return true
}

// plant returns the map unit of a parsed document: its text is what the parse
// unit returned.
func (w *world) plant(j *jobs.Jobs, id mapreduce.JobID) func(context.Context, *records.Unit) ([]records.Batch, error) {
	return func(ctx context.Context, u *records.Unit) ([]records.Batch, error) {
		text, err := j.Content.Output(ctx, id, u)
		if err != nil {
			return nil, err
		}
		return []records.Batch{batch(document{id: string(u.Document), text: text, chunks: 1}, u.Index>>20, 2)}, nil
	}
}

func nextOf(s *lifecycle.Status) lifecycle.Plan {
	if s.Units > 3 {
		next := reduceLevel(s.Epoch, s.Level+1, (s.Units+2)/3)
		next.Group = 3
		return next
	}
	next := reduceLevel(s.Epoch, s.Level+1, 1)
	next.Prefix, next.Unit, next.Kind = "", mapreduce.FinalUnit, mapreduce.KindFinal
	return next
}

// run takes a job to its end on one node.
func (w *world) run(j *jobs.Jobs, id mapreduce.JobID) {
	w.Helper()
	s := w.session(j)
	for range 100 {
		for {
			units := w.claim(j, id, s, 500)
			if len(units) == 0 {
				break
			}
			t := &queue.Turn{Job: id, Release: []queue.HeldID{{Session: s.id, Claim: units[0].Claim}}}
			for _, u := range units {
				t.Reports = append(t.Reports, queue.Report{Report: done(id, u)})
			}
			w.turn(j, t)
		}
		if !w.advance(j, id) {
			return
		}
	}
	w.Fatalf("job %s does not end", id)
}

// findings are what a check finds wrong.
func (w *world) findings() []mapreduce.Finding {
	w.Helper()
	var wrong []mapreduce.Finding
	w.must(w.look.Check.Run(w.ctx, func(f mapreduce.Finding) error {
		if f.Severity == mapreduce.Wrong {
			wrong = append(wrong, f)
		}
		return nil
	}))
	return wrong
}

func (w *world) healthy() {
	w.Helper()
	for i, f := range w.findings() {
		if i == 10 {
			break
		}
		w.Errorf("check: %s %s: %s", f.Job, f.Key, f.Message)
	}
}

func (w *world) job(id mapreduce.JobID) *mapreduce.Job {
	w.Helper()
	job, err := w.look.View.Job(w.ctx, id)
	w.must(err)
	return job
}

func (w *world) unit(id mapreduce.JobID, u string) *records.Unit {
	w.Helper()
	unit, err := w.look.View.Unit(w.ctx, id, mapreduce.UnitID(u))
	w.must(err)
	return unit
}

// write changes the store behind everyone's back.
// paged returns the units of all pages. Those of a store that fails at times are
// short.
func (w *world) paged(page func(from int64) ([]*records.Unit, error)) (all []*records.Unit) {
	w.Helper()
	for from := int64(0); ; {
		units, err := page(from)
		w.must(err)
		if len(units) == 0 {
			return all
		}
		for _, u := range units {
			if u.Index < from {
				w.Fatalf("unit %d is on a page from %d on", u.Index, from)
			}
			from = u.Index + 1
		}
		all = append(all, units...)
	}
}

// level returns all units of a level.
func (w *world) level(j *jobs.Jobs, id mapreduce.JobID, level int64) []*records.Unit {
	w.Helper()
	return w.paged(func(from int64) ([]*records.Unit, error) { return j.View.UnitsFrom(w.ctx, id, level, from, 1000) })
}

// inputs returns all units that a reduce takes, read so many at a time.
func (w *world) inputs(j *jobs.Jobs, id mapreduce.JobID, u *records.Unit, page int) []*records.Unit {
	w.Helper()
	return w.paged(func(from int64) ([]*records.Unit, error) {
		return j.View.Inputs(w.ctx, id, u, max(from, u.Inputs.First), page)
	})
}

func (w *world) write(fn func(tx store.Tx)) {
	w.Helper()
	w.must(store.NewDB(w.store, store.Config{}).Update(w.ctx, func(tx store.Tx) error {
		fn(tx)
		return nil
	}))
}

// all returns every pair of the installation.
func (w *world) all() (pairs []store.KeyValue) {
	w.Helper()
	w.must(store.NewDB(w.store, store.Config{}).View(w.ctx, func(tx store.Tx) (err error) {
		pairs, _, err = tx.GetRange(w.ctx, w.space.Everything(), store.RangeOptions{})
		return err
	}))
	return pairs
}

// value reads a key, nil if it has none.
func (w *world) value(key []byte) (v []byte) {
	w.Helper()
	w.must(store.NewDB(w.store, store.Config{}).View(w.ctx, func(tx store.Tx) (err error) {
		v, err = tx.Get(w.ctx, key)
		return err
	}))
	return v
}

// get reads a key that has a value.
func (w *world) get(key []byte) []byte {
	w.Helper()
	v := w.value(key)
	if v == nil {
		w.Fatalf("nothing is under %x", key)
	}
	return v
}

// number reads a counter.
func (w *world) number(key []byte) int64 {
	w.Helper()
	v := w.value(key)
	if v == nil {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(v))
}

func little(n int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n)) }

// doubt has a node doubt that another lives.
func (w *world) doubt(j *jobs.Jobs, node mapreduce.NodeID) *nodes.Doubt {
	w.Helper()
	beats, err := j.Nodes.Beats(w.ctx)
	w.must(err)
	d, err := j.Nodes.Doubt(w.ctx, node, beats[node], w.name("doubt"))
	w.must(err)
	if d == nil {
		w.Fatalf("node %s is forgotten", node)
	}
	return d
}

// seal chains the checkpoints of a job, and wants so many in its chain at least.
// How many a call says that it chained is less after a commit of which nobody
// knew.
func (w *world) seal(j *jobs.Jobs, id mapreduce.JobID, least int64) {
	w.Helper()
	_, err := j.Audit.Seal(w.ctx, id)
	w.must(err)
	sealed, r := int64(0), w.space.Job(id).Seals()
	for _, kv := range w.all() {
		var s storagev1.Seal
		if bytes.Compare(kv.Key, r.Begin) >= 0 && bytes.Compare(kv.Key, r.End) < 0 {
			w.must(proto.Unmarshal(kv.Value, &s))
			sealed += s.Count
		}
	}
	if sealed < least {
		w.Fatalf("%d checkpoints are sealed, want at least %d", sealed, least)
	}
}

// Package jobstest has what tests of the packages of store/jobs share: a world of nodes on
// one store, what they submit and report, and a store with jobs in every kind of state.
//
// It is for tests only.
package jobstest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/lifecycle"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/jobs/staging"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/store/storetest/driver"
)

// A Failer is what *testing.T and *rapid.T have in common.
type Failer interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Logf(format string, args ...any)
}

// Open opens a store of the driver that tests run on.
func Open(t driver.Test) store.Store {
	t.Helper()
	return driver.Open(t)
}

// Kept is what is kept in a store, as one sees it who looks without faults.
type Kept struct {
	Failer
	Ctx   context.Context
	Store store.Store
	Space *keys.Space
	Look  *jobs.Jobs // on the store without faults
}

// A World is a store with nodes that work on it.
type World struct {
	Kept
	Nodes []*jobs.Jobs
	Micro int64
	Made  int // jobs, claims and sessions so far
}

// NewWorld returns a world of so many nodes on a store, each of which has given a sign of
// life.
func NewWorld(t Failer, s store.Store, count int) *World {
	w := &World{Kept: Kept{Failer: t, Ctx: context.Background(), Store: s, Space: keys.New()}, Micro: 1_700_000_000_000_000}
	for i := range count {
		w.Nodes = append(w.Nodes, jobs.New(store.NewDB(s, store.Config{MaxBackoff: time.Millisecond}), w.Space,
			mapreduce.NodeID(fmt.Sprintf("node-%d", i)), w.Clock))
	}
	w.Look = w.Nodes[0]
	for _, n := range w.Nodes {
		_, err := n.Nodes.Beat(w.Ctx, 1, nodes.News{})
		w.Must(err)
	}
	return w
}

// Clock never shows the same time twice. Nodes may look at it at once.
func (w *World) Clock() time.Time {
	return time.UnixMicro(atomic.AddInt64(&w.Micro, 1))
}

// Must ends the test if there is an error.
func (k *Kept) Must(err error) {
	k.Helper()
	if err != nil {
		k.Fatalf("unexpected: %v", err)
	}
}

// Name returns a new name of a kind.
func (w *World) Name(kind string) string {
	w.Made++
	return fmt.Sprintf("%s-%06d", kind, w.Made)
}

// A Document has an id, a text and a number of chunks.
type Document struct {
	ID     string
	Text   []byte
	Chunks int
	Parse  bool
	Item   []byte // of the list that its unit is one of; may be nil
}

// Texts returns n documents of one chunk.
func Texts(n int) []Document {
	docs := make([]Document, n)
	for i := range docs {
		docs[i] = Document{ID: fmt.Sprintf("doc-%05d", i), Text: fmt.Appendf(nil, "text of document %d", i), Chunks: 1}
	}
	return docs
}

// Estimate is how many tokens the first call of every map unit takes.
const Estimate = 10

// Batch is what is staged of the n-th document.
func Batch(d Document, n int64, shards int64) records.Batch {
	var b records.Batch
	sum := sha256.Sum256(d.Text)
	for i := 0; i*store.ChunkSize < len(d.Text); i++ {
		data := d.Text[i*store.ChunkSize : min((i+1)*store.ChunkSize, len(d.Text))]
		b.Blobs = append(b.Blobs, records.BlobChunk{SHA256: sum[:], Index: int64(i), Data: data})
	}

	size := int64(len(d.Text))
	for i := range int64(d.Chunks) {
		from, to := size*i/int64(d.Chunks), size*(i+1)/int64(d.Chunks)
		u := &records.Unit{
			ID: mapreduce.UnitID(d.ID), Document: mapreduce.DocumentID(d.ID), Kind: mapreduce.KindMap, Index: keys.MapIndex(n, i), Estimate: Estimate,
			Shard: n % shards, Item: d.Item,
			Source: &records.Source{
				SHA256: sum[:], Length: size, Start: from, CoreStart: from, CoreEnd: to, End: to,
				CharOffset: from, CharStart: from, CharEnd: to, ChunkIndex: i, Chunks: int64(d.Chunks),
			},
		}

		switch {
		case d.Parse:
			u.ID, u.Level, u.Kind = mapreduce.ParseUnit(mapreduce.DocumentID(d.ID)), -1, mapreduce.KindParse
			u.Source.CharEnd, u.Source.Chunks = 0, 1
		case d.Chunks > 1:
			u.ID = mapreduce.ChunkUnit(mapreduce.DocumentID(d.ID), int(i))
		}
		b.Units = append(b.Units, u)
	}
	return b
}

// Spec is what most jobs of tests are submitted as.
func Spec() *mapreduce.JobSpec {
	return &mapreduce.JobSpec{
		Pipeline: "extract", Provider: "scripted", Parallelism: 64, MaxAttempts: 3, ReduceBatchSize: 3, ReduceShare: 0.2,
	}
}

// MapLevel is level 0 of a job whose first stage maps documents.
var MapLevel = records.Level{Phase: mapreduce.Mapping}

// RootOf reports whether a level is the last of the tree of a job.
func RootOf(s *lifecycle.Status) bool { return s.Planned[s.Level].Unit == mapreduce.FinalUnit }

// TreeOver is the tree of a job whose second stage reduces groups.
func TreeOver(epoch, group int64) lifecycle.TreePlan {
	return lifecycle.TreePlan{
		Epoch: epoch, First: MapLevel, Stage: 1, Name: "reduce", Root: mapreduce.FinalUnit, Phase: mapreduce.Reducing, Group: group,
	}
}

// ReduceLevel is a level of the tree of a job whose second stage reduces groups.
func ReduceLevel(epoch, depth, units int64) lifecycle.Plan {
	return lifecycle.Plan{Epoch: epoch, Number: depth, Kind: mapreduce.KindReduce, Level: records.Level{
		Units: units, Stage: 1, Depth: int(depth), Source: depth - 1, Phase: mapreduce.Reducing,
		Prefix: mapreduce.TreePrefix("reduce", int(depth)),
	}}
}

// Stage begins a submission and stages all of docs.
func (w *World) Stage(j *jobs.Jobs, id mapreduce.JobID, s *mapreduce.JobSpec, shards int64, docs []Document) (*staging.Publication, error) {
	if err := j.Submit.Begin(w.Ctx, id, s); err != nil {
		return nil, err
	}
	p := &staging.Publication{Spec: s, Shards: shards, Level: MapLevel, MapEarly: len(docs)%2 == 0, Plan: &mapreduce.JobPlan{Units: int64(len(docs))}}
	for n, d := range docs {
		b := Batch(d, int64(n), shards)
		if err := j.Submit.Stage(w.Ctx, id, &b); err != nil {
			return nil, err
		}
		p.Documents++
		if d.Parse {
			p.Parse++
			continue
		}
		p.Map += int64(len(b.Units))
		p.Characters += int64(len(d.Text))
	}
	return p, nil
}

// Submit submits docs as a job.
func (w *World) Submit(j *jobs.Jobs, s *mapreduce.JobSpec, docs []Document) mapreduce.JobID {
	w.Helper()
	id := mapreduce.JobID(w.Name("job"))
	p, err := w.Stage(j, id, s, 2, docs)
	w.Must(err)
	won, err := j.Submit.Publish(w.Ctx, id, p)
	w.Must(err)
	return won
}

// A Binding is a session that a node has bound.
type Binding struct {
	ID    mapreduce.SessionID
	Epoch int64
}

// Bind binds a session, which says what it holds, to a node.
func (w *World) Bind(j *jobs.Jobs, id mapreduce.SessionID, holding ...protocol.Held) (Binding, *queue.Binding) {
	w.Helper()
	epoch, _, err := j.Nodes.Epoch(w.Ctx, id)
	w.Must(err)
	w.Micro++
	epoch = max(epoch, w.Micro) + 1
	b, err := j.Sessions.Bind(w.Ctx, &protocol.Hello{Session: id, Slots: 10, Holding: holding}, "", epoch, nil)
	w.Must(err)
	return Binding{id, b.Epoch}, b
}

// Session binds a new session to a node.
func (w *World) Session(j *jobs.Jobs) Binding {
	w.Helper()
	s, _ := w.Bind(j, mapreduce.SessionID(w.Name("session")))
	return s
}

// Waiting returns all units of a job that may be claimed.
func (w *World) Waiting(j *jobs.Jobs, id mapreduce.JobID) []records.Candidate {
	w.Helper()
	ctl, err := j.View.Control(w.Ctx, id)
	w.Must(err)
	var all []records.Candidate
	for shard := range ctl.Shards {
		found, _, err := j.Queue.Scan(w.Ctx, id, queue.Stretch{Shard: shard, To: keys.Seq(ctl.OpenLevel()+1, 0), Returned: true})
		w.Must(err)
		all = append(all, found...)
	}
	return all
}

// Turn runs a turn.
func (w *World) Turn(j *jobs.Jobs, t *queue.Turn) *queue.Result {
	w.Helper()
	res, err := j.Turns.FinishAndClaim(w.Ctx, t)
	w.Must(err)
	return res
}

// Claim claims up to n units of a job for a session.
func (w *World) Claim(j *jobs.Jobs, id mapreduce.JobID, s Binding, n int) []*records.Unit {
	w.Helper()
	res := w.Turn(j, &queue.Turn{Job: id, Claim: w.ClaimOf(j, id, s, n)})
	var units []*records.Unit
	for _, c := range res.Claimed {
		units = append(units, c.Unit)
	}
	return units
}

// ClaimOf asks for units among as many of those that wait as an orchestrator asks
// for at once.
func (w *World) ClaimOf(j *jobs.Jobs, id mapreduce.JobID, s Binding, n int) *queue.Claim {
	found := w.Waiting(j, id)
	return &queue.Claim{
		ID: w.Name("claim"), Workers: []queue.WorkerSlots{{Session: s.ID, Epoch: s.Epoch, Slots: n}},
		Candidates: found[:min(len(found), records.MaxBatch)],
	}
}

// Done is the report of an attempt that has a result.
func Done(id mapreduce.JobID, u *records.Unit) *protocol.Report {
	return &protocol.Report{
		Job: id, Unit: u.ID, Attempt: int(u.Attempt), Outcome: protocol.Done,
		Output: []byte("result of " + string(u.ID)), Size: 5, Tokens: mapreduce.Tokens{In: 4, Out: 2}, CostMicros: 7,
		Charges: []mapreduce.Charge{
			{Model: "scripted/a", Tier: "flex", Calls: 1, Tokens: mapreduce.Tokens{In: 2, Out: 1}, CostMicros: 2},
			{Model: "scripted/b", Tier: "standard", Calls: 2, Tokens: mapreduce.Tokens{In: 1, Out: 1}, CostMicros: 4, Unpriced: 1},
		},
	}
}

// Errored is the report of an attempt that failed.
func Errored(id mapreduce.JobID, u *records.Unit, class protocol.FailureClass) *protocol.Report {
	return &protocol.Report{
		Job: id, Unit: u.ID, Attempt: int(u.Attempt), Outcome: protocol.Errored,
		Class: class, Errors: []string{"it broke"}, Tokens: mapreduce.Tokens{In: 3},
	}
}

// Returned is the report of an attempt that is handed back.
func Returned(id mapreduce.JobID, u *records.Unit) *protocol.Report {
	return &protocol.Report{Job: id, Unit: u.ID, Attempt: int(u.Attempt), Outcome: protocol.Returned}
}

// Parked is the report of an attempt that waits for a handle.
func Parked(id mapreduce.JobID, u *records.Unit, handle string, after time.Duration) *protocol.Report {
	r := Returned(id, u)
	r.Outcome, r.Tokens = protocol.Parked, mapreduce.Tokens{In: 1, Out: 1}
	r.Parking = &mapreduce.Parking{Handle: handle, WakeAfter: after, Note: "it waits for " + handle}
	return r
}

// Report takes a report, alone in its turn.
func (w *World) Report(j *jobs.Jobs, r *protocol.Report) queue.Settled {
	w.Helper()
	return w.Turn(j, &queue.Turn{Job: r.Job, Reports: []queue.Report{{Report: r, Jitter: 0.5}}}).Verdicts[0]
}

// Advance plans the next level of a job whose level has ended, or ends the job.
// It reports whether anything was to be done.
func (w *World) Advance(j *jobs.Jobs, id mapreduce.JobID) bool {
	w.Helper()
	s, err := j.Levels.Status(w.Ctx, id)
	w.Must(err)

	if s.State.Running() && !s.Ended() && s.Level < 0 && s.MapEarly {
		_, err := j.Levels.InsertReady(w.Ctx, id, s.Epoch, new(lifecycle.Inserted), w.DocumentUnits(j, id))
		w.Must(err)
	}
	if !s.State.Running() || !s.Ended() {
		return false
	}

	switch {
	case s.Level < 0:
		w.Must(j.Levels.InsertParsed(w.Ctx, id, s.Epoch, w.DocumentUnits(j, id)))
		w.Must(j.Levels.StartMapping(w.Ctx, id, s.Epoch, MapLevel, lifecycle.Dissolve{}))
	case s.Completed == 0:
		w.Must(j.Lifecycle.Fail(w.Ctx, id, records.AnyEpoch, "all failed"))
	case RootOf(s):
		w.Must(j.Levels.CompleteWith(w.Ctx, id, s.Epoch, []byte("the result")))
	default:
		next := NextOf(s)
		for finished := false; !finished; {
			_, finished, err = j.Levels.PlanStep(w.Ctx, id, next)
			w.Must(err)
		}
	}
	return true
}

// DocumentUnits returns the map unit of a parsed document: its text is what the parse
// unit returned.
func (w *World) DocumentUnits(j *jobs.Jobs, id mapreduce.JobID) func(context.Context, *records.Unit) ([]records.Batch, error) {
	return func(ctx context.Context, u *records.Unit) ([]records.Batch, error) {
		text, err := j.Content.Output(ctx, id, u)
		if err != nil {
			return nil, err
		}
		return []records.Batch{Batch(Document{ID: string(u.Document), Text: text, Chunks: 1}, u.Index>>20, 2)}, nil
	}
}

// NextOf plans the level behind one that has ended: groups of three, and at last the root.
func NextOf(s *lifecycle.Status) lifecycle.Plan {
	if s.Units > 3 {
		next := ReduceLevel(s.Epoch, s.Level+1, (s.Units+2)/3)
		next.Group = 3
		return next
	}
	next := ReduceLevel(s.Epoch, s.Level+1, 1)
	next.Prefix, next.Unit, next.Kind = "", mapreduce.FinalUnit, mapreduce.KindFinal
	return next
}

// Run takes a job to its end on one node.
func (w *World) Run(j *jobs.Jobs, id mapreduce.JobID) {
	w.Helper()
	s := w.Session(j)
	for range 100 {
		for {
			units := w.Claim(j, id, s, 500)
			if len(units) == 0 {
				break
			}
			t := &queue.Turn{Job: id, Release: []queue.HeldID{{Session: s.ID, Claim: units[0].Claim}}}
			for _, u := range units {
				t.Reports = append(t.Reports, queue.Report{Report: Done(id, u)})
			}
			w.Turn(j, t)
		}
		if !w.Advance(j, id) {
			return
		}
	}
	w.Fatalf("job %s does not end", id)
}

// Findings are what a check finds wrong.
func (k *Kept) Findings() []mapreduce.Finding {
	k.Helper()
	var wrong []mapreduce.Finding
	k.Must(k.Look.Check.Run(k.Ctx, func(f mapreduce.Finding) error {
		if f.Severity == mapreduce.Wrong {
			wrong = append(wrong, f)
		}
		return nil
	}))
	return wrong
}

// Healthy checks that a check finds nothing wrong.
func (k *Kept) Healthy() {
	k.Helper()
	for i, f := range k.Findings() {
		if i == 10 {
			break
		}
		k.Errorf("check: %s %s: %s", f.Job, f.Key, f.Message)
	}
}

// Job returns a job as it is.
func (k *Kept) Job(id mapreduce.JobID) *mapreduce.Job {
	k.Helper()
	job, err := k.Look.View.Job(k.Ctx, id)
	k.Must(err)
	return job
}

// Unit returns a unit as it is.
func (k *Kept) Unit(id mapreduce.JobID, u string) *records.Unit {
	k.Helper()
	unit, err := k.Look.View.Unit(k.Ctx, id, mapreduce.UnitID(u))
	k.Must(err)
	return unit
}

// Paged returns the units of all pages. Those of a store that fails at times are
// short.
func (k *Kept) Paged(page func(from int64) ([]*records.Unit, error)) (all []*records.Unit) {
	k.Helper()
	for from := int64(0); ; {
		units, err := page(from)
		k.Must(err)
		if len(units) == 0 {
			return all
		}
		for _, u := range units {
			if u.Index < from {
				k.Fatalf("unit %d is on a page from %d on", u.Index, from)
			}
			from = u.Index + 1
		}
		all = append(all, units...)
	}
}

// Level returns all units of a level.
func (k *Kept) Level(j *jobs.Jobs, id mapreduce.JobID, level int64) []*records.Unit {
	k.Helper()
	return k.Paged(func(from int64) ([]*records.Unit, error) { return j.View.UnitsFrom(k.Ctx, id, level, from, 1000) })
}

// Inputs returns all units that a reduce takes, read so many at a time.
func (k *Kept) Inputs(j *jobs.Jobs, id mapreduce.JobID, u *records.Unit, page int) []*records.Unit {
	k.Helper()
	return k.Paged(func(from int64) ([]*records.Unit, error) {
		return j.View.Inputs(k.Ctx, id, u, max(from, u.Inputs.First), page)
	})
}

// Write changes the store behind everyone's back.
func (k *Kept) Write(fn func(tx store.Tx)) {
	k.Helper()
	k.Must(store.NewDB(k.Store, store.Config{}).Update(k.Ctx, func(tx store.Tx) error {
		fn(tx)
		return nil
	}))
}

// All returns every pair of the installation.
func (k *Kept) All() (pairs []store.KeyValue) {
	k.Helper()
	k.Must(store.NewDB(k.Store, store.Config{}).View(k.Ctx, func(tx store.Tx) (err error) {
		pairs, _, err = tx.GetRange(k.Ctx, k.Space.Everything(), store.RangeOptions{})
		return err
	}))
	return pairs
}

// Value reads a key, nil if it has none.
func (k *Kept) Value(key []byte) (v []byte) {
	k.Helper()
	k.Must(store.NewDB(k.Store, store.Config{}).View(k.Ctx, func(tx store.Tx) (err error) {
		v, err = tx.Get(k.Ctx, key)
		return err
	}))
	return v
}

// Get reads a key that has a value.
func (k *Kept) Get(key []byte) []byte {
	k.Helper()
	v := k.Value(key)
	if v == nil {
		k.Fatalf("nothing is under %x", key)
	}
	return v
}

// Number reads a counter.
func (k *Kept) Number(key []byte) int64 {
	k.Helper()
	v := k.Value(key)
	if v == nil {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(v))
}

// Little encodes a counter.
func Little(n int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n)) }

// Doubt has a node doubt that another lives.
func (w *World) Doubt(j *jobs.Jobs, node mapreduce.NodeID) *nodes.Doubt {
	w.Helper()
	beats, err := j.Nodes.Beats(w.Ctx)
	w.Must(err)
	d, err := j.Nodes.Doubt(w.Ctx, node, beats[node], w.Name("doubt"))
	w.Must(err)
	if d == nil {
		w.Fatalf("node %s is forgotten", node)
	}
	return d
}

// Seal chains the checkpoints of a job, and wants so many in its chain at least.
// How many a call says that it chained is less after a commit of which nobody
// knew.
func (w *World) Seal(j *jobs.Jobs, id mapreduce.JobID, least int64) {
	w.Helper()
	_, err := j.Audit.Seal(w.Ctx, id)
	w.Must(err)
	sealed, r := int64(0), w.Space.Job(id).Seals()
	for _, kv := range w.All() {
		var s storagev1.Seal
		if bytes.Compare(kv.Key, r.Begin) >= 0 && bytes.Compare(kv.Key, r.End) < 0 {
			w.Must(proto.Unmarshal(kv.Value, &s))
			sealed += s.Count
		}
	}
	if sealed < least {
		w.Fatalf("%d checkpoints are sealed, want at least %d", sealed, least)
	}
}

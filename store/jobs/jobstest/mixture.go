package jobstest

import (
	"bytes"
	"crypto/sha256"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/content"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A Mixture is a store with jobs in every kind of state: "end" is complete,
// "mid" is in the middle of mapping with units waiting, backing off, parked, woken by
// a call, processed, failed and complete, one of them with a large result.
type Mixture struct {
	*World
	End, Mid mapreduce.JobID
	Binding  Binding
	Busy     *records.Unit // processed
	Large    *records.Unit // complete, in chunks
	Failed   *records.Unit
	Backing  *records.Unit
	Parked   *records.Unit
	Woken    *records.Unit // waiting to be claimed again
}

// NewMixture makes one.
func NewMixture(t *testing.T) *Mixture {
	m := &Mixture{World: NewWorld(t, Open(t), 2)}
	j := m.Nodes[0]
	s := Spec()
	s.RequestID, s.Budget = "request-1", 10_000
	m.End = m.Submit(j, s, append(Texts(7), Document{ID: "cut", Text: []byte("a longer text"), Chunks: 3}))
	m.Run(j, m.End)
	m.Decide(j, m.End, NewDecision("0.0", "total", mapreduce.ReviewCorrect, "request-1"))
	m.Decide(j, m.End, NewDecision("0.0", "total", mapreduce.ReviewWithdraw, "request-2"))
	m.Decide(j, m.End, NewDecision("1048576.0", "total", mapreduce.ReviewAccept, ""))

	_, err := j.Review.Claim(m.Ctx, mapreduce.Claim{Job: m.End, Records: []mapreduce.RecordID{"1048576.0"}, Time: time.Minute}, "ann")
	m.Must(err)

	long := bytes.Repeat([]byte("0123456789abcdef"), 10_000)
	m.Mid = m.Submit(j, Spec(), append(Texts(9), Document{ID: "long", Text: long, Chunks: 2}))
	m.Binding = m.Session(j)
	units := m.Claim(j, m.Mid, m.Binding, 7)

	m.Parked, m.Woken = units[5], units[6]
	m.Report(j, Parked(m.Mid, m.Parked, "batch", time.Hour))
	m.Report(j, Parked(m.Mid, m.Woken, "person", 0))
	_, _, err = j.Queue.Wake(m.Ctx, m.Mid, m.Woken.ID, protocol.WakeCall{Handle: "person", Answer: []byte("yes")})
	m.Must(err)

	m.Busy, m.Failed, m.Backing, m.Large = units[0], units[1], units[2], units[3]
	m.Report(j, Errored(m.Mid, m.Failed, protocol.PermanentUnit))
	m.Report(j, Errored(m.Mid, m.Backing, protocol.Retryable))
	m.Publish(j, m.Mid, m.Large, long)
	m.Report(j, Done(m.Mid, units[4]))
	m.Remember(j, m.Mid, m.Busy, 0, "a", "b")
	m.Find(j, m.Mid, m.Busy, 0, "a page", string(long[:3*store.ChunkSize/2]))

	if _, err := j.Grants.Grant(m.Ctx, m.Mid, nodes.GrantRequest{Slots: 10, Parallelism: 64}); err != nil {
		t.Fatal(err)
	}

	m.Seal(j, m.End, 1)
	m.Healthy()
	return m
}

// Publish completes a unit with a result that is stored in chunks.
func (w *World) Publish(j *jobs.Jobs, id mapreduce.JobID, u *records.Unit, data []byte) {
	w.Helper()
	sum := sha256.Sum256(data)
	w.Put(j, id, u, data, sum[:])
	r := Done(id, u)
	r.Output, r.Length, r.SHA256 = nil, int64(len(data)), sum[:]
	w.Report(j, r)
}

// PutOf is the put of an output by the session that holds a unit.
func PutOf(id mapreduce.JobID, u *records.Unit, data, sum []byte) *content.Put {
	return &content.Put{
		Held:    protocol.Held{Job: id, Unit: u.ID, Attempt: int(u.Attempt)},
		Session: u.Session, Length: int64(len(data)), SHA256: sum,
	}
}

// Put stores an output.
func (w *World) Put(j *jobs.Jobs, id mapreduce.JobID, u *records.Unit, data, sum []byte) {
	w.Helper()
	for at := 0; at < len(data); at += content.MaxPutBytes {
		w.Must(j.Content.StorePut(w.Ctx, PutOf(id, u, data, sum), int64(at), data[at:min(at+content.MaxPutBytes, len(data))]))
	}
}

// Edit changes a stored message.
func Edit[M proto.Message](m *Mixture, key []byte, msg M, change func(M)) func(tx store.Tx) {
	m.Helper()
	m.Must(proto.Unmarshal(m.Get(key), msg))
	change(msg)
	v, err := proto.Marshal(msg)
	m.Must(err)
	return func(tx store.Tx) { tx.Set(key, v) }
}

// EditUnit changes the record of a unit.
func (m *Mixture) EditUnit(id mapreduce.JobID, u string, change func(u *storagev1.Unit)) func(tx store.Tx) {
	return Edit(m, m.Space.Job(id).Unit(mapreduce.UnitID(u)), new(storagev1.Unit), change)
}

// First returns the first pair of a range.
func (m *Mixture) First(r store.Range) store.KeyValue {
	for _, kv := range m.All() {
		if bytes.Compare(kv.Key, r.Begin) >= 0 && bytes.Compare(kv.Key, r.End) < 0 {
			return kv
		}
	}
	m.Fatalf("nothing is in %x", r.Begin)
	return store.KeyValue{}
}

// ClearFirst clears the first pair of a range.
func (m *Mixture) ClearFirst(r store.Range) func(tx store.Tx) {
	key := m.First(r).Key
	return func(tx store.Tx) { tx.Clear(key) }
}

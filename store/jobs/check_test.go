package jobs_test

import (
	"bytes"
	"crypto/sha256"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/content"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// mixture makes a store with jobs in every kind of state: "end" is complete,
// "mid" is in the middle of mapping with units waiting, backing off, parked, woken by
// a call, processed, failed and complete, one of them with a large result.
type mixture struct {
	*world
	end, mid mapreduce.JobID
	binding  binding
	busy     *records.Unit // processed
	large    *records.Unit // complete, in chunks
	failed   *records.Unit
	backing  *records.Unit
	parked   *records.Unit
	woken    *records.Unit // waiting to be claimed again
}

func newMixture(t *testing.T) *mixture {
	m := &mixture{world: newWorld(t, open(t), 2)}
	j := m.nodes[0]
	s := spec()
	s.RequestID, s.Budget = "request-1", 10_000
	m.end = m.submit(j, s, append(texts(7), document{id: "cut", text: []byte("a longer text"), chunks: 3}))
	m.run(j, m.end)
	long := bytes.Repeat([]byte("0123456789abcdef"), 10_000)
	m.mid = m.submit(j, spec(), append(texts(9), document{id: "long", text: long, chunks: 2}))
	m.binding = m.session(j)
	units := m.claim(j, m.mid, m.binding, 7)
	m.parked, m.woken = units[5], units[6]
	m.report(j, parked(m.mid, m.parked, "batch", time.Hour))
	m.report(j, parked(m.mid, m.woken, "person", 0))
	_, _, err := j.Queue.Wake(m.ctx, m.mid, m.woken.ID, mapreduce.WakeCall{Handle: "person", Answer: []byte("yes")})
	m.must(err)
	m.busy, m.failed, m.backing, m.large = units[0], units[1], units[2], units[3]
	m.report(j, errored(m.mid, m.failed, mapreduce.PermanentUnit))
	m.report(j, errored(m.mid, m.backing, mapreduce.Retryable))
	m.publish(j, m.mid, m.large, long)
	m.report(j, done(m.mid, units[4]))
	m.remember(j, m.mid, m.busy, 0, "a", "b")
	m.find(j, m.mid, m.busy, 0, "a page", string(long[:3*store.ChunkSize/2]))
	if _, err := j.Grants.Grant(m.ctx, m.mid, nodes.GrantRequest{Slots: 10, Parallelism: 64}); err != nil {
		t.Fatal(err)
	}
	m.seal(j, m.end, 1)
	m.healthy()
	return m
}

// publish completes a unit with a result that is stored in chunks.
func (w *world) publish(j *jobs.Jobs, id mapreduce.JobID, u *records.Unit, data []byte) {
	w.Helper()
	sum := sha256.Sum256(data)
	w.put(j, id, u, data, sum[:])
	r := done(id, u)
	r.Output, r.Length, r.SHA256 = nil, int64(len(data)), sum[:]
	w.report(j, r)
}

// putOf is the put of an output by the session that holds a unit.
func putOf(id mapreduce.JobID, u *records.Unit, data, sum []byte) *content.Put {
	return &content.Put{
		Held:    mapreduce.Held{Job: id, Unit: u.ID, Attempt: int(u.Attempt)},
		Session: u.Session, Length: int64(len(data)), SHA256: sum,
	}
}

// put stores an output.
func (w *world) put(j *jobs.Jobs, id mapreduce.JobID, u *records.Unit, data, sum []byte) {
	w.Helper()
	for at := 0; at < len(data); at += content.MaxPutBytes {
		w.must(j.Content.StorePut(w.ctx, putOf(id, u, data, sum), int64(at), data[at:min(at+content.MaxPutBytes, len(data))]))
	}
}

// edit changes a stored message.
func edit[M proto.Message](m *mixture, key []byte, msg M, change func(M)) func(tx store.Tx) {
	m.Helper()
	m.must(proto.Unmarshal(m.get(key), msg))
	change(msg)
	v, err := proto.Marshal(msg)
	m.must(err)
	return func(tx store.Tx) { tx.Set(key, v) }
}

func (m *mixture) editUnit(id mapreduce.JobID, u string, change func(u *storagev1.Unit)) func(tx store.Tx) {
	return edit(m, m.space.Job(id).Unit(mapreduce.UnitID(u)), new(storagev1.Unit), change)
}

func (m *mixture) first(r store.Range) store.KeyValue {
	for _, kv := range m.all() {
		if bytes.Compare(kv.Key, r.Begin) >= 0 && bytes.Compare(kv.Key, r.End) < 0 {
			return kv
		}
	}
	m.Fatalf("nothing is in %x", r.Begin)
	return store.KeyValue{}
}

func (m *mixture) clearFirst(r store.Range) func(tx store.Tx) {
	key := m.first(r).Key
	return func(tx store.Tx) { tx.Clear(key) }
}

// orders matches what nobody can do to a store: no command clears a key.
var orders = regexp.MustCompile(`\b(clear|remove) (it|them|what|the key)`)

func TestCheckFindsEveryBreach(t *testing.T) {
	testenv.SlowOnFDB(t)

	type corruption func(tx store.Tx)
	tests := []struct {
		name string
		of   func(m *mixture) corruption
		want string // part of one finding
	}{
		{"queue entry lost", func(m *mixture) corruption { return m.clearFirst(m.space.Queues(m.mid).AllReady()) }, "has to wait"},
		{"queue entry of a unit that is processed", func(m *mixture) corruption {
			return func(tx store.Tx) {
				tx.Set(m.space.Queues(m.mid).Ready(0, keys.ClassRequeued, keys.Seq(0, m.busy.Index)), []byte(m.busy.ID))
			}
		}, "nothing uses the entry any more"},
		{"queue entry in another shard", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.space.Queues(m.mid).Ready(7, keys.ClassNew, 99), []byte("doc-00008")) }
		}, "nothing uses the entry any more"},
		{"queue entry of nothing", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.space.Queues(m.mid).Ready(0, keys.ClassNew, 99), []byte("nobody")) }
		}, `of unit "nobody", which is not there`},
		{"delay lost", func(m *mixture) corruption { return m.clearFirst(m.space.Queues(m.mid).AllDelayed()) }, "has to wait"},
		{"delay of a unit that failed", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.space.Queues(m.mid).Delayed(m.failed.ID), nil) }
		}, "nothing uses the entry any more"},
		{"failed entry lost", func(m *mixture) corruption { return m.clearFirst(m.space.Queues(m.mid).AllFailed()) }, "is listed as failed: false"},
		{"failed entry of a unit that is processed", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.space.Queues(m.mid).Failed(0, m.busy.ID), nil) }
		}, "is listed as failed: true"},
		{"order lost", func(m *mixture) corruption { return m.clearFirst(m.space.Job(m.mid).OrderFrom(0, 0)) }, "in the order"},
		{"order of nothing", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.space.Job(m.mid).Order(0, 1<<40), []byte("nobody")) }
		}, "which is not there"},
		{"session lost", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Clear(m.space.Nodes().Session(m.binding.id)) }
		}, "which is not there"},
		{"claim lost", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Clear(m.space.Nodes().Held(m.binding.id, m.busy.Claim)) }
		}, "is not in claim"},
		{"claim garbled", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.space.Nodes().Held(m.binding.id, "second"), []byte{0xff}) }
		}, "cannot be decoded"},
		{"attempt raised", func(m *mixture) corruption {
			return m.editUnit(m.mid, string(m.busy.ID), func(u *storagev1.Unit) { u.Attempt++ })
		}, "is not in claim"},
		{"attempts negative", func(m *mixture) corruption {
			return m.editUnit(m.mid, string(m.busy.ID), func(u *storagev1.Unit) { u.Failures = 9 })
		}, "failures"},
		{"more stored than there is", func(m *mixture) corruption {
			return m.editUnit(m.mid, string(m.busy.ID), func(u *storagev1.Unit) { u.Put = &storagev1.Put{Length: 1, Stored: 2} })
		}, "2 of 1 bytes"},
		{"output of an ended unit being stored", func(m *mixture) corruption {
			return m.editUnit(m.end, "doc-00000", func(u *storagev1.Unit) { u.Put = &storagev1.Put{Length: 2, Stored: 1} })
		}, "1 of 2 bytes"},
		{"unit in no state", func(m *mixture) corruption {
			return m.editUnit(m.mid, string(m.busy.ID), func(u *storagev1.Unit) { u.Status = 99 })
		}, "in no state"},
		{"unit renamed", func(m *mixture) corruption {
			return m.editUnit(m.mid, string(m.busy.ID), func(u *storagev1.Unit) { u.UnitId = "other" })
		}, `of unit "other"`},
		{"unit garbled", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.space.Job(m.mid).Unit(m.busy.ID), []byte{0xff}) }
		}, "cannot be decoded"},
		{"unit lost", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Clear(m.space.Job(m.end).Unit("doc-00000")) }
		}, "level 0 has 9 units, and 10 were planned"},
		{"reservation changed", func(m *mixture) corruption {
			return m.editUnit(m.mid, string(m.busy.ID), func(u *storagev1.Unit) { u.Reserved++ })
		}, "counter reserved of node"},
		{"reservation of a unit that ended", func(m *mixture) corruption {
			return m.editUnit(m.end, "doc-00000", func(u *storagev1.Unit) { u.Reserved = 1 })
		}, "tokens are reserved for it"},
		{"tokens changed", func(m *mixture) corruption {
			return m.editUnit(m.end, "doc-00000", func(u *storagev1.Unit) { u.TokensIn++ })
		}, "counter tokens in"},
		{"cost changed", func(m *mixture) corruption {
			return m.editUnit(m.end, "doc-00000", func(u *storagev1.Unit) { u.CostMicros++ })
		}, "counter cost"},
		{"size changed", func(m *mixture) corruption {
			return m.editUnit(m.end, "doc-00000", func(u *storagev1.Unit) { u.Result.Size++ })
		}, "counter size"},
		{"counter completed", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Add(m.space.Job(m.end).Counter(keys.Completed, 0, "node-0"), 1) }
		}, "counter completed of level 0"},
		{"counter running", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Add(m.space.Job(m.mid).Counter(keys.Running, 0, "node-1"), 1) }
		}, "counter running"},
		{"counter failed", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Add(m.space.Job(m.mid).Counter(keys.Failed, 0, "node-1"), -1) }
		}, "counter failed"},
		{"counter claimed", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Add(m.space.Job(m.mid).Counter(keys.Claimed, 0, "node-1"), 1) }
		}, "counter claimed"},
		{"counter of documents", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Add(m.space.Job(m.end).Counter(keys.DocumentsMapped, 0, "node-0"), -1) }
		}, "counter documents mapped"},
		{"counter of characters", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Add(m.space.Job(m.end).Counter(keys.CharactersMapped, 0, "node-0"), -1) }
		}, "counter characters mapped"},
		{"counter garbled", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.space.Job(m.end).Counter(keys.Completed, 0, "node-0"), []byte("1")) }
		}, "no counter"},
		{"counter unknown", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.space.Job(m.end).Counter(77, 0, "node-0"), little(1)) }
		}, "no counter"},
		{"charge lost", func(m *mixture) corruption {
			return m.editUnit(m.mid, string(m.busy.ID), func(u *storagev1.Unit) { u.Charged = 5 })
		}, "counter charged of node"},
		{"small result changed", func(m *mixture) corruption {
			return m.editUnit(m.end, "doc-00000", func(u *storagev1.Unit) { u.Result.Inline[0]++ })
		}, "its hash differs"},
		{"result of another attempt", func(m *mixture) corruption {
			return m.editUnit(m.end, "doc-00000", func(u *storagev1.Unit) { u.Result.Attempt++ })
		}, "has the result of attempt 2"},
		{"large result changed", func(m *mixture) corruption {
			return func(tx store.Tx) {
				tx.Set(m.space.Outputs(m.mid).ResultChunk(m.large.ID, 1, 1), bytes.Repeat([]byte("x"), store.ChunkSize))
			}
		}, "the result of unit"},
		{"chunk lost", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Clear(m.space.Outputs(m.mid).ResultChunk(m.large.ID, 1, 1)) }
		}, "the result of unit"},
		{"chunk of another attempt", func(m *mixture) corruption {
			return func(tx store.Tx) {
				tx.Set(m.space.Outputs(m.mid).ResultChunk(m.large.ID, 9, 0), []byte("x"))
			}
		}, "nobody will read this chunk"},
		{"chunk of nothing", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.space.Outputs(m.mid).ResultChunk("nobody", 1, 0), []byte("x")) }
		}, "which is not there"},
		{"parked unit forgotten", func(m *mixture) corruption { return m.clearFirst(m.space.Queues(m.mid).AllParked()) }, "has to wait"},
		{"parked by another attempt", func(m *mixture) corruption {
			return edit(m, m.space.Queues(m.mid).Parked(m.parked.ID), new(storagev1.Parked), func(p *storagev1.Parked) { p.Attempt++ })
		}, "nothing uses the entry any more"},
		{"parked beside its queue", func(m *mixture) corruption {
			value := m.get(m.space.Queues(m.mid).Parked(m.parked.ID))
			return func(tx store.Tx) { tx.Set(m.space.Queues(m.mid).Parked(m.busy.ID), value) }
		}, "nothing uses the entry any more"},
		{"parked units counted wrong", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Add(m.space.Job(m.mid).Counter(keys.UnitsParked, 0, "node-0"), 1) }
		}, "counter parked of level 0 is 2"},
		{"answer lost", func(m *mixture) corruption { return m.clearFirst(m.space.Queues(m.mid).AllWoken()) }, "is not there"},
		{"answer of another call", func(m *mixture) corruption {
			return edit(m, m.space.Queues(m.mid).Woken(m.woken.ID), new(storagev1.WakeCall), func(w *storagev1.WakeCall) { w.Handle = "batch" })
		}, "nothing uses the entry any more"},
		{"answer for nobody", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.space.Queues(m.mid).Woken("nobody"), nil) }
		}, "which is not there"},
		{"entry of nobody's journal", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.space.Outputs(m.mid).JournalChunk("nobody", 0, 0), []byte("x")) }
		}, "which is not there"},
		{"entry of a unit without a journal", func(m *mixture) corruption {
			return func(tx store.Tx) {
				tx.Set(m.space.Outputs(m.mid).JournalChunk(m.large.ID, 0, 0), []byte("x"))
			}
		}, "or has none"},
		{"entry lost", func(m *mixture) corruption { return m.clearFirst(m.space.Outputs(m.mid).AllJournals()) }, "one is missing"},
		{"last entry lost", func(m *mixture) corruption {
			return func(tx store.Tx) {
				tx.ClearRange(m.space.Outputs(m.mid).JournalEntries(m.busy.ID, 1, 2))
			}
		}, "one is missing"},
		{"entry changed", func(m *mixture) corruption {
			return func(tx store.Tx) {
				tx.Set(m.space.Outputs(m.mid).JournalChunk(m.busy.ID, 0, 0), journalEntry("another", 1))
			}
		}, "the hash over them differs"},
		{"entry too many", func(m *mixture) corruption {
			return func(tx store.Tx) {
				tx.Set(m.space.Outputs(m.mid).JournalChunk(m.busy.ID, 2, 0), journalEntry("another", 1))
			}
		}, "this is another"},
		{"journal of another size", func(m *mixture) corruption {
			return m.editUnit(m.mid, string(m.busy.ID), func(u *storagev1.Unit) { u.Journal.Bytes++ })
		}, "counts other bytes"},
		{"journal of a unit that was cancelled", func(m *mixture) corruption {
			return m.editUnit(m.mid, string(m.busy.ID), func(u *storagev1.Unit) { u.Status = uint32(mapreduce.UnitCancelled) })
		}, "should have none any more"},
		{"evidence of nobody", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.space.Outputs(m.mid).EvidenceChunk("nobody", 0, 0), []byte("x")) }
		}, "which is not there"},
		{"evidence of a unit without any", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.space.Outputs(m.mid).Evidence(m.large.ID, 0), []byte("x")) }
		}, "or has none"},
		{"evidence lost", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Clear(m.space.Outputs(m.mid).Evidence(m.busy.ID, 1)) }
		}, "one is missing"},
		{"evidence changed", func(m *mixture) corruption {
			return edit(m, m.space.Outputs(m.mid).Evidence(m.busy.ID, 0), new(storagev1.Evidence), func(e *storagev1.Evidence) { e.Title = "Another" })
		}, "the hash over them differs"},
		{"evidence out of bounds", func(m *mixture) corruption {
			key := m.space.Outputs(m.mid).Evidence(m.busy.ID, 0)
			raw := append(bytes.Clone(m.get(key)), 0x12, 0) // without a URI
			unit := m.editUnit(m.mid, string(m.busy.ID), func(u *storagev1.Unit) {
				first := sha256.Sum256(raw)
				both := sha256.Sum256(append(first[:], m.get(m.space.Outputs(m.mid).Evidence(m.busy.ID, 1))...))
				u.Evidence.Sha256 = both[:]
			})
			return func(tx store.Tx) { tx.Set(key, raw); unit(tx) }
		}, "item 0: evidence.uri"},
		{"text of evidence lost", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Clear(m.space.Outputs(m.mid).EvidenceChunk(m.busy.ID, 1, 0)) }
		}, "the text of unit"},
		{"text of evidence changed", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.space.Outputs(m.mid).EvidenceChunk(m.busy.ID, 0, 0), []byte("a pagf")) }
		}, "the text of unit"},
		{"evidence too many", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.space.Outputs(m.mid).EvidenceChunk(m.busy.ID, 2, 0), []byte("x")) }
		}, "this is of another"},
		{"evidence of another size", func(m *mixture) corruption {
			return m.editUnit(m.mid, string(m.busy.ID), func(u *storagev1.Unit) { u.Evidence.Bytes++ })
		}, "counts other bytes than its items"},
		{"evidence of a unit that was cancelled", func(m *mixture) corruption {
			return m.editUnit(m.mid, string(m.busy.ID), func(u *storagev1.Unit) { u.Status = uint32(mapreduce.UnitCancelled) })
		}, "evidence of unit " + "doc-0"},
		{"text lost", func(m *mixture) corruption { return m.clearFirst(m.space.Job(m.end).Blobs()) }, "the text of unit"},
		{"text changed", func(m *mixture) corruption {
			kv := m.first(m.space.Job(m.mid).Blobs())
			return func(tx store.Tx) { tx.Set(kv.Key, append(kv.Value[1:], 'x')) }
		}, "the text of unit"},
		{"tally changed", func(m *mixture) corruption {
			return edit(m, m.space.Job(m.end).Tally("cut"), new(storagev1.Tally), func(t *storagev1.Tally) { t.Failed++ })
		}, "the tally of document"},
		{"tally lost", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Clear(m.space.Job(m.end).Tally("cut")) }
		}, "the tallies come to"},
		{"level miscounted", func(m *mixture) corruption {
			return edit(m, m.space.Job(m.end).Ctl(), new(storagev1.Ctl), func(c *storagev1.Ctl) { c.Levels[1].Units++ })
		}, "were planned"},
		{"complete without the final unit", func(m *mixture) corruption {
			return edit(m, m.space.Job(m.end).Ctl(), new(storagev1.Ctl), func(c *storagev1.Ctl) { c.Levels = c.Levels[:len(c.Levels)-1]; c.Level-- })
		}, "the unit that assembles its result is not"},
		{"result of another", func(m *mixture) corruption {
			return m.editUnit(m.end, string(mapreduce.ResultUnit), func(u *storagev1.Unit) { u.Result.Sha256[0]++ })
		}, "its hash differs"},
		{"result that is no result", func(m *mixture) corruption {
			return m.editUnit(m.end, string(mapreduce.ResultUnit), func(u *storagev1.Unit) { u.Kind = uint32(mapreduce.KindReduce) })
		}, "a reduce unit, has a source"},
		{"complete with units left", func(m *mixture) corruption {
			return edit(m, m.space.Job(m.mid).Ctl(), new(storagev1.Ctl), func(c *storagev1.Ctl) { c.State = uint32(mapreduce.JobComplete) })
		}, "have not ended"},
		{"reduce that takes too little", func(m *mixture) corruption {
			return m.editUnit(m.end, "reduce_L1_1", func(u *storagev1.Unit) { u.Inputs.First = 0 })
		}, "are taken"},
		{"reduce that takes too much", func(m *mixture) corruption {
			return m.editUnit(m.end, "reduce_L1_3", func(u *storagev1.Unit) { u.Inputs.End++ })
		}, "takes the units up to"},
		{"reduce begun before its inputs", func(m *mixture) corruption {
			return edit(m, m.space.Job(m.end).Ctl(), new(storagev1.Ctl), func(c *storagev1.Ctl) { c.Level = 0 })
		}, "was begun, while the job is at level 0"},
		{"ledger: hash changed", func(m *mixture) corruption {
			return m.editUnit(m.end, "doc-00000", func(u *storagev1.Unit) {
				sum := sha256.Sum256([]byte("forged"))
				u.Result.Inline, u.Result.Sha256, u.Result.Length = []byte("forged"), sum[:], 6
			})
		}, "the ledger has it"},
		{"ledger: completion lost", func(m *mixture) corruption {
			for _, kv := range m.all() {
				var c storagev1.Checkpoint
				r := m.space.Job(m.mid).Checkpoints()
				in := bytes.Compare(kv.Key, r.Begin) >= 0 && bytes.Compare(kv.Key, r.End) < 0
				if in && proto.Unmarshal(kv.Value, &c) == nil && len(c.CompletedUnits) > 0 {
					return func(tx store.Tx) { tx.Clear(kv.Key) }
				}
			}
			m.Fatalf("no checkpoint has a completion")
			return nil
		}, "the ledger has 0 completions"},
		{"ledger: completed twice", func(m *mixture) corruption {
			return func(tx store.Tx) {
				u := m.unit(m.mid, string(m.large.ID))
				c := &storagev1.Checkpoint{CompletedUnits: []*storagev1.Outcome{{Unit: string(u.ID), Attempt: 1, Sha256: u.Result.SHA256}}}
				v, err := proto.Marshal(c)
				m.must(err)
				tx.Set(m.space.Job(m.mid).Checkpoint(store.Versionstamp{0xff}), v)
			}
		}, "the ledger has 2 completions"},
		{"sealed checkpoint changed", func(m *mixture) corruption {
			return edit(m, m.first(m.space.Job(m.end).Checkpoints()).Key, new(storagev1.Checkpoint), func(c *storagev1.Checkpoint) { c.Node = "someone" })
		}, "not those that were sealed"},
		{"seal lost", func(m *mixture) corruption {
			kv := m.first(m.space.Job(m.end).Seals())
			return func(tx store.Tx) {
				tx.Clear(kv.Key)
				tx.Set(m.space.Job(m.end).Seal(2), kv.Value)
			}
		}, "not those that were sealed"},
		{"tokens granted without a budget", func(m *mixture) corruption {
			return edit(m, m.space.Nodes().Grant(mapreduce.JobScope(m.mid), "node-0"), new(storagev1.Grant), func(g *storagev1.Grant) { g.Tokens = 5 })
		}, "no budget is set"},
		{"more slots than the job's", func(m *mixture) corruption {
			return edit(m, m.space.Nodes().Grant(mapreduce.JobScope(m.mid), "node-0"), new(storagev1.Grant), func(g *storagev1.Grant) { g.Slots = 65 })
		}, "65 slots are granted, of 64"},
		{"more tokens than the budget", func(m *mixture) corruption {
			return func(tx store.Tx) {
				v, err := proto.Marshal(&storagev1.Grant{Tokens: 10_001})
				m.must(err)
				tx.Set(m.space.Nodes().Grant(mapreduce.JobScope(m.end), "node-1"), v)
			}
		}, "of a budget of 10000"},
		{"not listed to run", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Clear(m.space.Tenant("").Run(m.mid)) }
		}, "is listed to run: false"},
		{"listed to run", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.space.Tenant("").Run(m.end), []byte("0")) }
		}, "is listed to run: true"},
		{"a job to run that is not there", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.space.Tenant("").Run("nobody"), []byte("0")) }
		}, "and does not"},
		{"not in its tenant's list", func(m *mixture) corruption { return m.clearFirst(m.space.AllTenants().Jobs()) }, "in the list of its tenant"},
		{"in the list of another tenant", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.space.Tenant("another").Job(5, m.end), nil) }
		}, "which is not there"},
		{"not listed by time", func(m *mixture) corruption { return m.clearFirst(m.space.RecentJobs()) }, "by its time"},
		{"listed by another time", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.space.Recent(5, m.end), nil) }
		}, "fails or shows it twice"},
		{"request of nothing", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.space.Tenant("").Request("request-2"), []byte("nobody")) }
		}, "which it did not submit"},
		{"request lost", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Clear(m.space.Tenant("").Request("request-1")) }
		}, `leads to ""`},
		{"submission of a dead node", func(m *mixture) corruption {
			return func(tx store.Tx) {
				v, err := proto.Marshal(&storagev1.Ingest{Node: "dead"})
				m.must(err)
				tx.Set(m.space.Job("job-x").Ingest(), v)
			}
		}, "no sign of life"},
		{"claim without a session", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.space.Nodes().Held("nobody", "claim"), nil) }
		}, "which is not there"},
		{"record lost", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Clear(m.space.Job(m.mid).Record()) }
		}, "a record or a control record, but not both"},
		{"switch lost", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Clear(m.space.Job(m.mid).Ctl()) }
		}, "a record and a control record"},
		{"record behind the switch", func(m *mixture) corruption {
			return edit(m, m.space.Job(m.end).Record(), new(storagev1.Job), func(r *storagev1.Job) { r.Status = 1 })
		}, "its control record says"},
		{"left of a job that was deleted", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.space.Job("nobody").Skipped(1), nil) }
		}, "are left, and the job is not there"},
		{"skipped document lost", func(m *mixture) corruption {
			return edit(m, m.space.Job(m.end).Record(), new(storagev1.Job), func(r *storagev1.Job) { r.SkippedDocuments++ })
		}, "listed as skipped"},
		{"plan of no level", func(m *mixture) corruption {
			return func(tx store.Tx) {
				v, err := proto.Marshal(&storagev1.Plan{Level: 7, Plan: &storagev1.Level{Units: 3}, Planned: 1})
				m.must(err)
				tx.Set(m.space.Plans(m.end).Cursor(7), v)
			}
		}, "levels are planned"},
		{"unknown key", func(m *mixture) corruption {
			return func(tx store.Tx) { tx.Set(append(m.space.Everything().Begin, 0x02, 'z', 0), []byte("x")) }
		}, "nothing of this version"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := newMixture(t)
			m.write(test.of(m))
			var all []string
			for _, f := range m.findings() {
				if orders.MatchString(f.Message) {
					t.Errorf("%q says to do what no command does", f.Message)
				}
				all = append(all, f.Key+": "+f.Message)
				if strings.Contains(f.Message, test.want) {
					return
				}
			}
			t.Errorf("no finding has %q:\n%s", test.want, strings.Join(all, "\n"))
		})
	}
}

package check_test

import (
	"bytes"
	"crypto/sha256"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// orders matches what nobody can do to a store: no command clears a key.
var orders = regexp.MustCompile(`\b(clear|remove) (it|them|what|the key)`)

func TestCheckFindsEveryBreach(t *testing.T) {
	testenv.SlowOnFDB(t)

	type corruption func(tx store.Tx)
	tests := []struct {
		name string
		of   func(m *jobstest.Mixture) corruption
		want string // part of one finding
	}{
		{"queue entry lost", func(m *jobstest.Mixture) corruption { return m.ClearFirst(m.Space.Queues(m.Mid).AllReady()) }, "has to wait"},
		{"queue entry of a unit that is processed", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) {
				tx.Set(m.Space.Queues(m.Mid).Ready(0, keys.ClassRequeued, keys.Seq(0, m.Busy.Index)), []byte(m.Busy.ID))
			}
		}, "nothing uses the entry any more"},
		{"queue entry in another shard", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.Space.Queues(m.Mid).Ready(7, keys.ClassNew, 99), []byte("doc-00008")) }
		}, "nothing uses the entry any more"},
		{"queue entry of nothing", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.Space.Queues(m.Mid).Ready(0, keys.ClassNew, 99), []byte("nobody")) }
		}, `of unit "nobody", which is not there`},
		{"delay lost", func(m *jobstest.Mixture) corruption { return m.ClearFirst(m.Space.Queues(m.Mid).AllDelayed()) }, "has to wait"},
		{"delay of a unit that failed", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.Space.Queues(m.Mid).Delayed(m.Failed.ID), nil) }
		}, "nothing uses the entry any more"},
		{"failed entry lost", func(m *jobstest.Mixture) corruption { return m.ClearFirst(m.Space.Queues(m.Mid).AllFailed()) }, "is listed as failed: false"},
		{"failed entry of a unit that is processed", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.Space.Queues(m.Mid).Failed(0, m.Busy.ID), nil) }
		}, "is listed as failed: true"},
		{"order lost", func(m *jobstest.Mixture) corruption { return m.ClearFirst(m.Space.Job(m.Mid).OrderFrom(0, 0)) }, "in the order"},
		{"order of nothing", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.Space.Job(m.Mid).Order(0, 1<<40), []byte("nobody")) }
		}, "which is not there"},
		{"session lost", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Clear(m.Space.Nodes().Session(m.Binding.ID)) }
		}, "which is not there"},
		{"claim lost", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Clear(m.Space.Nodes().Held(m.Binding.ID, m.Busy.Claim)) }
		}, "is not in claim"},
		{"claim garbled", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.Space.Nodes().Held(m.Binding.ID, "second"), []byte{0xff}) }
		}, "cannot be decoded"},
		{"attempt raised", func(m *jobstest.Mixture) corruption {
			return m.EditUnit(m.Mid, string(m.Busy.ID), func(u *storagev1.Unit) { u.Attempt++ })
		}, "is not in claim"},
		{"attempts negative", func(m *jobstest.Mixture) corruption {
			return m.EditUnit(m.Mid, string(m.Busy.ID), func(u *storagev1.Unit) { u.Failures = 9 })
		}, "failures"},
		{"more stored than there is", func(m *jobstest.Mixture) corruption {
			return m.EditUnit(m.Mid, string(m.Busy.ID), func(u *storagev1.Unit) { u.Put = &storagev1.Put{Length: 1, Stored: 2} })
		}, "2 of 1 bytes"},
		{"output of an ended unit being stored", func(m *jobstest.Mixture) corruption {
			return m.EditUnit(m.End, "doc-00000", func(u *storagev1.Unit) { u.Put = &storagev1.Put{Length: 2, Stored: 1} })
		}, "1 of 2 bytes"},
		{"unit in no state", func(m *jobstest.Mixture) corruption {
			return m.EditUnit(m.Mid, string(m.Busy.ID), func(u *storagev1.Unit) { u.Status = 99 })
		}, "in no state"},
		{"unit renamed", func(m *jobstest.Mixture) corruption {
			return m.EditUnit(m.Mid, string(m.Busy.ID), func(u *storagev1.Unit) { u.UnitId = "other" })
		}, `of unit "other"`},
		{"unit garbled", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.Space.Job(m.Mid).Unit(m.Busy.ID), []byte{0xff}) }
		}, "cannot be decoded"},
		{"unit lost", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Clear(m.Space.Job(m.End).Unit("doc-00000")) }
		}, "level 0 has 9 units, and 10 were planned"},
		{"reservation changed", func(m *jobstest.Mixture) corruption {
			return m.EditUnit(m.Mid, string(m.Busy.ID), func(u *storagev1.Unit) { u.Reserved++ })
		}, "counter reserved of node"},
		{"reservation of a unit that ended", func(m *jobstest.Mixture) corruption {
			return m.EditUnit(m.End, "doc-00000", func(u *storagev1.Unit) { u.Reserved = 1 })
		}, "of the budget are reserved for it"},
		{"tokens changed", func(m *jobstest.Mixture) corruption {
			return m.EditUnit(m.End, "doc-00000", func(u *storagev1.Unit) { u.TokensIn++ })
		}, "counter tokens in"},
		{"cost changed", func(m *jobstest.Mixture) corruption {
			return m.EditUnit(m.End, "doc-00000", func(u *storagev1.Unit) { u.CostMicros++ })
		}, "counter cost"},
		{"size changed", func(m *jobstest.Mixture) corruption {
			return m.EditUnit(m.End, "doc-00000", func(u *storagev1.Unit) { u.Result.Size++ })
		}, "counter size"},
		{"counter completed", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Add(m.Space.Job(m.End).Counter(keys.Completed, 0, "node-0"), 1) }
		}, "counter completed of level 0"},
		{"counter running", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Add(m.Space.Job(m.Mid).Counter(keys.Running, 0, "node-1"), 1) }
		}, "counter running"},
		{"counter failed", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Add(m.Space.Job(m.Mid).Counter(keys.Failed, 0, "node-1"), -1) }
		}, "counter failed"},
		{"counter claimed", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Add(m.Space.Job(m.Mid).Counter(keys.Claimed, 0, "node-1"), 1) }
		}, "counter claimed"},
		{"counter of calls", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Add(m.Space.Job(m.End).Counter(keys.Calls, 0, "node-0"), 1) }
		}, "counter calls"},
		{"counter of documents", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Add(m.Space.Job(m.End).Counter(keys.DocumentsMapped, 0, "node-0"), -1) }
		}, "counter documents mapped"},
		{"counter of characters", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Add(m.Space.Job(m.End).Counter(keys.CharactersMapped, 0, "node-0"), -1) }
		}, "counter characters mapped"},
		{"counter garbled", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.Space.Job(m.End).Counter(keys.Completed, 0, "node-0"), []byte("1")) }
		}, "no counter"},
		{"counter unknown", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.Space.Job(m.End).Counter(77, 0, "node-0"), jobstest.Little(1)) }
		}, "no counter"},
		{"charge lost", func(m *jobstest.Mixture) corruption {
			return m.EditUnit(m.Mid, string(m.Busy.ID), func(u *storagev1.Unit) { u.Charged = 5 })
		}, "counter charged of node"},
		{"small result changed", func(m *jobstest.Mixture) corruption {
			return m.EditUnit(m.End, "doc-00000", func(u *storagev1.Unit) { u.Result.Inline[0]++ })
		}, "its hash differs"},
		{"result of another attempt", func(m *jobstest.Mixture) corruption {
			return m.EditUnit(m.End, "doc-00000", func(u *storagev1.Unit) { u.Result.Attempt++ })
		}, "has the result of attempt 2"},
		{"large result changed", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) {
				tx.Set(m.Space.Outputs(m.Mid).ResultChunk(m.Large.ID, 1, 1), bytes.Repeat([]byte("x"), store.ChunkSize))
			}
		}, "the result of unit"},
		{"chunk lost", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Clear(m.Space.Outputs(m.Mid).ResultChunk(m.Large.ID, 1, 1)) }
		}, "the result of unit"},
		{"chunk of another attempt", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) {
				tx.Set(m.Space.Outputs(m.Mid).ResultChunk(m.Large.ID, 9, 0), []byte("x"))
			}
		}, "nobody will read this chunk"},
		{"chunk of nothing", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.Space.Outputs(m.Mid).ResultChunk("nobody", 1, 0), []byte("x")) }
		}, "which is not there"},
		{"parked unit forgotten", func(m *jobstest.Mixture) corruption { return m.ClearFirst(m.Space.Queues(m.Mid).AllParked()) }, "has to wait"},
		{"parked by another attempt", func(m *jobstest.Mixture) corruption {
			return jobstest.Edit(m, m.Space.Queues(m.Mid).Parked(m.Parked.ID), new(storagev1.Parked), func(p *storagev1.Parked) { p.Attempt++ })
		}, "nothing uses the entry any more"},
		{"parked beside its queue", func(m *jobstest.Mixture) corruption {
			value := m.Get(m.Space.Queues(m.Mid).Parked(m.Parked.ID))
			return func(tx store.Tx) { tx.Set(m.Space.Queues(m.Mid).Parked(m.Busy.ID), value) }
		}, "nothing uses the entry any more"},
		{"parked units counted wrong", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Add(m.Space.Job(m.Mid).Counter(keys.UnitsParked, 0, "node-0"), 1) }
		}, "counter parked of level 0 is 2"},
		{"decision lost", func(m *jobstest.Mixture) corruption { return m.ClearFirst(m.Space.Decisions(m.End).All()) }, "2 decisions about values, and its events are of 3"},
		{"all decisions lost", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.ClearRange(m.Space.Decisions(m.End).All()) }
		}, "0 decisions about values, and its events are of 3"},
		{"decision changed", func(m *jobstest.Mixture) corruption {
			return jobstest.Edit(m, m.First(m.Space.Decisions(m.End).All()).Key, new(storagev1.Decision), func(d *storagev1.Decision) { d.Principal = "eve" })
		}, "a decision was lost, added or changed"},
		{"decision of no call", func(m *jobstest.Mixture) corruption {
			value := m.First(m.Space.Decisions(m.End).All()).Value
			return func(tx store.Tx) {
				tx.Set(m.Space.Decisions(m.End).Key(keys.DecisionAt{Record: "7.0", Field: "total", Number: 1}), value)
			}
		}, "4 decisions about values"},
		{"decision of a job that is gone", func(m *jobstest.Mixture) corruption {
			value := m.First(m.Space.Decisions(m.End).All()).Value
			return func(tx store.Tx) {
				tx.Set(m.Space.Decisions("mr_20200101_aaaaaa").Key(keys.DecisionAt{Record: "7.0", Field: "total", Number: 1}), value)
			}
		}, "mr_20200101_aaaaaa"},
		{"claim without an end", func(m *jobstest.Mixture) corruption {
			return jobstest.Edit(m, m.First(m.Space.Decisions(m.End).AllReviewing()).Key, new(storagev1.Reviewing), func(c *storagev1.Reviewing) { c.EndMicros = 0 })
		}, "no record is reviewed by"},
		{"decision without a verdict", func(m *jobstest.Mixture) corruption {
			return jobstest.Edit(m, m.First(m.Space.Decisions(m.End).All()).Key, new(storagev1.Decision), func(d *storagev1.Decision) { d.Verdict = 99 })
		}, "no verdict has the number 99"},
		{"mark of another cause", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) {
				tx.Set(m.Space.Job(m.End).CauseMark("a"), records.Encode(&storagev1.CauseMark{Cause: "b", State: 1}))
			}
		}, "which has another key"},
		{"mark that says nothing", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) {
				tx.Set(m.Space.Job(m.End).CauseMark("a"), records.Encode(&storagev1.CauseMark{Cause: "a", State: 9}))
			}
		}, "has the state 9"},
		{"mark that counts less than nothing", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) {
				tx.Set(m.Space.Job(m.End).CauseMark("a"), records.Encode(&storagev1.CauseMark{Cause: "a", State: 1, Units: -1}))
			}
		}, "it counts -1 units"},
		{"answer lost", func(m *jobstest.Mixture) corruption { return m.ClearFirst(m.Space.Queues(m.Mid).AllWoken()) }, "is not there"},
		{"answer of another call", func(m *jobstest.Mixture) corruption {
			return jobstest.Edit(m, m.Space.Queues(m.Mid).Woken(m.Woken.ID), new(storagev1.WakeCall), func(w *storagev1.WakeCall) { w.Handle = "batch" })
		}, "nothing uses the entry any more"},
		{"answer for nobody", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.Space.Queues(m.Mid).Woken("nobody"), nil) }
		}, "which is not there"},
		{"entry of nobody's journal", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.Space.Outputs(m.Mid).JournalChunk("nobody", 0, 0), []byte("x")) }
		}, "which is not there"},
		{"entry of a unit without a journal", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) {
				tx.Set(m.Space.Outputs(m.Mid).JournalChunk(m.Large.ID, 0, 0), []byte("x"))
			}
		}, "or has none"},
		{"entry lost", func(m *jobstest.Mixture) corruption { return m.ClearFirst(m.Space.Outputs(m.Mid).AllJournals()) }, "one is missing"},
		{"last entry lost", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) {
				tx.ClearRange(m.Space.Outputs(m.Mid).JournalEntries(m.Busy.ID, 1, 2))
			}
		}, "one is missing"},
		{"entry changed", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) {
				tx.Set(m.Space.Outputs(m.Mid).JournalChunk(m.Busy.ID, 0, 0), jobstest.JournalEntry("another", 1))
			}
		}, "the hash over them differs"},
		{"entry too many", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) {
				tx.Set(m.Space.Outputs(m.Mid).JournalChunk(m.Busy.ID, 2, 0), jobstest.JournalEntry("another", 1))
			}
		}, "this is another"},
		{"journal of another size", func(m *jobstest.Mixture) corruption {
			return m.EditUnit(m.Mid, string(m.Busy.ID), func(u *storagev1.Unit) { u.Journal.Bytes++ })
		}, "counts other bytes"},
		{"journal of a unit that was cancelled", func(m *jobstest.Mixture) corruption {
			return m.EditUnit(m.Mid, string(m.Busy.ID), func(u *storagev1.Unit) { u.Status = uint32(mapreduce.UnitCancelled) })
		}, "should have none any more"},
		{"evidence of nobody", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.Space.Outputs(m.Mid).EvidenceChunk("nobody", 0, 0), []byte("x")) }
		}, "which is not there"},
		{"evidence of a unit without any", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.Space.Outputs(m.Mid).Evidence(m.Large.ID, 0), []byte("x")) }
		}, "or has none"},
		{"evidence lost", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Clear(m.Space.Outputs(m.Mid).Evidence(m.Busy.ID, 1)) }
		}, "one is missing"},
		{"evidence changed", func(m *jobstest.Mixture) corruption {
			return jobstest.Edit(m, m.Space.Outputs(m.Mid).Evidence(m.Busy.ID, 0), new(storagev1.Evidence), func(e *storagev1.Evidence) { e.Title = "Another" })
		}, "the hash over them differs"},
		{"evidence out of bounds", func(m *jobstest.Mixture) corruption {
			key := m.Space.Outputs(m.Mid).Evidence(m.Busy.ID, 0)
			raw := append(bytes.Clone(m.Get(key)), 0x12, 0) // without a URI
			unit := m.EditUnit(m.Mid, string(m.Busy.ID), func(u *storagev1.Unit) {
				first := sha256.Sum256(raw)
				both := sha256.Sum256(append(first[:], m.Get(m.Space.Outputs(m.Mid).Evidence(m.Busy.ID, 1))...))
				u.Evidence.Sha256 = both[:]
			})
			return func(tx store.Tx) { tx.Set(key, raw); unit(tx) }
		}, "item 0: evidence.uri"},
		{"text of evidence lost", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Clear(m.Space.Outputs(m.Mid).EvidenceChunk(m.Busy.ID, 1, 0)) }
		}, "the text of unit"},
		{"text of evidence changed", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.Space.Outputs(m.Mid).EvidenceChunk(m.Busy.ID, 0, 0), []byte("a pagf")) }
		}, "the text of unit"},
		{"evidence too many", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.Space.Outputs(m.Mid).EvidenceChunk(m.Busy.ID, 2, 0), []byte("x")) }
		}, "this is of another"},
		{"evidence of another size", func(m *jobstest.Mixture) corruption {
			return m.EditUnit(m.Mid, string(m.Busy.ID), func(u *storagev1.Unit) { u.Evidence.Bytes++ })
		}, "counts other bytes than its items"},
		{"evidence of a unit that was cancelled", func(m *jobstest.Mixture) corruption {
			return m.EditUnit(m.Mid, string(m.Busy.ID), func(u *storagev1.Unit) { u.Status = uint32(mapreduce.UnitCancelled) })
		}, "evidence of unit " + "doc-0"},
		{"text lost", func(m *jobstest.Mixture) corruption { return m.ClearFirst(m.Space.Job(m.End).Blobs()) }, "the text of unit"},
		{"text changed", func(m *jobstest.Mixture) corruption {
			kv := m.First(m.Space.Job(m.Mid).Blobs())
			return func(tx store.Tx) { tx.Set(kv.Key, append(kv.Value[1:], 'x')) }
		}, "the text of unit"},
		{"tally changed", func(m *jobstest.Mixture) corruption {
			return jobstest.Edit(m, m.Space.Job(m.End).Tally("cut"), new(storagev1.Tally), func(t *storagev1.Tally) { t.Failed++ })
		}, "the tally of document"},
		{"tally lost", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Clear(m.Space.Job(m.End).Tally("cut")) }
		}, "the tallies come to"},
		{"level miscounted", func(m *jobstest.Mixture) corruption {
			return jobstest.Edit(m, m.Space.Job(m.End).Ctl(), new(storagev1.Ctl), func(c *storagev1.Ctl) { c.Levels[1].Units++ })
		}, "were planned"},
		{"complete without the final unit", func(m *jobstest.Mixture) corruption {
			return jobstest.Edit(m, m.Space.Job(m.End).Ctl(), new(storagev1.Ctl), func(c *storagev1.Ctl) { c.Levels = c.Levels[:len(c.Levels)-1]; c.Level-- })
		}, "the unit that assembles its result is not"},
		{"result of another", func(m *jobstest.Mixture) corruption {
			return m.EditUnit(m.End, string(mapreduce.ResultUnit), func(u *storagev1.Unit) { u.Result.Sha256[0]++ })
		}, "its hash differs"},
		{"result that is no result", func(m *jobstest.Mixture) corruption {
			return m.EditUnit(m.End, string(mapreduce.ResultUnit), func(u *storagev1.Unit) { u.Kind = uint32(mapreduce.KindReduce) })
		}, "a reduce unit, has a source"},
		{"complete with units left", func(m *jobstest.Mixture) corruption {
			return jobstest.Edit(m, m.Space.Job(m.Mid).Ctl(), new(storagev1.Ctl), func(c *storagev1.Ctl) { c.State = uint32(mapreduce.JobComplete) })
		}, "have not ended"},
		{"reduce that takes too little", func(m *jobstest.Mixture) corruption {
			return m.EditUnit(m.End, "reduce_L1_1", func(u *storagev1.Unit) { u.Inputs.First = 0 })
		}, "are taken"},
		{"reduce that takes too much", func(m *jobstest.Mixture) corruption {
			return m.EditUnit(m.End, "reduce_L1_3", func(u *storagev1.Unit) { u.Inputs.End++ })
		}, "takes the units up to"},
		{"reduce begun before its inputs", func(m *jobstest.Mixture) corruption {
			return jobstest.Edit(m, m.Space.Job(m.End).Ctl(), new(storagev1.Ctl), func(c *storagev1.Ctl) { c.Level = 0 })
		}, "was begun, while the job is at level 0"},
		{"ledger: hash changed", func(m *jobstest.Mixture) corruption {
			return m.EditUnit(m.End, "doc-00000", func(u *storagev1.Unit) {
				sum := sha256.Sum256([]byte("forged"))
				u.Result.Inline, u.Result.Sha256, u.Result.Length = []byte("forged"), sum[:], 6
			})
		}, "the ledger has it"},
		{"ledger: completion lost", func(m *jobstest.Mixture) corruption {
			for _, kv := range m.All() {
				var c storagev1.Checkpoint
				r := m.Space.Job(m.Mid).Checkpoints()
				in := bytes.Compare(kv.Key, r.Begin) >= 0 && bytes.Compare(kv.Key, r.End) < 0
				if in && proto.Unmarshal(kv.Value, &c) == nil && len(c.CompletedUnits) > 0 {
					return func(tx store.Tx) { tx.Clear(kv.Key) }
				}
			}
			m.Fatalf("no checkpoint has a completion")
			return nil
		}, "the ledger has 0 completions"},
		{"ledger: completed twice", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) {
				u := m.Unit(m.Mid, string(m.Large.ID))
				c := &storagev1.Checkpoint{CompletedUnits: []*storagev1.Outcome{{Unit: string(u.ID), Attempt: 1, Sha256: u.Result.SHA256}}}
				v, err := proto.Marshal(c)
				m.Must(err)
				tx.Set(m.Space.Job(m.Mid).Checkpoint(store.Versionstamp{0xff}), v)
			}
		}, "the ledger has 2 completions"},
		{"sealed checkpoint changed", func(m *jobstest.Mixture) corruption {
			return jobstest.Edit(m, m.First(m.Space.Job(m.End).Checkpoints()).Key, new(storagev1.Checkpoint), func(c *storagev1.Checkpoint) { c.Node = "someone" })
		}, "not those that were sealed"},
		{"seal lost", func(m *jobstest.Mixture) corruption {
			kv := m.First(m.Space.Job(m.End).Seals())
			return func(tx store.Tx) {
				tx.Clear(kv.Key)
				tx.Set(m.Space.Job(m.End).Seal(2), kv.Value)
			}
		}, "not those that were sealed"},
		{"tokens granted without a budget", func(m *jobstest.Mixture) corruption {
			return jobstest.Edit(m, m.Space.Nodes().Grant(mapreduce.JobScope(m.Mid), "node-0"), new(storagev1.Grant), func(g *storagev1.Grant) { g.Tokens = 5 })
		}, "no budget is set"},
		{"more slots than the job's", func(m *jobstest.Mixture) corruption {
			return jobstest.Edit(m, m.Space.Nodes().Grant(mapreduce.JobScope(m.Mid), "node-0"), new(storagev1.Grant), func(g *storagev1.Grant) { g.Slots = 65 })
		}, "65 slots are granted, of 64"},
		{"more tokens than the budget", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) {
				v, err := proto.Marshal(&storagev1.Grant{Tokens: 10_001})
				m.Must(err)
				tx.Set(m.Space.Nodes().Grant(mapreduce.JobScope(m.End), "node-1"), v)
			}
		}, "of a budget of 10000"},
		{"not listed to run", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Clear(m.Space.Tenant("").Run(m.Mid)) }
		}, "is listed to run: false"},
		{"listed to run", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.Space.Tenant("").Run(m.End), []byte("0")) }
		}, "is listed to run: true"},
		{"a job to run that is not there", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.Space.Tenant("").Run("nobody"), []byte("0")) }
		}, "and does not"},
		{"not in its tenant's list", func(m *jobstest.Mixture) corruption { return m.ClearFirst(m.Space.AllTenants().Jobs()) }, "in the list of its tenant"},
		{"in the list of another tenant", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.Space.Tenant("another").Job(5, m.End), nil) }
		}, "which is not there"},
		{"not listed by time", func(m *jobstest.Mixture) corruption { return m.ClearFirst(m.Space.RecentJobs()) }, "by its time"},
		{"listed by another time", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.Space.Recent(5, m.End), nil) }
		}, "fails or shows it twice"},
		{"request of nothing", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.Space.Tenant("").Request("request-2"), []byte("nobody")) }
		}, "which it did not submit"},
		{"request lost", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Clear(m.Space.Tenant("").Request("request-1")) }
		}, `leads to ""`},
		{"submission of a dead node", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) {
				v, err := proto.Marshal(&storagev1.Ingest{Node: "dead"})
				m.Must(err)
				tx.Set(m.Space.Job("job-x").Ingest(), v)
			}
		}, "no sign of life"},
		{"claim without a session", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.Space.Nodes().Held("nobody", "claim"), nil) }
		}, "which is not there"},
		{"record lost", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Clear(m.Space.Job(m.Mid).Record()) }
		}, "a record or a control record, but not both"},
		{"switch lost", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Clear(m.Space.Job(m.Mid).Ctl()) }
		}, "a record and a control record"},
		{"record behind the switch", func(m *jobstest.Mixture) corruption {
			return jobstest.Edit(m, m.Space.Job(m.End).Record(), new(storagev1.Job), func(r *storagev1.Job) { r.Status = 1 })
		}, "its control record says"},
		{"left of a job that was deleted", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Set(m.Space.Job("nobody").Skipped(1), nil) }
		}, "are left, and the job is not there"},
		{"skipped document lost", func(m *jobstest.Mixture) corruption {
			return jobstest.Edit(m, m.Space.Job(m.End).Record(), new(storagev1.Job), func(r *storagev1.Job) { r.SkippedDocuments++ })
		}, "listed as skipped"},
		{"plan of no level", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) {
				v, err := proto.Marshal(&storagev1.Plan{Level: 7, Plan: &storagev1.Level{Units: 3}, Planned: 1})
				m.Must(err)
				tx.Set(m.Space.Plans(m.End).Cursor(7), v)
			}
		}, "levels are planned"},
		{"unknown key", func(m *jobstest.Mixture) corruption {
			return func(tx store.Tx) { tx.Set(append(m.Space.Everything().Begin, 0x02, 'z', 0), []byte("x")) }
		}, "nothing of this version"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := jobstest.NewMixture(t)
			m.Write(test.of(m))
			var all []string
			for _, f := range m.Findings() {
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

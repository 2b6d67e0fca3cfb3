package queue

import (
	"context"
	"crypto/sha256"
	"strconv"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// ParkUnit makes u wait outside of all queues until its time has come, or a call wakes
// it. Each orchestrator times it from its own first sight, as records.SleepLeft says.
func (changes *Changes) ParkUnit(u *storagev1.Unit, p *mapreduce.Parking) {
	u.Status = uint32(mapreduce.Pending)
	u.Queue = &storagev1.Queue{Class: keys.ClassParked, Seq: keys.Seq(u.Level, u.Index), Shard: u.Queue.GetShard()}
	changes.Add(keys.UnitsParked, u.Level, 1)
	parked := &storagev1.Parked{
		Handle: p.Handle, WakeMicros: wakeMicros(p.WakeAfter), Note: records.ClipText(p.Note), Attempt: u.Attempt, Scores: p.Scores,
	}
	if parked.WakeMicros > 0 {
		parked.EndMicros = changes.PauseEnd(p.WakeAfter)
	}
	changes.Tx.Set(changes.Keys.Queues(changes.Job).Parked(mapreduce.UnitID(u.UnitId)), records.Encode(parked))
}

// wakeMicros returns the stored form of the time after which a unit is woken. A time below
// a microsecond becomes one, as 0 means never.
func wakeMicros(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return max(1, d.Microseconds())
}

// addSavings adds what caches saved an attempt to its unit and its job.
func (changes *Changes) addSavings(u *storagev1.Unit, owner mapreduce.NodeID, s mapreduce.Savings) {
	if s == (mapreduce.Savings{}) {
		return
	}
	u.Savings = records.StoredSavings(records.SavingsOf(u.Savings).Add(s))
	for c, n := range records.SavingsByCounter(records.StoredSavings(s)) {
		changes.AddFor(owner, c, 0, n)
	}
}

// SettleTokens replaces the reservation or the charge of an attempt by what it spent. If
// nobody knows what it spent, that is what was reserved.
func (changes *Changes) SettleTokens(u *storagev1.Unit, r *protocol.Report) {
	spent, cost := r.Tokens, r.CostMicros
	switch most := u.Reserved + u.Charged; {
	case !r.Unmeasured:
	case records.CurrencyOf(changes.Ctl) == mapreduce.InDollars:
		cost = most
	default:
		spent = mapreduce.Tokens{In: most}
	}

	// Counters are kept by node: what a node has reserved is taken off its own.
	owner := mapreduce.NodeID(u.Node)
	if owner == "" {
		owner = changes.Node
	}

	changes.AddFor(owner, keys.Reserved, 0, -u.Reserved)
	changes.AddFor(owner, keys.Charged, 0, -u.Charged)
	changes.AddFor(owner, keys.TokensIn, 0, spent.In)
	changes.AddFor(owner, keys.TokensOut, 0, spent.Out)
	changes.AddFor(owner, keys.Cost, 0, cost)
	changes.AddFor(owner, keys.Calls, 0, int64(r.Calls))

	u.Reserved, u.Charged = 0, 0
	u.TokensIn += spent.In
	u.TokensOut += spent.Out
	u.CostMicros += cost
	u.Calls += int64(r.Calls)
	if len(r.Models) > 0 {
		u.Models = r.Models
	}
	u.LatencyMicros += r.Latency.Microseconds()
	u.Tools += int64(r.Tools)
	u.ToolMicros += r.ToolTime.Microseconds()
	u.LargestPrompt = max(u.LargestPrompt, r.Prompt)
	u.ElapsedMicros = r.Elapsed.Microseconds()

	changes.addSavings(u, owner, r.Savings)
	changes.charges = append(changes.charges, mapreduce.WholeCharges(r.Charges, spent, cost)...)
}

// Charges returns what is settled of calls, by model and tier.
func (changes *Changes) Charges() []mapreduce.Charge { return changes.charges }

// Tenant returns whose the job is; "" if it is gone, as of servers without tenants.
func (changes *Changes) Tenant() mapreduce.TenantID {
	return mapreduce.TenantID(changes.Ctl.GetTenant())
}

// DelayUnit makes u wait before its next attempt. Each orchestrator times it from its own
// first sight, as records.SleepLeft says.
func (changes *Changes) DelayUnit(u *storagev1.Unit, d time.Duration) {
	u.Status = uint32(mapreduce.Pending)
	u.Queue = &storagev1.Queue{Class: keys.ClassDelayed, Seq: keys.Seq(u.Level, u.Index), Shard: u.Queue.GetShard()}
	changes.Tx.Set(changes.Keys.Queues(changes.Job).Delayed(mapreduce.UnitID(u.UnitId)), records.Encode(&storagev1.Delay{
		Micros: d.Microseconds(), EndMicros: changes.PauseEnd(d),
	}))
}

// CompleteUnit makes a unit complete with the output that r reports.
func (changes *Changes) CompleteUnit(ctx context.Context, u *storagev1.Unit, r *protocol.Report) error {
	changes.addWaiting(u, -1)
	u.Status = uint32(mapreduce.UnitComplete)
	u.Errors = records.KeepErrors(nil, r.Errors)
	u.Result = &storagev1.Result{
		Attempt: u.Attempt, Inline: r.Output, Chunks: records.ChunksOf(r.Length), Length: r.Length,
		Sha256: r.SHA256, Size: r.Size, Confidence: r.Confidence,
	}

	if r.Length == 0 {
		sum := sha256.Sum256(r.Output)
		u.Result.Length, u.Result.Sha256 = int64(len(r.Output)), sum[:]
	}

	if u.Woken != "" {
		changes.Tx.Clear(changes.Keys.Queues(changes.Job).Woken(mapreduce.UnitID(u.UnitId)))
	}
	if !u.Journal.GetKept() {
		changes.Units.ClearJournal(changes.Tx, changes.Job, u)
	}
	if u.Line.GetAnswered() {
		changes.clearLine(u)
	}
	if err := changes.WithdrawLine(ctx, u); err != nil { // it went on without its batch, which would be paid for in vain
		return err
	}

	if u.Attempt > 1 { // what earlier attempts had stored, nobody will read
		unit := mapreduce.UnitID(u.UnitId)
		changes.Tx.ClearRange(store.Range{
			Begin: changes.Keys.Outputs(changes.Job).ResultChunk(unit, 0, 0), End: changes.Keys.Outputs(changes.Job).ResultChunk(unit, u.Attempt, 0),
		})
	}

	changes.Add(keys.Completed, u.Level, 1)
	changes.Add(keys.Size, u.Level, r.Size)
	changes.ended.CompletedUnits = append(changes.ended.CompletedUnits, newOutcome(u, u.Result.Sha256, r.Tokens))

	if err := treeOf(changes).tellParent(ctx, u, -keys.OneLeft+keys.OneSurvivor); err != nil {
		return err
	}
	return ledgerOf(changes).accountUnit(ctx, u, true)
}

// FailUnit makes a unit fail, and counts it at the reduce above it.
func (changes *Changes) FailUnit(ctx context.Context, u *storagev1.Unit) error {
	changes.addWaiting(u, -1)
	u.Status, u.Put = uint32(mapreduce.UnitFailed), nil

	changes.Add(keys.Failed, u.Level, 1)
	changes.Tx.Set(changes.Keys.Queues(changes.Job).Failed(u.Level, mapreduce.UnitID(u.UnitId)), nil)
	changes.Tx.ClearRange(changes.Keys.Outputs(changes.Job).Results(mapreduce.UnitID(u.UnitId)))
	changes.Units.ClearPartEvidence(changes.Tx, changes.Job, u)
	changes.ended.FailedUnits = append(changes.ended.FailedUnits, newOutcome(u, nil, mapreduce.Tokens{In: u.TokensIn, Out: u.TokensOut}))

	if err := treeOf(changes).tellParent(ctx, u, -keys.OneLeft); err != nil {
		return err
	}
	return ledgerOf(changes).accountUnit(ctx, u, false)
}

func newOutcome(u *storagev1.Unit, sha []byte, spent mapreduce.Tokens) *storagev1.Outcome {
	return &storagev1.Outcome{
		Unit: u.UnitId, Attempt: u.Attempt, Sha256: sha, TokensIn: spent.In, TokensOut: spent.Out, Level: u.Level,
	}
}

// A ledger counts the documents and the characters of a job by what became of them.
type ledger struct{ *Changes }

func ledgerOf(changes *Changes) ledger { return ledger{changes} }

// accountUnit enters the end of a map or parse unit in the ledger of documents and
// characters.
func (l ledger) accountUnit(ctx context.Context, u *storagev1.Unit, mapped bool) error {
	switch {
	case u.Level > 0:
		return nil
	case u.Level < 0:
		l.accountParse(u, mapped)
		return nil
	}

	documents, characters := keys.DocumentsMapped, keys.CharactersMapped
	if !mapped {
		documents, characters = keys.DocumentsFailed, keys.CharactersFailed
	}
	l.Add(characters, 0, u.Source.GetCharEnd()-u.Source.GetCharStart())

	// A document in several chunks is counted when the last of them ends.
	if u.Source.GetChunks() <= 1 {
		l.Add(documents, 0, DocumentsOf(u))
		return nil
	}
	return l.accountChunk(ctx, u, mapped)
}

// DocumentsOf returns how many documents a unit takes that takes whole ones.
func DocumentsOf(u *storagev1.Unit) int64 { return max(1, u.Source.GetDocuments()) }

// accountParse enters the end of a parse unit: a document whose reading failed has
// failed, and one that cannot be read as it is, or has no text, is skipped; any other is
// still
// to be mapped. Documents without text have no characters, so their bytes are counted.
func (l ledger) accountParse(u *storagev1.Unit, ok bool) {
	switch {
	case !ok:
		l.Add(keys.DocumentsFailed, 0, 1)
		l.Add(keys.BytesFailed, 0, u.Source.GetLength())
	case IsTextless(u):
		l.Add(keys.DocumentsSkipped, 0, 1)
		l.Add(keys.BytesSkipped, 0, u.Source.GetLength())
		l.Tx.Set(l.Keys.Job(l.Job).Skipped(keys.Document(u.Index)), records.Encode(&storagev1.Skipped{
			DocumentId: u.DocumentId, Reason: skipReason(u),
		}))
	}
}

// skipReason returns why a parse unit that is complete found no text: its last error.
func skipReason(u *storagev1.Unit) string {
	if n := len(u.Errors); n > 0 && u.Errors[n-1] != "" {
		return u.Errors[n-1]
	}
	return "no text"
}

// IsTextless reports whether a parse unit that is complete found no text.
func IsTextless(u *storagev1.Unit) bool { return u.Result.GetLength() == 0 }

// tallyName returns the name under which units are counted that share documents: of chunks
// the document's, of units over several documents the id of the first unit.
func tallyName(u *storagev1.Unit) mapreduce.DocumentID {
	if u.Source.GetDocuments() == 0 {
		return mapreduce.DocumentID(u.DocumentId)
	}
	return mapreduce.DocumentID(numberedUnit(u.UnitId, -u.Source.GetChunkIndex()))
}

// TalliedUnit returns the id of the i-th of the units that are counted under a name.
func TalliedUnit(t *storagev1.Tally, name mapreduce.DocumentID, i int64) mapreduce.UnitID {
	if t.Documents == 0 {
		return mapreduce.ChunkUnit(name, int(i))
	}
	return mapreduce.UnitID(numberedUnit(string(name), i))
}

// numberedUnit returns the id of the unit of the same stage whose number is higher by more.
func numberedUnit(id string, more int64) string {
	at := strings.LastIndexByte(id, '_') + 1
	number, err := strconv.ParseInt(id[at:], 10, 64)
	if err != nil {
		return id // which no such unit has
	}
	return id[:at] + strconv.FormatInt(number+more, 10)
}

// accountChunk counts a chunk. The document itself ends with its last chunk.
func (l ledger) accountChunk(ctx context.Context, u *storagev1.Unit, mapped bool) error {
	key := l.Keys.Job(l.Job).Tally(tallyName(u))
	tally := new(storagev1.Tally)
	if _, err := records.Read(ctx, l.Tx, key, tally); err != nil {
		return err
	}

	tally.Chunks, tally.Documents = u.Source.Chunks, u.Source.Documents
	if mapped {
		tally.Complete++
	} else {
		tally.Failed++
	}

	// The document counts once, with its last chunk, and as failed if any of its chunks
	// has.
	switch {
	case tally.Complete+tally.Failed < tally.Chunks:
	case tally.Failed > 0:
		l.Add(keys.DocumentsFailed, 0, DocumentsOf(u))
	default:
		l.Add(keys.DocumentsMapped, 0, DocumentsOf(u))
	}

	l.Tx.Set(key, records.Encode(tally))
	return nil
}

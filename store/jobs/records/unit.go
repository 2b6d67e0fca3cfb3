package records

import (
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
)

// A Unit is a unit of work as it stands.
type Unit struct {
	ID       mapreduce.UnitID
	Document mapreduce.DocumentID
	State    mapreduce.UnitState
	Kind     mapreduce.UnitKind
	Level    int64
	Stage    int64      // index in the stages of the pipeline; of parse units 0
	Index    int64      // in its level
	Shard    int64      // of the queue in which it waits
	Parked   bool       // it waits in no queue until a call, or its time, wakes it
	Delayed  bool       // it backs off after a failure
	Waits    *Candidate // where it may be claimed; nil if it may not
	Parent   int64      // 1 + index of the reduce above that waits for it; 0: none waits
	Item     []byte     // JSON: the element of an earlier output that it works on
	Woken    string     // the handle of the last call that woke it

	Attempt  int64 // claims so far
	Failures int64 // attempts that failed, since the last resume
	Returns  int64 // attempts that were handed back, since the last that failed
	Kills    int64 // workers that were lost while they ran it
	Session  mapreduce.SessionID
	Claim    string
	Node     mapreduce.NodeID // whose grant holds the reservation
	Reserved int64            // tokens reserved for the attempt
	Estimate int64            // tokens of its first call, in and out, at worst
	Share    int64            // tokens

	Tokens     mapreduce.Tokens
	CostMicros int64
	Elapsed    time.Duration
	CallSums   mapreduce.CallSums
	Savings    mapreduce.Savings
	Models     []string // that answered its latest attempt
	Errors     []string
	Lasting    bool // it failed, and another attempt would fail alike

	Source *Source // nil if it takes outputs
	Inputs *Inputs // nil if it takes a document
	Result *Result // nil if it has no output
	Put    *Put    // a large output that is being stored for this attempt, or nil

	Journal  *Journal     // nil if nothing was remembered
	Evidence *EvidenceSum // nil if tools brought nothing
}

// LostBeforeAlone is how many workers have to be lost while they run a unit for it to run
// in a process of its own from then on. One is lost often, when somebody ends a process,
// and by chance with all that it runs; a unit that is there each time may be the cause.
const LostBeforeAlone = 2

// MustBeAlone reports whether a unit is to run in a process of its own.
func (u *Unit) MustBeAlone() bool { return u.Kills >= LostBeforeAlone }

// GoesApart reports whether a unit is handed out in a message of its own: the message in which
// it was before may have broken its worker's stream, for what it or another one was.
func (u *Unit) GoesApart() bool { return u.MustBeAlone() || u.Failures > 0 || u.Returns > 0 }

// WithOutput returns a unit as those that take its output see it, with that output, and
// with nothing else of the record.
func (u *Unit) WithOutput(data []byte) *Unit {
	one := &Unit{ID: u.ID, Kind: u.Kind, State: u.State, Level: u.Level, Index: u.Index, Inputs: u.Inputs}
	if r := u.Result; r != nil {
		one.Result = &Result{Attempt: r.Attempt, Inline: data, Length: r.Length, SHA256: r.SHA256}
	}
	return one
}

// A Source is the part of a document that a unit works on. Positions are in the
// document's text: in bytes, and those named Char in code points.
type Source struct {
	SHA256             []byte // of the document's text
	Length             int64
	Start, End         int64 // the unit's text
	CoreStart, CoreEnd int64
	CharOffset         int64 // of Start
	CharStart, CharEnd int64 // the core
	ChunkIndex, Chunks int64
	MediaType          string
	Metadata           map[string]string
	Documents          int64 // that the unit takes, of a unit over several; else 0
}

// Inputs are the units of an earlier level that a unit takes: those with indexes in
// [First, End), or Picked of them if that is not 0. They stand for the units
// [MapFirst, MapEnd) of the level that the first reduces of a tree take.
type Inputs struct {
	Level            int64
	First, End       int64
	MapFirst, MapEnd int64
	Picked           int64
}

// A Result is the published output of a unit.
type Result struct {
	Attempt    int64
	Inline     []byte // if Chunks is 0
	Chunks     int64
	Length     int64 // bytes
	SHA256     []byte
	Size       int64 // tokens of the text that the next prompt would hold
	Confidence float64
}

// A Put is how much of a large output is stored, before the report that publishes it.
type Put struct {
	Length int64  // bytes of the whole output
	SHA256 []byte // of the whole output
	Stored int64  // of its first bytes; all of them only once their hash is found right
}

// A Journal is what is stored of the journal of a unit.
type Journal struct {
	Entries int64  // numbered from 0 on
	Bytes   int64  // of all entries as they are stored
	SHA256  []byte // the chain over them: SHA-256 of the chain before, and the entry
	Kept    bool   // it stays when the unit is complete
}

// An EvidenceSum is what is stored of the evidence of a unit.
type EvidenceSum struct {
	Items  int64  // numbered from 0 on
	Bytes  int64  // of all texts
	SHA256 []byte // the chain over them: SHA-256 of the chain before, and the record
	Next   *Put   // the text of the next, of which a part is stored; nil if none is
}

// UnitFrom returns the domain's form of a stored unit; nil of nil.
func UnitFrom(u *storagev1.Unit) *Unit {
	if u == nil {
		return nil
	}

	out := &Unit{
		ID: mapreduce.UnitID(u.UnitId), Document: mapreduce.DocumentID(u.DocumentId), State: mapreduce.UnitState(u.Status),
		Kind: mapreduce.UnitKind(u.Kind), Level: u.Level, Stage: u.Stage, Index: u.Index, Shard: u.Queue.GetShard(),
		Parked: IsParked(u), Delayed: isDelayed(u), Parent: u.Parent, Item: u.Item, Woken: u.Woken,
		Attempt: u.Attempt, Failures: u.Failures, Returns: u.Returns, Kills: u.Kills, Session: mapreduce.SessionID(u.Session), Claim: u.Claim,
		Node: mapreduce.NodeID(u.Node), Reserved: u.Reserved, Estimate: u.Estimate, Share: u.Share,
		Tokens: mapreduce.Tokens{In: u.TokensIn, Out: u.TokensOut}, CostMicros: u.CostMicros,
		Elapsed: time.Duration(u.ElapsedMicros) * time.Microsecond, CallSums: callSumsOf(u), Savings: SavingsOf(u.Savings),
		Errors: u.Errors, Lasting: u.Lasting, Models: u.Models,
	}

	if IsClaimable(u) {
		out.Waits = CandidateOf(u)
	}

	if s := u.Source; s != nil {
		out.Source = &Source{
			SHA256: s.Sha256, Length: s.Length, Start: s.Start, End: s.End, CoreStart: s.CoreStart, CoreEnd: s.CoreEnd,
			CharOffset: s.CharOffset, CharStart: s.CharStart, CharEnd: s.CharEnd, ChunkIndex: s.ChunkIndex, Chunks: s.Chunks,
			MediaType: s.MediaType, Metadata: s.Metadata, Documents: s.Documents,
		}
	}
	if in := u.Inputs; in != nil {
		out.Inputs = &Inputs{
			Level: in.Level, First: in.First, End: in.End, MapFirst: in.MapFirst, MapEnd: in.MapEnd, Picked: in.Picked,
		}
	}
	if r := u.Result; r != nil {
		out.Result = &Result{
			Attempt: r.Attempt, Inline: r.Inline, Chunks: r.Chunks, Length: r.Length, SHA256: r.Sha256, Size: r.Size,
			Confidence: r.Confidence,
		}
	}
	if p := u.Put; p != nil {
		out.Put = &Put{Length: p.Length, SHA256: p.Sha256, Stored: p.Stored}
	}
	if j := u.Journal; j != nil {
		out.Journal = &Journal{Entries: j.Entries, Bytes: j.Bytes, SHA256: j.Sha256, Kept: j.Kept}
	}
	if e := u.Evidence; e != nil {
		out.Evidence = &EvidenceSum{Items: e.Items, Bytes: e.Bytes, SHA256: e.Sha256}
		if p := e.Next; p != nil {
			out.Evidence.Next = &Put{Length: p.Length, SHA256: p.Sha256, Stored: p.Stored}
		}
	}

	return out
}

// UnitsOfStored returns the domain's form of stored units.
func UnitsOfStored(stored []*storagev1.Unit) []*Unit {
	units := make([]*Unit, len(stored))
	for i, u := range stored {
		units[i] = UnitFrom(u)
	}
	return units
}

// StoredUnit returns the stored form of a unit that is new: nothing has happened to
// it yet.
func StoredUnit(u *Unit) *storagev1.Unit {
	out := &storagev1.Unit{
		UnitId: string(u.ID), DocumentId: string(u.Document), Kind: uint32(u.Kind), Level: u.Level, Stage: u.Stage, Index: u.Index,
		Queue: &storagev1.Queue{Shard: u.Shard}, Parent: u.Parent, Item: u.Item, Estimate: u.Estimate, Share: u.Share,
	}

	if s := u.Source; s != nil {
		out.Source = &storagev1.Source{
			Sha256: s.SHA256, Length: s.Length, Start: s.Start, End: s.End, CoreStart: s.CoreStart, CoreEnd: s.CoreEnd,
			CharOffset: s.CharOffset, CharStart: s.CharStart, CharEnd: s.CharEnd, ChunkIndex: s.ChunkIndex, Chunks: s.Chunks,
			MediaType: s.MediaType, Metadata: s.Metadata, Documents: s.Documents,
		}
	}

	return out
}

// StoredUnits returns the stored form of units that are new.
func StoredUnits(units []*Unit) []*storagev1.Unit {
	stored := make([]*storagev1.Unit, len(units))
	for i, u := range units {
		stored[i] = StoredUnit(u)
	}
	return stored
}

// Holds reports whether the output that a report names is stored whole.
func (u *Unit) Holds(r *protocol.Report) bool {
	return u.Put != nil && isWhole(u.Put.Length, u.Put.Stored, u.Put.SHA256, r)
}

// Describe returns the unit as clients see it, without its output.
func (u *Unit) Describe(job mapreduce.JobID) *mapreduce.Unit {
	out := &mapreduce.Unit{
		ID: u.ID, Job: job, Document: u.Document, Kind: u.Kind, Level: int(u.Level), Index: u.Index, State: u.State,
		Attempts: int(u.Attempt), Failures: int(u.Failures), Share: u.Share, Tokens: u.Tokens, CostMicros: u.CostMicros,
		Elapsed: u.Elapsed, Errors: u.Errors, Lasting: u.Lasting, CallSums: u.CallSums, Savings: u.Savings, Models: u.Models,
	}

	if s := u.Source; s != nil {
		out.ChunkIndex, out.Chunks, out.Start, out.End = int(s.ChunkIndex), int(s.Chunks), s.CharStart, s.CharEnd
	}
	if u.Result != nil {
		out.Confidence = u.Result.Confidence
	}

	return out
}

// Takes returns the units whose outputs u takes; none if it takes a document.
func (u *Unit) Takes() Inputs {
	if u.Inputs == nil {
		return Inputs{}
	}
	return *u.Inputs
}

// Reads returns the text that u reads; none if it takes outputs.
func (u *Unit) Reads() Source {
	if u.Source == nil {
		return Source{}
	}
	return *u.Source
}

// Published returns the output of u; the zero Result if it has none.
func (u *Unit) Published() Result {
	if u.Result == nil {
		return Result{}
	}
	return *u.Result
}

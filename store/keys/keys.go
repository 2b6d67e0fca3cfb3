// Package keys is the key space of the service. The list below is normative: it says
// where everything is stored. Keys are FoundationDB tuples under an optional prefix, so
// that installations can share a cluster. Values are messages of
// coditect.mapreduce.storage.v1 unless the list says otherwise.
//
//	key                                          value
//	('mapreduce','format')                       text: the layout's number, and the name of
//	                                             the installation; on shared stores alone
//	('mapreduce','jobs',J)                       Job: the record for display
//	('mapreduce','units',J,U)                    Unit: state, fence, small results
//	('mapreduce','checkpoints',J,versionstamp)   Checkpoint: one a finish transaction
//	('mapreduce','ctl',J)                        Ctl: the switch of the job
//	('mapreduce','order',J,level,index)          id of the parse or map unit there
//	('mapreduce','recent',micros,J)              state of the job, one byte: jobs by time of
//	                                             submission; empty if an earlier version wrote it
//	('mapreduce','tenantjobs',T,micros,J)        the same, of the jobs of a tenant
//	('mapreduce','ready',J,shard,class,seq)      id of a unit that may be claimed;
//	                                             class 0 came back, class 1 is new
//	('mapreduce','delayed',J,U)                  Delay: backing off
//	('mapreduce','parked',J,U)                   Parked: waiting for something outside, by
//	                                             handle, with when to go on without a call
//	('mapreduce','woken',J,U)                    WakeCall: the last call that woke the unit,
//	                                             until the unit is complete
//	('mapreduce','asked',J,U)                    Asked: the request of a unit that goes by batch
//	('mapreduce','asked',J,U,i)                  bytes: chunk i of it
//	('mapreduce','batchable',J,U)                empty: units that wait for a batch to be made
//	('mapreduce','batch',J,n)                    Batch: a batch at a vendor
//	('mapreduce','batchline',J,n,i)              id of the unit whose request is line i of it
//	('mapreduce','reply',J,U,i)                  bytes: chunk i of what became of the request
//	('mapreduce','batching',J)                   empty: the job has units that wait for a batch, or
//	                                             batches
//	('mapreduce','batchroom',A,J,n)              BatchRoom: what batch n of J takes of the limits of an
//	                                             account at a vendor, which may have it
//	('mapreduce','batchrate',A)                  BatchCreations: batches of the account begun within
//	                                             the hour
//	('mapreduce','turnaround',model)             Turnarounds: how long the last batches of a model took
//	('mapreduce','failed',J,level,U)             empty: units that failed for good
//	('mapreduce','run',T,J)                      priority: the job may run
//	('mapreduce','held',S,claim)                 Held: the units of one claim
//	('mapreduce','sess',S)                       Session: who a worker reports to
//	('mapreduce','beat',O)                       Beat: an orchestrator's sign of life
//	('mapreduce','doubt',O)                      Doubt: other orchestrators saw no sign of
//	                                             life of O, and O has claimed nothing since
//	('mapreduce','grant',kind,name,O)            Grant: tokens and slots of a scope: a job,
//	                                             a tenant, or the fleet, which has no name
//	('mapreduce','draw',J,O)                     never stored: transactions that draw tokens
//	                                             of one grant conflict on this key
//	('mapreduce','limit',model)                  Limit: the limits of the fleet for the model, and
//	                                             what its servers refuse
//	('mapreduce','ctr',J,name,level,O)           counter, striped by orchestrator
//	('mapreduce','tally',J,D)                    Tally: chunks of a document
//	('mapreduce','seal',J,number)                Seal: the chain over checkpoints
//	('mapreduce','plan',J,level)                 Plan: cursor of planning a level
//	('mapreduce','picks',J,level,index,first)    Picks: inputs of a unit that are no range,
//	                                             from the input numbered first on
//	('mapreduce','wait',J,level,index)           counter: what a reduce of a tree waits for;
//	                                             see Waiting
//	('mapreduce','result',J,U,attempt,i)         bytes: chunk i of a large result
//	('mapreduce','journal',J,U,n,i)              bytes: chunk i of entry n of a unit's journal
//	('mapreduce','evidence',J,U,n)               Evidence: item n of what tools brought to
//	                                             a unit
//	('mapreduce','evidence',J,U,n,i)             bytes: chunk i of its text
//	('mapreduce','decision',J,index,r,field,n)   Decision: the n-th about the value of a field in
//	                                             record r of the map unit with that index
//	('mapreduce','reviewing',J,index,r)          Reviewing: who is about to review record r of the map
//	                                             unit with that index, and until when
//	('mapreduce','cause',J,sha256)               CauseMark: what was said of a cause of failed
//	                                             units, by the hash of the cause
//	('mapreduce','cascade',J,m)                  CascadeTrial: which answers of the m-th member
//	                                             of a cascade are accepted
//	('mapreduce','cascade',J,m,i)                CascadePart: part i of the units of the trial
//	('mapreduce','certificate',T,id)             Certificate: which answers of a member of cascades
//	                                             jobs to come accept; the id is a hash of all
//	                                             that has to be the same for these
//	('mapreduce','blob',J,sha256,i)              bytes: chunk i of a document's text
//	('mapreduce','skipped',J,n)                  Skipped: a document left out
//	('mapreduce','idem',T,request)               id of the job it submitted
//	('mapreduce','ingest',J)                     Ingest: a submission under way
//	('mapreduce','orphan',J,n)                   Orphan: batch n of a job that is gone
//	('mapreduce','answer',T,sha256)              Answer: what a model answered, for jobs
//	                                             that share answers
//	('mapreduce','answer',T,sha256,i)            bytes: chunk i of it
//	('mapreduce','aged',T,micros,sha256)         empty: answers by age
//	('mapreduce','kept',T,what)                  counter: answers (0), their bytes (1)
//	('mapreduce','use',T,what,day)               counter: what the jobs of a tenant use of its
//	                                             quotas; see Used
//	('mapreduce','usedraw',T,what)               never stored: transactions that use more of a
//	                                             quota conflict on this key
//	('mapreduce','cost',T,day,L,model,tier,what)  counter: what the jobs of a tenant have spent on a
//	                                             day, those that are gone included; see Spent. L is
//	                                             the id of the labels of the job
//	('mapreduce','costlabels',T,L)               LabelSet: the labels that have an id
//	('mapreduce','costgone',T,what)              counter: what jobs had spent that are gone
//	('mapreduce','rate',T)                       Rate: calls of a tenant in the present minute
//	('mapreduce','ended',T,micros,J)             empty: jobs that have ended, by when
//	('mapreduce','expires',micros,J)             empty: jobs that have ended and are kept for a
//	                                             time of their own, by when it is over
//	('mapreduce','log',T,n)                      LogEntry: what became of jobs of a tenant that
//	                                             are gone, each chained to the one before
//	('mapreduce','wake')                         counter: changes made for others
//
// J, U, D, S, O and T are the ids of job, unit, document, session, orchestrator
// and tenant; a model is named with its provider, and an account A by that and its address. The package imports only the
// vocabulary, the store's port and the tuple encoding.
package keys

import (
	"fmt"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/tuple"
)

// The classes of the ready queue.
const (
	ClassRequeued uint32 = iota // scanned from the start
	ClassNew                    // scanned from a cursor in memory
	ClassDelayed                // not in the queue: under ('delayed',J,U)
	ClassParked                 // not in the queue: under ('parked',J,U)
)

// MapIndex returns the index of the unit that maps chunk i of the n-th
// document. Map units are ordered by it; it leaves gaps.
func MapIndex(n, i int64) int64 { return n<<20 | i }

// Document returns which document the unit of an index maps or parses: n of
// MapIndex.
func Document(index int64) int64 { return index >> 20 }

// MaxChunks bounds the chunks of one document.
const MaxChunks = 1 << 20

// DirectIndex returns the index of a direct unit whose last document is the n-th.
// No chunk has it, for documents have fewer than MaxChunks.
func DirectIndex(n int64) int64 { return MapIndex(n, MaxChunks-1) }

// GatheredIndex returns the index of the n-th unit over several documents of a stage. No
// chunk and no direct unit has it.
func GatheredIndex(n int64) int64 { return MapIndex(n, MaxChunks-2) }

// Seq returns where new work of a level waits in its queue. Parse units are of
// level -1, map units of level 0.
func Seq(level, index int64) int64 { return (level+1)<<48 | index }

// A Counter is the name of a counter of a job.
type Counter int64

// The counters of a job. Counters of units and sizes are kept by level, the others
// under level 0.
const (
	Completed        Counter = iota + 1 // units
	Failed                              // units
	Running                             // units claimed and not ended or returned
	Size                                // tokens of the outputs
	TokensIn                            // spent
	TokensOut                           // spent
	Reserved                            // tokens of attempts under way
	Charged                             // reserved by attempts that were lost
	Cost                                // millionths of a US dollar
	DocumentsMapped                     // documents
	DocumentsFailed                     // documents
	CharactersMapped                    // code points
	CharactersFailed                    // code points
	Claimed                             // attempts begun
	CharactersParsed                    // code points of documents that had to be parsed
	Inserted                            // map units planned after their documents were parsed
	DocumentsSkipped                    // documents that were parsed and skipped
	Answered                            // calls of models that were not made: see mapreduce.Savings
	AnswersSaved                        // millionths of a US dollar, which those would have cost
	CacheWritten                        // tokens of prompts
	CacheRead                           // tokens of prompts
	PromptsSaved                        // millionths of a US dollar, by reading prompts from caches
	UnitsParked                         // units that wait for something outside
	UnitsWaiting                        // units that were submitted and have not ended
	BytesFailed                         // bytes of documents whose reading failed
	BytesSkipped                        // bytes of documents that were parsed and skipped
	LinesOpen                           // units whose request waits for a batch, or in one
	Calls                               // of models, as far as this version or a later one settled them
)

// LastCounter is the last of them.
const LastCounter = Calls

// A Used is something that the jobs of a tenant use, of which it may have a quota.
type Used int64

// Things that a tenant's jobs use. They are counted under day 0, but for tokens.
const (
	UsedJobs          Used = iota + 1 // jobs, and submissions that earlier versions began
	UsedUnended                       // of these, those that have not ended
	UsedUnits                         // units that were submitted and have not ended
	UsedBytes                         // of documents
	UsedCalls                         // units that run
	UsedTokens                        // by day: that jobs were given, and have spent or may spend
	UsedTokensDropped                 // by day: those of UsedTokens that no job accounts for any more
)

// A Waiting is the value under a Wait key of a reduce of a static tree: how many of
// its inputs have not ended, how many have an output, and whether the reduce was
// unblocked since. It is one number, so that inputs that end together add to it
// without a conflict.
type Waiting int64

// The terms that transactions add to a Waiting.
const (
	OneLeft     Waiting = 1       // an input that has not ended
	OneSurvivor Waiting = 1 << 31 // one that has an output
	LetGo       Waiting = 1 << 62 // the reduce was unblocked
)

// Left returns how many inputs have not ended.
func (w Waiting) Left() int64 { return int64(w & (OneSurvivor - 1)) }

// Survivors returns how many inputs have an output.
func (w Waiting) Survivors() int64 { return int64(w / OneSurvivor & (OneSurvivor - 1)) }

// Due reports whether all inputs have ended and the reduce was not unblocked yet.
func (w Waiting) Due() bool { return w.Left() == 0 && w < LetGo }

// A Space is the key space of one installation.
type Space struct {
	outer  []byte            // packed prefix
	prefix []byte            // packed (prefix, 'mapreduce')
	base   map[string][]byte // packed (prefix, 'mapreduce', name)
}

var names = []string{
	"format", "jobs", "units", "checkpoints", "ctl", "order", "recent", "tenantjobs", "ready", "delayed", "parked", "woken", "failed",
	"asked", "batchable", "batch", "batchline", "reply", "batching", "batchroom", "batchrate", "orphan", "turnaround", "run", "held", "sess", "beat", "doubt", "grant", "draw", "ctr", "tally", "seal", "plan", "picks", "wait", "result", "journal", "evidence", "decision", "reviewing", "cause", "cascade", "blob",
	"skipped", "idem", "ingest", "wake", "limit", "answer", "aged", "kept", "use", "usedraw", "cost", "costlabels", "costgone", "rate", "ended", "expires", "log", "certificate",
}

// New returns the key space whose keys begin with the elements of prefix.
func New(prefix ...string) *Space {
	s := &Space{base: make(map[string][]byte, len(names))}
	for _, p := range prefix {
		s.prefix = tuple.AppendString(s.prefix, p)
	}
	s.outer = clipBytes(s.prefix)
	s.prefix = tuple.AppendString(s.outer, "mapreduce")
	for _, n := range names {
		s.base[n] = tuple.AppendString(clipBytes(s.prefix), n)
	}
	return s
}

func clipBytes(b []byte) []byte { return slices.Clip(b) }

// nameKey returns a fresh key with room for more elements.
func (s *Space) nameKey(name string) []byte {
	b := s.base[name]
	return append(make([]byte, 0, len(b)+64), b...)
}

func (s *Space) jobKey(name string, j mapreduce.JobID) []byte {
	return tuple.AppendString(s.nameKey(name), string(j))
}

func childRange(packed []byte) store.Range {
	begin, end := tuple.Range(packed)
	return store.Range{Begin: begin, End: end}
}

// Everything returns the range of all keys of the installation.
func (s *Space) Everything() store.Range { return childRange(s.prefix) }

// Below returns the range of keys that belong to the installation alone: all keys under
// its prefix, or without a prefix those of Everything.
func (s *Space) Below() store.Range {
	if len(s.outer) == 0 {
		return s.Everything()
	}
	return childRange(s.outer)
}

// Format returns the key of the layout's version.
func (s *Space) Format() []byte { return s.nameKey("format") }

// Jobs returns the range of all jobs' records.
func (s *Space) Jobs() store.Range { return childRange(s.nameKey("jobs")) }

// numberedRange returns the range of keys whose next element is a text of prefix and
// what begins with a digit.
func numberedRange(packed []byte, prefix string) store.Range {
	return store.Range{Begin: openText(packed, prefix+"0"), End: openText(packed, prefix+":")}
}

// openText returns a key and the beginning of a text: its encoding without the
// terminator.
func openText(packed []byte, text string) []byte {
	k := tuple.AppendString(slices.Clip(packed), text)
	return k[:len(k)-1]
}

// Recent returns the key that lists a job by its time of submission.
func (s *Space) Recent(micros int64, j mapreduce.JobID) []byte {
	return tuple.AppendString(tuple.AppendInt(s.nameKey("recent"), micros), string(j))
}

// RecentJobs returns the range of jobs by time of submission.
func (s *Space) RecentJobs() store.Range { return childRange(s.nameKey("recent")) }

// Draws returns the range of the Draw keys of a job.
func (s *Space) Draws(j mapreduce.JobID) store.Range { return childRange(s.jobKey("draw", j)) }

// The counters of a tenant's answers.
const (
	KeptAnswers int64 = iota
	KeptBytes
)

// Ingests returns the range of the submissions under way.
func (s *Space) Ingests() store.Range { return childRange(s.nameKey("ingest")) }

// Wake returns the key that counts changes made for others.
func (s *Space) Wake() []byte { return s.nameKey("wake") }

// ownedNames lists the kinds of keys that belong to one job.
var ownedNames = []string{
	"units", "order", "ready", "delayed", "parked", "woken", "failed", "asked", "batchable", "batch", "batchline", "reply", "batching", "ctr", "tally",
	"checkpoints", "seal", "plan", "picks", "wait", "result", "journal", "evidence", "decision", "reviewing", "cause", "cascade", "blob", "skipped",
}

// Known reports whether keys of that name are of this key space, and whether
// the element after the name is a job.
func (s *Space) Known(name string) (known, ofJob bool) {
	ofJob = slices.Contains(ownedNames, name) || name == "jobs" || name == "ctl" || name == "ingest"
	return ofJob || slices.Contains(names, name), ofJob
}

// After returns the first key behind the one that is packed and all longer ones
// that begin with its elements.
func (s *Space) After(packed []byte) []byte { return append(slices.Clip(packed), 0xff) }

// Last splits a key of this space into the elements after its name: it returns
// a reader placed there, and the name.
func (s *Space) Last(key []byte) (name string, r tuple.Reader, err error) {
	if len(key) < len(s.prefix) || string(key[:len(s.prefix)]) != string(s.prefix) {
		return "", r, fmt.Errorf("keys: %x is outside this installation", key)
	}
	r = tuple.NewReader(key[len(s.prefix):])
	name = r.Text()
	return name, r, r.Err()
}

package keys_test

import (
	"bytes"
	"crypto/sha256"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/store/tuple"
)

// A drawn key, with the name and the elements that it was made of.
type drawn struct {
	name     string
	elements []any
	key      []byte
}

var id = rapid.SampledFrom([]string{"", "a", "b", "ab", "a\x00", "a\x00b", "a\xc3\xa9", "reduce_L1_1", "reduce_L1_10", "reduce_L10_1", "\xf4\x8f\xbf\xbf"})

var number = rapid.OneOf(rapid.Int64Range(-2, 300), rapid.Int64Range(0, 1<<60))

// draw makes a key of any kind.
func draw(t *rapid.T, s *keys.Space) drawn {
	a, b, c := id.Draw(t, "a"), id.Draw(t, "b"), id.Draw(t, "c")
	causeSum := sha256.Sum256([]byte(b))
	m, n := number.Draw(t, "m"), number.Draw(t, "n")
	index, record := max(0, m), max(0, n) // ids of records have no others
	j, u := mapreduce.JobID(a), mapreduce.UnitID(b)
	class := uint32(rapid.IntRange(0, 1).Draw(t, "class"))
	stamp := store.Versionstamp(rapid.SliceOfN(rapid.Byte(), 10, 10).Draw(t, "stamp"))
	sha := rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "sha")
	all := []drawn{
		{"format", nil, s.Format()},
		{"jobs", []any{a}, s.Job(j).Record()},
		{"units", []any{a, b}, s.Job(j).Unit(u)},
		{"checkpoints", []any{a, tuple.Versionstamp{Transaction: stamp}}, s.Job(j).Checkpoint(stamp)},
		{"ctl", []any{a}, s.Job(j).Ctl()},
		{"order", []any{a, m, n}, s.Job(j).Order(m, n)},
		{"recent", []any{m, a}, s.Recent(m, j)},
		{"tenantjobs", []any{c, m, a}, s.Tenant(mapreduce.TenantID(c)).Job(m, j)},
		{"ready", []any{a, m, int64(class), n}, s.Queues(j).Ready(m, class, n)},
		{"delayed", []any{a, b}, s.Queues(j).Delayed(u)},
		{"parked", []any{a, b}, s.Queues(j).Parked(u)},
		{"woken", []any{a, b}, s.Queues(j).Woken(u)},
		{"failed", []any{a, m, b}, s.Queues(j).Failed(m, u)},
		{"batchroom", []any{c, a, n}, s.Batches(j).Room(c, n)},
		{"batchrate", []any{c}, s.AllBatches().Rate(c)},
		{"batching", []any{a}, s.Batches(j).Batching()},
		{"orphan", []any{a, n}, s.Batches(j).Orphan(n)},
		{"turnaround", []any{c}, s.AllBatches().Turnarounds(c)},
		{"expires", []any{m, a}, s.Expiry().Job(m, j)},
		{"run", []any{c, a}, s.Tenant(mapreduce.TenantID(c)).Run(j)},
		{"held", []any{b, c}, s.Nodes().Held(mapreduce.SessionID(b), c)},
		{"sess", []any{b}, s.Nodes().Session(mapreduce.SessionID(b))},
		{"beat", []any{b}, s.Nodes().Beat(mapreduce.NodeID(b))},
		{"doubt", []any{b}, s.Nodes().Doubt(mapreduce.NodeID(b))},
		{"grant", []any{int64(mapreduce.JobKind), a, b}, s.Nodes().Grant(mapreduce.JobScope(j), mapreduce.NodeID(b))},
		{"grant", []any{int64(mapreduce.TenantKind), a, b}, s.Nodes().Grant(mapreduce.TenantScope(mapreduce.TenantID(a)), mapreduce.NodeID(b))},
		{"grant", []any{int64(mapreduce.FleetKind), "", b}, s.Nodes().Grant(mapreduce.FleetScope(), mapreduce.NodeID(b))},
		{"limit", []any{a}, s.Nodes().Limit(a)},
		{"answer", []any{a, sha}, s.Tenant(mapreduce.TenantID(a)).Answer(sha)},
		{"answer", []any{a, sha, m}, s.Tenant(mapreduce.TenantID(a)).AnswerChunk(sha, m)},
		{"certificate", []any{c, b}, s.Tenant(mapreduce.TenantID(c)).Certificate(mapreduce.CertificateID(b))},
		{"aged", []any{a, m, sha}, s.Tenant(mapreduce.TenantID(a)).Aged(m, sha)},
		{"kept", []any{a, m}, s.Tenant(mapreduce.TenantID(a)).Kept(m)},
		{"ctr", []any{a, m, n, b}, s.Job(j).Counter(keys.Counter(m), n, mapreduce.NodeID(b))},
		{"tally", []any{a, b}, s.Job(j).Tally(mapreduce.DocumentID(b))},
		{"seal", []any{a, m}, s.Job(j).Seal(m)},
		{"plan", []any{a, m}, s.Plans(j).Cursor(m)},
		{"picks", []any{a, m, n, int64(class)}, s.Plans(j).Picks(m, n, int64(class))},
		{"wait", []any{a, m, n}, s.Queues(j).Wait(m, n)},
		{"result", []any{a, b, m, n}, s.Outputs(j).ResultChunk(u, m, n)},
		{"journal", []any{a, b, m, n}, s.Outputs(j).JournalChunk(u, m, n)},
		{"evidence", []any{a, b, n}, s.Outputs(j).Evidence(u, n)},
		{"evidence", []any{a, b, m, n}, s.Outputs(j).EvidenceChunk(u, m, n)},
		{"decision", []any{a, index, record, b, m}, s.Decisions(j).Key(keys.DecisionAt{Record: mapreduce.NewRecordID(index, record), Field: b, Number: m})},
		{"reviewing", []any{a, index, record}, s.Decisions(j).Reviewing(mapreduce.NewRecordID(index, record))},
		{"blob", []any{a, sha, n}, s.Job(j).BlobChunk(sha, n)},
		{"skipped", []any{a, n}, s.Job(j).Skipped(n)},
		{"cause", []any{a, causeSum[:]}, s.Job(j).CauseMark(b)},
		{"idem", []any{a, b}, s.Tenant(mapreduce.TenantID(a)).Request(mapreduce.RequestID(b))},
		{"ingest", []any{a}, s.Job(j).Ingest()},
		{"cost", []any{c, m, a, b, c, int64(class)}, s.Costs(mapreduce.TenantID(c)).Spent(keys.CostAt{Day: m, Labels: a, Model: b, Tier: c, What: keys.Spent(class)})},
		{"costlabels", []any{c, a}, s.Costs(mapreduce.TenantID(c)).Labels(a)},
		{"costgone", []any{c, int64(class)}, s.Costs(mapreduce.TenantID(c)).Gone(keys.Spent(class))},
		{"wake", nil, s.Wake()},
	}
	return rapid.SampledFrom(all).Draw(t, "kind")
}

func in(r store.Range, key []byte) bool {
	return bytes.Compare(r.Begin, key) <= 0 && bytes.Compare(key, r.End) < 0
}

func TestKeysRoundTrip(t *testing.T) {
	for _, prefix := range [][]string{nil, {"installation"}, {"a", "b"}} {
		s := keys.New(prefix...)
		rapid.Check(t, func(t *rapid.T) {
			d := draw(t, s)
			name, rest, err := s.Last(d.key)
			if err != nil || name != d.name {
				t.Fatalf("%q is of kind %q, want %q: %v", d.key, name, d.name, err)
			}
			want := tuple.Append(nil, d.elements...)
			if !bytes.Equal(rest.Rest(), want) {
				t.Fatalf("elements of %s %v are %x, want %x", d.name, d.elements, rest.Rest(), want)
			}
			if !in(s.Everything(), d.key) {
				t.Fatalf("%s is outside the installation", d.name)
			}
			if known, ofJob := s.Known(name); !known || ofJob && len(d.elements) == 0 {
				t.Fatalf("%s is known: %t, of a job: %t", name, known, ofJob)
			}
		})
	}
}

func TestKeysOfTwoInstallationsAreApart(t *testing.T) {
	a, b := keys.New("a"), keys.New("a", "b")
	rapid.Check(t, func(t *rapid.T) {
		if key := draw(t, b).key; in(a.Everything(), key) {
			t.Fatalf("%x is of two installations", key)
		}
		if _, _, err := b.Last(draw(t, a).key); err == nil {
			t.Fatal("a key of another installation was read")
		}
	})
}

func TestKeysAreApart(t *testing.T) {
	s := keys.New()
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t, s), draw(t, s)
		same := a.name == b.name && bytes.Equal(tuple.Append(nil, a.elements...), tuple.Append(nil, b.elements...))
		if bytes.Equal(a.key, b.key) != same {
			t.Fatalf("%s %v and %s %v: keys %x and %x", a.name, a.elements, b.name, b.elements, a.key, b.key)
		}
	})
}

// A region is a range, and which keys it has to hold.
// numbered is what follows the prefix in an id that is counted.
var numbered = regexp.MustCompile(`(?s)^[0-9]`)

type region struct {
	name string
	r    store.Range
	has  func(d drawn) bool
}

func TestRangesHoldWhatTheyShould(t *testing.T) {
	s := keys.New()
	rapid.Check(t, func(t *rapid.T) {
		a, b := id.Draw(t, "job"), id.Draw(t, "unit")
		level := number.Draw(t, "level")
		j := mapreduce.JobID(a)
		of := func(name string, n int, want ...any) func(d drawn) bool {
			return func(d drawn) bool {
				return d.name == name && len(d.elements) > n && slices.Equal(d.elements[:len(want)], want)
			}
		}
		text := func(name string) func(d drawn) bool {
			return func(d drawn) bool {
				return d.name == name && d.elements[0] == a && numbered.MatchString(strings.TrimPrefix(d.elements[1].(string), b)) &&
					strings.HasPrefix(d.elements[1].(string), b)
			}
		}
		regions := []region{
			{"jobs", s.Jobs(), of("jobs", 0)},
			{"limits", s.Nodes().Limits(), of("limit", 0)},
			{"units", s.Job(j).Units(), of("units", 1, a)},
			{"recent", s.RecentJobs(), of("recent", 0)},
			{"jobs of a tenant", s.Tenant(mapreduce.TenantID(a)).Jobs(), of("tenantjobs", 1, a)},
			{"jobs of all tenants", s.AllTenants().Jobs(), of("tenantjobs", 0)},
			{"ready", s.Queues(j).AllReady(), of("ready", 1, a)},
			{"delayed", s.Queues(j).AllDelayed(), of("delayed", 1, a)},
			{"parked", s.Queues(j).AllParked(), of("parked", 1, a)},
			{"woken", s.Queues(j).AllWoken(), of("woken", 1, a)},
			{"failed", s.Queues(j).AllFailed(), of("failed", 1, a)},
			{"failed level", s.Queues(j).FailedLevel(level), of("failed", 2, a, level)},
			{"jobs with batches", s.AllBatches().Batching(), of("batching", 0)},
			{"batches left behind", s.AllBatches().Orphans(), of("orphan", 0)},
			{"rooms", s.AllBatches().Rooms(), of("batchroom", 0)},
			{"rooms of an account", s.AllBatches().RoomsOf(a), of("batchroom", 1, a)},
			{"jobs that expire", s.Expiry().All(), of("expires", 0)},
			{"jobs that expire before", s.Expiry().Before(level), func(d drawn) bool {
				return d.name == "expires" && d.elements[0].(int64) < level
			}},
			{"runs", s.AllTenants().Runs(), of("run", 1)},
			{"held by", s.Nodes().HeldBy(mapreduce.SessionID(b)), of("held", 1, b)},
			{"held", s.Nodes().HeldAll(), of("held", 1)},
			{"sessions", s.Nodes().Sessions(), of("sess", 0)},
			{"beats", s.Nodes().Beats(), of("beat", 0)},
			{"grants", s.Nodes().Grants(mapreduce.JobScope(j)), of("grant", 2, int64(mapreduce.JobKind), a)},
			{"fleet's grants", s.Nodes().Grants(mapreduce.FleetScope()), of("grant", 2, int64(mapreduce.FleetKind), "")},
			{"counters", s.Job(j).Counters(), of("ctr", 1, a)},
			{"stripes", s.Job(j).CounterStripes(3, level), of("ctr", 3, a, int64(3), level)},
			{"tallies", s.Job(j).Tallies(), of("tally", 1, a)},
			{"checkpoints", s.Job(j).Checkpoints(), of("checkpoints", 1, a)},
			{"seals", s.Job(j).Seals(), of("seal", 1, a)},
			{"plans", s.Plans(j).Cursors(), of("plan", 1, a)},
			{"picks of", s.Plans(j).PicksOf(3, level), of("picks", 3, a, int64(3), level)},
			{"picks level", s.Plans(j).PicksLevel(level), of("picks", 2, a, level)},
			{"all picks", s.Plans(j).AllPicks(), of("picks", 1, a)},
			{"wait level", s.Queues(j).WaitLevel(level), of("wait", 2, a, level)},
			{"waits", s.Queues(j).Waits(), of("wait", 1, a)},
			{"results", s.Outputs(j).Results(mapreduce.UnitID(b)), of("result", 3, a, b)},
			{"result", s.Outputs(j).Result(mapreduce.UnitID(b), level), of("result", 3, a, b, level)},
			{"all results", s.Outputs(j).AllResults(), of("result", 1, a)},
			{"journals", s.Outputs(j).AllJournals(), of("journal", 1, a)},
			{"journal", s.Outputs(j).Journal(mapreduce.UnitID(b)), of("journal", 3, a, b)},
			{"journal entry", s.Outputs(j).JournalEntries(mapreduce.UnitID(b), level, level+1), of("journal", 3, a, b, level)},
			{"blobs", s.Job(j).Blobs(), of("blob", 1, a)},
			{"skipped", s.Job(j).SkippedDocuments(), of("skipped", 1, a)},
			{"marks of causes", s.Job(j).CauseMarks(), of("cause", 1, a)},
			{"requests", s.AllTenants().Requests(), of("idem", 1)},
			{"costs", s.AllTenants().Costs(), of("cost", 1)},
			{"labels of costs", s.Costs(mapreduce.TenantID(a)).AllLabels(), of("costlabels", 1, a)},
			{"costs of jobs that are gone", s.AllTenants().CostsGone(), of("costgone", 1)},
			{"costs of days", s.Costs(mapreduce.TenantID(a)).Days(0, level), func(d drawn) bool {
				return d.name == "cost" && d.elements[0] == a && d.elements[1].(int64) >= 0 && d.elements[1].(int64) < level
			}},
			{"ingests", s.Ingests(), of("ingest", 0)},
			{"units with prefix", s.Job(j).NumberedUnits(b), text("units")},
			{"results with prefix", s.Outputs(j).NumberedResults(b), text("result")},
			{"journals with prefix", s.Outputs(j).NumberedJournals(b), text("journal")},
			{"all evidence", s.Outputs(j).AllEvidence(), of("evidence", 1, a)},
			{"evidence", s.Outputs(j).EvidenceOf(mapreduce.UnitID(b)), of("evidence", 2, a, b)},
			{"text of evidence", s.Outputs(j).EvidenceText(mapreduce.UnitID(b), level), of("evidence", 3, a, b, level)},
			{"evidence with prefix", s.Outputs(j).NumberedEvidence(b), text("evidence")},
			{"decisions", s.Decisions(j).All(), of("decision", 1, a)},
			{"decisions of a record", s.Decisions(j).OfRecord(mapreduce.NewRecordID(max(0, level), 1)), of("decision", 3, a, max(0, level), int64(1))},
			{"decisions of a value", s.Decisions(j).OfValue(mapreduce.NewRecordID(max(0, level), 1), b), of("decision", 4, a, max(0, level), int64(1), b)},
			{"records that are reviewed", s.Decisions(j).AllReviewing(), of("reviewing", 1, a)},
			{"delayed with prefix", s.Queues(j).NumberedDelayed(b), text("delayed")},
			{"parked with prefix", s.Queues(j).NumberedParked(b), text("parked")},
			{"woken with prefix", s.Queues(j).NumberedWoken(b), text("woken")},
			{"order from", s.Job(j).OrderFrom(0, level), func(d drawn) bool {
				return d.name == "order" && d.elements[0] == a && d.elements[1] == int64(0) && d.elements[2].(int64) >= level
			}},
		}
		d := draw(t, s)
		for _, r := range regions {
			if got, want := in(r.r, d.key), r.has(d); got != want {
				t.Errorf("range of %s holds %s %v: %t, want %t", r.name, d.name, d.elements, got, want)
			}
		}
		owned := slices.ContainsFunc(s.Job(j).Owned(), func(r store.Range) bool { return in(r, d.key) })
		_, ofJob := s.Known(d.name)
		want := ofJob && !slices.Contains([]string{"jobs", "ctl", "ingest"}, d.name) && d.elements[0] == a
		want = want || d.name == "grant" && d.elements[0] == int64(mapreduce.JobKind) && d.elements[1] == a
		if owned != want {
			t.Errorf("job %q owns %s %v: %t, want %t", a, d.name, d.elements, owned, want)
		}
	})
}

func TestNextCheckpointIsFilledIn(t *testing.T) {
	s := keys.New("prefix")
	key, offset := s.Job("job").NextCheckpoint()
	stamp := store.Versionstamp{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	copy(key[offset:], stamp[:])
	if want := s.Job("job").Checkpoint(stamp); !bytes.Equal(key, want) {
		t.Errorf("filled in %x, want %x", key, want)
	}
}

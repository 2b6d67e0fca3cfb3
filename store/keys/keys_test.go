package keys_test

import (
	"bytes"
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
	m, n := number.Draw(t, "m"), number.Draw(t, "n")
	j, u := mapreduce.JobID(a), mapreduce.UnitID(b)
	class := uint32(rapid.IntRange(0, 1).Draw(t, "class"))
	stamp := store.Versionstamp(rapid.SliceOfN(rapid.Byte(), 10, 10).Draw(t, "stamp"))
	sha := rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "sha")
	all := []drawn{
		{"format", nil, s.Format()},
		{"jobs", []any{a}, s.Job(j)},
		{"units", []any{a, b}, s.Unit(j, u)},
		{"checkpoints", []any{a, tuple.Versionstamp{Transaction: stamp}}, s.Checkpoint(j, stamp)},
		{"ctl", []any{a}, s.Ctl(j)},
		{"order", []any{a, m, n}, s.Order(j, m, n)},
		{"recent", []any{m, a}, s.Recent(m, j)},
		{"tenantjobs", []any{c, m, a}, s.TenantJob(mapreduce.TenantID(c), m, j)},
		{"ready", []any{a, m, int64(class), n}, s.Ready(j, m, class, n)},
		{"delayed", []any{a, b}, s.Delayed(j, u)},
		{"parked", []any{a, b}, s.Parked(j, u)},
		{"woken", []any{a, b}, s.Woken(j, u)},
		{"failed", []any{a, m, b}, s.Failed(j, m, u)},
		{"run", []any{c, a}, s.Run(mapreduce.TenantID(c), j)},
		{"held", []any{b, c}, s.Held(mapreduce.SessionID(b), c)},
		{"sess", []any{b}, s.Session(mapreduce.SessionID(b))},
		{"beat", []any{b}, s.Beat(mapreduce.NodeID(b))},
		{"doubt", []any{b}, s.Doubt(mapreduce.NodeID(b))},
		{"grant", []any{int64(mapreduce.JobKind), a, b}, s.Grant(mapreduce.JobScope(j), mapreduce.NodeID(b))},
		{"grant", []any{int64(mapreduce.TenantKind), a, b}, s.Grant(mapreduce.TenantScope(mapreduce.TenantID(a)), mapreduce.NodeID(b))},
		{"grant", []any{int64(mapreduce.FleetKind), "", b}, s.Grant(mapreduce.FleetScope(), mapreduce.NodeID(b))},
		{"limit", []any{a}, s.Limit(a)},
		{"answer", []any{a, sha}, s.Answer(mapreduce.TenantID(a), sha)},
		{"answer", []any{a, sha, m}, s.AnswerChunk(mapreduce.TenantID(a), sha, m)},
		{"aged", []any{a, m, sha}, s.Aged(mapreduce.TenantID(a), m, sha)},
		{"kept", []any{a, m}, s.Kept(mapreduce.TenantID(a), m)},
		{"ctr", []any{a, m, n, b}, s.Counter(j, keys.Counter(m), n, mapreduce.NodeID(b))},
		{"tally", []any{a, b}, s.Tally(j, mapreduce.DocumentID(b))},
		{"seal", []any{a, m}, s.Seal(j, m)},
		{"plan", []any{a, m}, s.Plan(j, m)},
		{"picks", []any{a, m, n, int64(class)}, s.Picks(j, m, n, int64(class))},
		{"wait", []any{a, m, n}, s.Wait(j, m, n)},
		{"result", []any{a, b, m, n}, s.ResultChunk(j, u, m, n)},
		{"journal", []any{a, b, m, n}, s.JournalChunk(j, u, m, n)},
		{"evidence", []any{a, b, n}, s.Evidence(j, u, n)},
		{"evidence", []any{a, b, m, n}, s.EvidenceChunk(j, u, m, n)},
		{"blob", []any{a, sha, n}, s.BlobChunk(j, sha, n)},
		{"skipped", []any{a, n}, s.Skipped(j, n)},
		{"idem", []any{a, b}, s.Idem(mapreduce.TenantID(a), mapreduce.RequestID(b))},
		{"ingest", []any{a}, s.Ingest(j)},
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
			{"limits", s.Limits(), of("limit", 0)},
			{"units", s.Units(j), of("units", 1, a)},
			{"recent", s.RecentJobs(), of("recent", 0)},
			{"jobs of a tenant", s.TenantJobs(mapreduce.TenantID(a)), of("tenantjobs", 1, a)},
			{"jobs of all tenants", s.AllTenantJobs(), of("tenantjobs", 0)},
			{"ready", s.ReadyAll(j), of("ready", 1, a)},
			{"delayed", s.DelayedAll(j), of("delayed", 1, a)},
			{"parked", s.ParkedAll(j), of("parked", 1, a)},
			{"woken", s.WokenAll(j), of("woken", 1, a)},
			{"failed", s.FailedAll(j), of("failed", 1, a)},
			{"failed level", s.FailedLevel(j, level), of("failed", 2, a, level)},
			{"runs", s.Runs(), of("run", 1)},
			{"held by", s.HeldBy(mapreduce.SessionID(b)), of("held", 1, b)},
			{"held", s.HeldAll(), of("held", 1)},
			{"sessions", s.Sessions(), of("sess", 0)},
			{"beats", s.Beats(), of("beat", 0)},
			{"grants", s.Grants(mapreduce.JobScope(j)), of("grant", 2, int64(mapreduce.JobKind), a)},
			{"fleet's grants", s.Grants(mapreduce.FleetScope()), of("grant", 2, int64(mapreduce.FleetKind), "")},
			{"counters", s.Counters(j), of("ctr", 1, a)},
			{"stripes", s.CounterStripes(j, 3, level), of("ctr", 3, a, int64(3), level)},
			{"tallies", s.Tallies(j), of("tally", 1, a)},
			{"checkpoints", s.Checkpoints(j), of("checkpoints", 1, a)},
			{"seals", s.Seals(j), of("seal", 1, a)},
			{"plans", s.Plans(j), of("plan", 1, a)},
			{"picks of", s.PicksOf(j, 3, level), of("picks", 3, a, int64(3), level)},
			{"picks level", s.PicksLevel(j, level), of("picks", 2, a, level)},
			{"all picks", s.PicksAll(j), of("picks", 1, a)},
			{"wait level", s.WaitLevel(j, level), of("wait", 2, a, level)},
			{"waits", s.Waits(j), of("wait", 1, a)},
			{"results", s.Results(j, mapreduce.UnitID(b)), of("result", 3, a, b)},
			{"result", s.Result(j, mapreduce.UnitID(b), level), of("result", 3, a, b, level)},
			{"all results", s.ResultsAll(j), of("result", 1, a)},
			{"journals", s.JournalsAll(j), of("journal", 1, a)},
			{"journal", s.Journal(j, mapreduce.UnitID(b)), of("journal", 3, a, b)},
			{"journal entry", s.JournalEntries(j, mapreduce.UnitID(b), level, level+1), of("journal", 3, a, b, level)},
			{"blobs", s.Blobs(j), of("blob", 1, a)},
			{"skipped", s.SkippedAll(j), of("skipped", 1, a)},
			{"requests", s.Requests(), of("idem", 1)},
			{"ingests", s.Ingests(), of("ingest", 0)},
			{"units with prefix", s.NumberedUnits(j, b), text("units")},
			{"results with prefix", s.NumberedResults(j, b), text("result")},
			{"journals with prefix", s.NumberedJournals(j, b), text("journal")},
			{"all evidence", s.EvidenceAll(j), of("evidence", 1, a)},
			{"evidence", s.EvidenceOf(j, mapreduce.UnitID(b)), of("evidence", 2, a, b)},
			{"text of evidence", s.EvidenceText(j, mapreduce.UnitID(b), level), of("evidence", 3, a, b, level)},
			{"evidence with prefix", s.NumberedEvidence(j, b), text("evidence")},
			{"delayed with prefix", s.NumberedDelayed(j, b), text("delayed")},
			{"parked with prefix", s.NumberedParked(j, b), text("parked")},
			{"woken with prefix", s.NumberedWoken(j, b), text("woken")},
			{"order from", s.OrderFrom(j, 0, level), func(d drawn) bool {
				return d.name == "order" && d.elements[0] == a && d.elements[1] == int64(0) && d.elements[2].(int64) >= level
			}},
		}
		d := draw(t, s)
		for _, r := range regions {
			if got, want := in(r.r, d.key), r.has(d); got != want {
				t.Errorf("range of %s holds %s %v: %t, want %t", r.name, d.name, d.elements, got, want)
			}
		}
		owned := slices.ContainsFunc(s.Owned(j), func(r store.Range) bool { return in(r, d.key) })
		_, ofJob := s.Known(d.name)
		if want := ofJob && !slices.Contains([]string{"jobs", "ctl", "ingest"}, d.name) && d.elements[0] == a; owned != want {
			t.Errorf("job %q owns %s %v: %t, want %t", a, d.name, d.elements, owned, want)
		}
	})
}

func TestNextCheckpointIsFilledIn(t *testing.T) {
	s := keys.New("prefix")
	key, offset := s.NextCheckpoint("job")
	stamp := store.Versionstamp{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	copy(key[offset:], stamp[:])
	if want := s.Checkpoint("job", stamp); !bytes.Equal(key, want) {
		t.Errorf("filled in %x, want %x", key, want)
	}
}

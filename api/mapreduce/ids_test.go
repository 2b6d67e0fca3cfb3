package mapreduce_test

import (
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A2, A15 of docs/requirements.md.
func TestIDs(t *testing.T) {
	id := mapreduce.NewJobID(time.Date(2026, 1, 15, 23, 0, 0, 0, time.FixedZone("", -3600*3)), func(n int) int { return n - 1 })
	if id != "mr_20260116_zzzzzz" || !id.Valid() {
		t.Errorf("job id %q: want the day in UTC and six characters", id)
	}
	for _, bad := range []mapreduce.JobID{"", "mr_2026011_zzzzzz", "mr_20260116_ZZZZZZ", "mr_20260116_zzzzzz\n"} {
		if bad.Valid() {
			t.Errorf("%q is taken for a job id", bad)
		}
	}
	if u := mapreduce.ChunkUnit("a/b.txt", 3); u != "a/b.txt_chunk_3" {
		t.Errorf("chunk unit %q", u)
	}
	if u := mapreduce.ReduceUnit(2, 7); u != "reduce_L2_7" {
		t.Errorf("reduce unit %q", u)
	}
}

func TestUnreserve(t *testing.T) {
	for _, tt := range []struct{ id, want mapreduce.DocumentID }{
		{"plain.txt", "plain.txt"},
		{"final", "%66inal"},
		{"final.txt", "final.txt"},
		{"reduce_L1_0", "%72educe_L1_0"},
		{"parse_x", "%70arse_x"},
		{"a_chunk_0", "a_chunk%5F0"},
		{"parse_a_part_12", "%70arse_a_part%5F12"},
	} {
		got := mapreduce.Unreserve(tt.id)
		if got != tt.want || got.Reserved() {
			t.Errorf("Unreserve(%q) = %q, want %q, which is not reserved", tt.id, got, tt.want)
		}
		if again := mapreduce.Unreserve(got); again != got {
			t.Errorf("Unreserve(%q) = %q: it is not to change again", got, again)
		}
	}
}

// A4 of docs/requirements.md: the phases in order, and what may follow what.
func TestTransitions(t *testing.T) {
	all := []mapreduce.JobState{
		mapreduce.Decomposition, mapreduce.Mapping, mapreduce.Reducing, mapreduce.JobComplete,
		mapreduce.JobFailed, mapreduce.JobCancelled, mapreduce.JobPaused,
	}
	legal := map[mapreduce.JobState]string{
		mapreduce.Decomposition: "decomposition mapping reducing failed cancelled paused",
		mapreduce.Mapping:       "mapping reducing complete failed cancelled paused",
		mapreduce.Reducing:      "reducing complete failed cancelled paused",
		mapreduce.JobComplete:   "decomposition mapping reducing",
		mapreduce.JobFailed:     "decomposition mapping reducing cancelled",
		mapreduce.JobPaused:     "decomposition mapping reducing cancelled",
		mapreduce.JobCancelled:  "",
	}
	for _, from := range all {
		got := ""
		for _, to := range all {
			if from.CanBecome(to) {
				if got != "" {
					got += " "
				}
				got += to.String()
			}
		}
		if got != legal[from] {
			t.Errorf("%v may become %q, want %q", from, got, legal[from])
		}
		if back, err := mapreduce.ParseJobState(from.String()); err != nil || back != from {
			t.Errorf("%v does not parse back: %v, %v", from, back, err)
		}
	}
}

package batches

import (
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// How long lines have waited counts from when there were none, and not from the first of the job.
func TestLinesWaitFromTheirOwnTime(t *testing.T) {
	b := &Batches{config: Config{Linger: 10 * time.Second, Most: time.Hour}, lines: make(map[mapreduce.JobID]sighting)}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, seen := range []struct {
		after time.Duration
		count int
		due   bool
	}{
		{0, 1000, false},
		{5 * time.Second, 0, false}, // a full batch was made of them
		{2 * time.Hour, 1, false},
		{2*time.Hour + 59*time.Minute, 900, false},
		{3 * time.Hour, 950, true},
	} {
		if got := b.see("j", seen.count, true, begin.Add(seen.after)); got != seen.due {
			t.Errorf("look %d: a batch is due is %t, want %t", i, got, seen.due)
		}
	}
}

package console_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
)

// A clock is moved by hand.
type clock struct{ now time.Time }

func (c *clock) after(d time.Duration) { c.now = c.now.Add(d) }

func job(state mapreduce.JobState, level int, done, failed, total int64) *mapreduce.Job {
	return &mapreduce.Job{State: state, Level: level, CompletedUnits: done, FailedUnits: failed, TotalUnits: total}
}

func TestLog(t *testing.T) {
	var out strings.Builder
	c := &clock{now: time.Unix(1e9, 0)}
	m := console.NewMeter(console.MeterConfig{Out: &out, Now: func() time.Time { return c.now }})
	m.Job(job(mapreduce.Mapping, 0, 0, 0, 10))
	c.after(time.Second)
	m.Job(job(mapreduce.Mapping, 0, 1, 0, 10)) // too soon
	c.after(5 * time.Second)
	m.Job(job(mapreduce.Mapping, 0, 3, 1, 10))
	c.after(10 * time.Second)
	m.Job(job(mapreduce.Mapping, 0, 3, 1, 10)) // nothing new
	c.after(10 * time.Second)
	waiting := job(mapreduce.Mapping, 0, 3, 1, 10)
	waiting.ParkedUnits = 6
	m.Job(waiting)
	m.Job(job(mapreduce.Reducing, 1, 9, 1, 11))
	m.Note("note %d", 1)
	done := job(mapreduce.JobComplete, 1, 10, 1, 11)
	done.TotalTokens = mapreduce.Tokens{In: 5, Out: 2}
	m.Job(done)
	m.End()
	want := `mapping: 0 of 10 units
mapping: 4 of 10 units, 1 failed
mapping: 4 of 10 units, 1 failed, 6 parked
reducing 1: 10 of 11 units, 1 failed
note 1
complete: 11 of 11 units, 1 failed, 7 tokens
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

// A6: the bar does not go back when a level is added.
func TestBarIsMonotone(t *testing.T) {
	var out strings.Builder
	m := console.NewMeter(console.MeterConfig{Out: &out, Terminal: true, Now: func() time.Time { return time.Unix(1e9, 0) }})
	last, shown := 0, 0
	for _, j := range []*mapreduce.Job{
		job(mapreduce.Mapping, 0, 0, 0, 10), job(mapreduce.Mapping, 0, 5, 0, 10), job(mapreduce.Mapping, 0, 9, 1, 10),
		job(mapreduce.Reducing, 1, 9, 1, 20), job(mapreduce.Reducing, 1, 18, 2, 20), job(mapreduce.JobComplete, 1, 18, 2, 20),
	} {
		out.Reset()
		m.Job(j)
		shown = strings.Count(out.String(), "#")
		if shown < last {
			t.Errorf("%d cells after %d: %q", shown, last, out.String())
		}
		last = shown
	}
	if strings.Contains(out.String(), "-]") || shown == 0 {
		t.Errorf("in the end it shows %q", out.String())
	}
}

// TestSubmitting shows documents as they are handed over: in a log once in a
// while, and on a terminal as often as eyes can follow.
func TestSubmitting(t *testing.T) {
	for _, test := range []struct {
		name     string
		terminal bool
		want     string
	}{
		{"log", false, "submitting: 9 documents, 12.3 MB\n"},
		{"terminal", true, "submitting: 1 document, 0.5 kB\r\x1b[Ksubmitting: 9 documents, 12.3 MB\r\x1b[K"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out strings.Builder
			c := &clock{now: time.Unix(1e9, 0)}
			m := console.NewMeter(console.MeterConfig{Out: &out, Terminal: test.terminal, Now: func() time.Time { return c.now }})
			m.Submitting(1, 500)
			c.after(time.Millisecond)
			m.Submitting(2, 1000) // too soon
			c.after(5 * time.Second)
			m.Submitting(9, 12_345_678)
			m.End()
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBar(t *testing.T) {
	const erase = "\r\x1b[K"
	for _, test := range []struct {
		name  string
		width int
		want  string
	}{
		{"wide", 100, "mapping       [##########------------------------------] 5/20  1 failed  2/s  8s"},
		{"narrow", 60, "mapping       [####---------------] 5/20  1 failed  2/s  8s"},
		{"too narrow for a bar", 30, "mapping        5/20  1 failed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out strings.Builder
			c := &clock{now: time.Unix(1e9, 0)}
			m := console.NewMeter(console.MeterConfig{Out: &out, Terminal: true, Width: func() int { return test.width }, Now: func() time.Time { return c.now }})
			m.Job(job(mapreduce.Mapping, 0, 1, 0, 20))
			c.after(2 * time.Second)
			out.Reset()
			m.Job(job(mapreduce.Mapping, 0, 4, 1, 20))
			if diff := cmp.Diff(erase+test.want, out.String()); diff != "" {
				t.Errorf("bar (-want +got):\n%s", diff)
			}
			out.Reset()
			fmt.Fprintln(m, "a line of a logger")
			if diff := cmp.Diff(erase+"a line of a logger\n"+test.want, out.String()); diff != "" {
				t.Errorf("line through the bar (-want +got):\n%s", diff)
			}
			out.Reset()
			m.End()
			m.End()
			if got := out.String(); got != erase {
				t.Errorf("at the end: %q, want the bar erased once", got)
			}
		})
	}
}

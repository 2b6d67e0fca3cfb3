package clock_test

import (
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/clock"
)

// A deadline is a duration, a time of the day that is yet to come, or a date with a time, in the zone of
// whoever writes it unless it names one.
func TestParseDeadline(t *testing.T) {
	zone := time.FixedZone("there", 2*3600)
	now := time.Date(2026, 3, 30, 15, 10, 0, 0, zone)
	for _, tt := range []struct{ text, want string }{
		{"90m", "2026-03-30T16:40:00+02:00"},
		{" 4h30m ", "2026-03-30T19:40:00+02:00"},
		{"17:30", "2026-03-30T17:30:00+02:00"},
		{"15:10", "2026-03-31T15:10:00+02:00"},
		{"9:05", "2026-03-31T09:05:00+02:00"},
		{"2026-04-01 08:00", "2026-04-01T08:00:00+02:00"},
		{"2026-04-01T08:00:30", "2026-04-01T08:00:30+02:00"},
		{"2026-04-01T08:00:30Z", "2026-04-01T08:00:30Z"},
		{"0s", ""},
		{"-1h", ""},
		{"", ""},
		{"tomorrow", ""},
		{"25:00", ""},
		{"2026-04-01", ""},
		{"4", ""},
	} {
		at, err := clock.ParseDeadline(tt.text, now)
		got := ""
		if err == nil {
			got = at.Format(time.RFC3339)
		}
		if got != tt.want {
			t.Errorf("%q is %q (%v), want %q", tt.text, got, err, tt.want)
		}
	}
}

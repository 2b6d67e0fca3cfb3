package clock

import (
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/errs"
)

// deadlineForms are the ways to write a time by which a job is to end: with its zone, or in that of whoever
// reads it.
func deadlineForms() []string {
	return []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04"}
}

// ParseDeadline returns the time by which a job is to end, as people write it at a moment, in whose zone they
// are: a duration from then on, such as 90m or 4h30m; a time of the day, such as 17:30, today, or tomorrow if
// that is past; or a date with a time.
func ParseDeadline(text string, now time.Time) (time.Time, error) {
	text = strings.TrimSpace(text)
	if d, err := time.ParseDuration(text); err == nil {
		if d <= 0 {
			return time.Time{}, errs.New(errs.Invalid, "%s is no time from now on", text)
		}
		return now.Add(d), nil
	}

	if clock, err := time.ParseInLocation("15:04", text, now.Location()); err == nil {
		at := time.Date(now.Year(), now.Month(), now.Day(), clock.Hour(), clock.Minute(), 0, 0, now.Location())
		if !at.After(now) {
			at = time.Date(now.Year(), now.Month(), now.Day()+1, clock.Hour(), clock.Minute(), 0, 0, now.Location())
		}
		return at, nil
	}

	for _, form := range deadlineForms() {
		if at, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return at, nil
		}
	}
	return time.Time{}, errs.New(errs.Invalid, "%.40q is neither a duration such as 4h30m, nor a time such as 17:30 or 2026-03-31 17:30", text)
}

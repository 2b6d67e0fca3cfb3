package dispatch

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
)

// Bounds of what a worker may say, so that no sum of it overflows, and no time that it
// names lasts for ever. What an attempt took or saved is refused above them; pauses, and what
// is shown while an attempt runs, are taken as the bound.
const (
	// maxReportTokens and maxReportMicros bound what one attempt may spend: no attempt can
	// spend more, and hundreds of millions of such reports are no overflow of a counter.
	maxReportTokens = 1 << 34
	maxReportMicros = 1 << 36 // about 69,000 US dollars
	// maxPause bounds the pause before another attempt, and how long a model rests or its
	// breaker stays open without anyone trying: a vendor that needs longer says so again.
	maxPause = time.Hour
	// maxParked bounds the time after which a parked unit goes on by itself.
	maxParked = 366 * 24 * time.Hour
	// maxSpan bounds the times that an attempt took.
	maxSpan = 31 * 24 * time.Hour
	// maxPrompt bounds what a model was given in one call, in bytes.
	maxPrompt = 1 << 30
	// maxSuccesses bounds the calls between two notes, and maxRate what a vendor may allow
	// in a minute.
	maxSuccesses = 1 << 20
	maxRate      = 1 << 50
)

// BoundMessage brings the times and the counts of a worker's message within bounds,
// in place.
func BoundMessage(m *protocol.FromWorker) {
	for i := range m.Reports {
		boundReport(&m.Reports[i])
	}
	for i := range m.Reserve {
		m.Reserve[i].Tokens = min(m.Reserve[i].Tokens, maxReportTokens)
	}
	for i := range m.Limits {
		n := &m.Limits[i]
		n.Successes, n.Pause = min(n.Successes, maxSuccesses), min(n.Pause, maxPause)
		boundRates(&n.Told)
		boundRates(&n.Left)
	}

	if m.Heartbeat == nil {
		return
	}
	for i := range m.Heartbeat.Progress {
		p := &m.Heartbeat.Progress[i]
		p.Note = boundNote(p.Note)
		p.Tokens.In, p.Tokens.Out = min(p.Tokens.In, maxReportTokens), min(p.Tokens.Out, maxReportTokens)
	}
	for i := range m.Heartbeat.Breakers {
		b := &m.Heartbeat.Breakers[i]
		b.OpenFor = min(b.OpenFor, maxPause)
	}
}

// boundNote returns a note as it is shown to people: one line without control characters, cut
// between characters.
func boundNote(note string) string {
	end := min(len(note), protocol.MaxNote)
	for end > 0 && end < len(note) && !utf8.RuneStart(note[end]) {
		end--
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, note[:end])
}

func boundReport(r *protocol.Report) {
	r.RetryAfter = min(r.RetryAfter, maxPause)
	if r.Parking != nil {
		r.Parking.WakeAfter = min(r.Parking.WakeAfter, maxParked)
	}
}

func boundRates(r *mapreduce.Rates) {
	r.Requests, r.Input, r.Output = min(r.Requests, maxRate), min(r.Input, maxRate), min(r.Output, maxRate)
}

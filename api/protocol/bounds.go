package protocol

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/mapreduce"
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

// Bound brings the times and the counts of a worker's message within bounds, in place.
func (m *FromWorker) Bound() {
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
	end := min(len(note), MaxNote)
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

func boundReport(r *Report) {
	r.RetryAfter = min(r.RetryAfter, maxPause)
	if r.Parking != nil {
		r.Parking.WakeAfter = min(r.Parking.WakeAfter, maxParked)
	}
}

func boundRates(r *mapreduce.Rates) {
	r.Requests, r.Input, r.Output = min(r.Requests, maxRate), min(r.Input, maxRate), min(r.Output, maxRate)
}

// Check returns an error that says which count, time or length of a report is impossible.
func (r *Report) Check() error {
	inline := r.Length == 0 && len(r.SHA256) == 0 && len(r.Output) <= MaxInline
	put := len(r.Output) == 0 && r.Length > 0 && r.Length <= MaxOutput && len(r.SHA256) == sha256.Size

	switch {
	case r.Outcome == Done && !inline && !put:
		return fmt.Errorf("an output of %d bytes that was put, with a hash of %d bytes and %d bytes beside it", r.Length, len(r.SHA256), len(r.Output))
	case r.Size < 0 || r.Size > maxReportTokens:
		return fmt.Errorf("an output of %d tokens", r.Size)
	case !(r.Confidence >= 0 && r.Confidence <= 1):
		return fmt.Errorf("a confidence of %v", r.Confidence)
	}
	return cmp.Or(checkSpent(r), checkTimes(r), checkSavings(r))
}

// DropImpossible takes numbers that cannot be off a report. What an attempt spent is not
// known then, and what it had reserved is charged.
func (r *Report) DropImpossible() {
	if checkSpent(r) != nil {
		r.Tokens, r.CostMicros, r.Charges, r.Unmeasured = mapreduce.Tokens{}, 0, nil, true
	}
	if checkSavings(r) != nil { // more than is charged cannot be saved of it
		r.Savings = mapreduce.Savings{}
	}
	if checkTimes(r) != nil {
		r.Latency, r.ToolTime, r.Elapsed, r.Calls, r.Tools, r.Prompt = 0, 0, 0, 0, 0, 0
	}
}

// checkSpent returns an error that names what an attempt cannot have spent.
func checkSpent(r *Report) error {
	switch {
	case !countsTokens(r.Tokens.In):
		return impossible("tokens.input", r.Tokens.In)
	case !countsTokens(r.Tokens.Out):
		return impossible("tokens.output", r.Tokens.Out)
	case r.CostMicros < 0 || r.CostMicros > maxReportMicros:
		return impossible("cost_micros", r.CostMicros)
	}

	// What is possible in each may be too much in all: see mapreduce.WholeCharges.
	for i, c := range r.Charges {
		if !c.IsPossible() || !countsTokens(c.Calls) || !countsTokens(c.Tokens.In) || !countsTokens(c.Tokens.Out) || c.CostMicros > maxReportMicros {
			return impossible(fmt.Sprintf("charges[%d]", i), c)
		}
	}
	return nil
}

// checkTimes returns an error that names the time or the count of calls that an attempt
// cannot have had.
func checkTimes(r *Report) error {
	times := []struct {
		name string
		took time.Duration
	}{{"call_latency", r.Latency}, {"tool_time", r.ToolTime}, {"elapsed", r.Elapsed}}
	for _, t := range times {
		if t.took < 0 || t.took > maxSpan {
			return impossible(t.name, t.took)
		}
	}

	switch {
	case r.Prompt < 0 || r.Prompt > maxPrompt:
		return impossible("largest_prompt_bytes", r.Prompt)
	case r.Calls < 0:
		return impossible("call_count", r.Calls)
	case r.Tools < 0:
		return impossible("tool_call_count", r.Tools)
	}
	return nil
}

// checkSavings returns an error that names what caches cannot have saved an attempt: more
// tokens than it was charged for, or money without tokens or answers.
func checkSavings(r *Report) error {
	s := &r.Savings
	cached := s.CacheRead + s.CacheWrite
	switch {
	case !countsTokens(s.Answers):
		return impossible("savings.answer_count", s.Answers)
	case s.AnswerMicros < 0 || s.AnswerMicros > maxReportMicros || s.Answers == 0 && s.AnswerMicros > 0:
		return impossible("savings.answer_cost_micros", s.AnswerMicros)
	case !countsTokens(s.CacheWrite) || s.CacheWrite > r.Tokens.In:
		return impossible("savings.cache_write_tokens", s.CacheWrite)
	case !countsTokens(s.CacheRead) || cached > r.Tokens.In:
		return impossible("savings.cache_read_tokens", s.CacheRead)
	case s.PromptMicros > maxReportMicros || s.PromptMicros < -r.CostMicros || cached == 0 && s.PromptMicros != 0:
		return impossible("savings.prompt_cost_micros", s.PromptMicros)
	}
	return nil
}

// impossible returns the error of a number that no attempt has.
func impossible(field string, value any) error {
	return fmt.Errorf("%s is %v, which no attempt has", field, value)
}

func countsTokens(tokens int64) bool { return tokens >= 0 && tokens <= maxReportTokens }

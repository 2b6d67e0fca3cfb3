package meter

import (
	"math"
	"time"
)

// Rates are the limits that the server keeps. Zero is no limit.
type Rates struct {
	Requests   float64 // a minute
	Input      float64 // tokens a minute, but for those read from the cache
	Output     float64 // tokens a minute
	Concurrent int
}

// Limits are rates as they stand. A call is let in if there is something left of
// each, and what it takes is taken when it is known. They are not safe for use by several goroutines at once.
type Limits struct {
	rates                   Rates
	at                      time.Time
	requests, input, output float64
}

// NewLimits returns limits of which nothing is taken.
func NewLimits(r Rates, now time.Time) *Limits {
	return &Limits{rates: r, at: now, requests: r.Requests, input: r.Input, output: r.Output}
}

func (l *Limits) refillAll(now time.Time) {
	d := max(now.Sub(l.at), 0).Minutes()
	l.at = now
	l.requests = min(l.requests+d*l.rates.Requests, l.rates.Requests)
	l.input = min(l.input+d*l.rates.Input, l.rates.Input)
	l.output = min(l.output+d*l.rates.Output, l.rates.Output)
}

// Admit takes a request, or returns how long until it would be let in.
func (l *Limits) Admit(now time.Time, input float64) time.Duration {
	l.refillAll(now)
	wait := max(
		refillTime(l.requests, 1, l.rates.Requests),
		refillTime(l.input, min(input, l.rates.Input), l.rates.Input),
		refillTime(l.output, min(1, l.rates.Output), l.rates.Output),
	)

	// The tokens of the answer are taken once they are known.
	if wait == 0 {
		l.requests--
		l.input -= input
	}

	return wait
}

// refillTime returns how long a level takes to reach what is wanted.
func refillTime(level, want, perMinute float64) time.Duration {
	if perMinute == 0 || level >= want {
		return 0
	}
	return time.Duration(math.Ceil((want-level)/perMinute*60)) * time.Second
}

// TakeOutput takes the tokens of an answer.
func (l *Limits) TakeOutput(tokens int64) { l.output -= float64(tokens) }

// A Standing is how a limit stands.
type Standing struct {
	Of         string // requests, input-tokens or output-tokens
	Size, Left int
	Full       time.Duration // until all of it is left again
}

// Standings tells how the limits stand, those that there are.
func (l *Limits) Standings() []Standing {
	var all []Standing
	for _, one := range []struct {
		of          string
		level, size float64
	}{
		{"requests", l.requests, l.rates.Requests},
		{"input-tokens", l.input, l.rates.Input},
		{"output-tokens", l.output, l.rates.Output},
	} {
		if one.size > 0 {
			full := time.Duration((one.size - one.level) / one.size * float64(time.Minute)).Round(time.Millisecond)
			all = append(all, Standing{Of: one.of, Size: int(one.size), Left: int(max(one.level, 0)), Full: full})
		}
	}
	return all
}

package fakellm

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// Rates are the limits that the server keeps. Zero is no limit.
type Rates struct {
	Requests   float64 // a minute
	Input      float64 // tokens a minute, but for those read from the cache
	Output     float64 // tokens a minute
	Concurrent int
}

// buckets are limits as they stand. A call is let in if there is something in
// each, and what it takes is taken when it is known.
type buckets struct {
	rates                   Rates
	at                      time.Time
	requests, input, output float64
}

func newBuckets(r Rates, now time.Time) buckets {
	return buckets{rates: r, at: now, requests: r.Requests, input: r.Input, output: r.Output}
}

func (b *buckets) refillAll(now time.Time) {
	d := max(now.Sub(b.at), 0).Minutes()
	b.at = now
	b.requests = min(b.requests+d*b.rates.Requests, b.rates.Requests)
	b.input = min(b.input+d*b.rates.Input, b.rates.Input)
	b.output = min(b.output+d*b.rates.Output, b.rates.Output)
}

// admitRequest takes a request, or returns how long until it would be let in.
func (b *buckets) admitRequest(now time.Time, input float64) time.Duration {
	b.refillAll(now)
	wait := max(
		refillTime(b.requests, 1, b.rates.Requests),
		refillTime(b.input, min(input, b.rates.Input), b.rates.Input),
		refillTime(b.output, min(1, b.rates.Output), b.rates.Output),
	)

	// The tokens of the answer are taken once they are known.
	if wait == 0 {
		b.requests--
		b.input -= input
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

// writeHeaders tells how limits stand, as a vendor does.
func (b *buckets) writeHeaders(h http.Header, w Wire, now time.Time) {
	for _, one := range []struct {
		anthropic, openai string
		level, size       float64
	}{
		{"requests", "requests", b.requests, b.rates.Requests},
		{"input-tokens", "tokens", b.input, b.rates.Input},
		{"output-tokens", "", b.output, b.rates.Output},
	} {
		if one.size == 0 {
			continue
		}

		full := time.Duration((one.size - one.level) / one.size * float64(time.Minute)).Round(time.Millisecond)
		limit, left := strconv.Itoa(int(one.size)), strconv.Itoa(int(max(one.level, 0)))

		// Google's, Bedrock's and Ollama's formats tell nothing of limits.
		switch {
		case w == Anthropic:
			name := "Anthropic-Ratelimit-" + one.anthropic
			h.Set(name+"-Limit", limit)
			h.Set(name+"-Remaining", left)
			h.Set(name+"-Reset", now.Add(full).UTC().Format(time.RFC3339))
		case w == OpenAI && one.openai != "":
			h.Set("X-Ratelimit-Limit-"+one.openai, limit)
			h.Set("X-Ratelimit-Remaining-"+one.openai, left)
			h.Set("X-Ratelimit-Reset-"+one.openai, fmt.Sprint(full))
		}
	}
}

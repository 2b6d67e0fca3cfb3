package llm

import (
	"net/http"
	"strconv"
	"time"
)

// Limits are what a vendor says is left of a model's limits. A bucket that it
// said nothing of is the zero Bucket.
type Limits struct {
	Requests Bucket
	Input    Bucket // tokens
	Output   Bucket // tokens
	Tokens   Bucket // input and output in one
}

// A Bucket is one limit.
type Bucket struct {
	Known     bool
	Limit     int64         // when full; 0 if not said
	Remaining int64         // now
	Reset     time.Duration // until it is full again; 0 if not said
}

// anthropicLimits reads headers whose resets are points in time.
func anthropicLimits(h http.Header, now time.Time) Limits {
	read := func(name string) Bucket {
		name = "anthropic-ratelimit-" + name
		b := parseBucket(h.Get(name+"-limit"), h.Get(name+"-remaining"))
		if at, err := time.Parse(time.RFC3339, h.Get(name+"-reset")); err == nil && b.Known {
			b.Reset = max(at.Sub(now), 0)
		}
		return b
	}
	return Limits{
		Requests: read("requests"), Input: read("input-tokens"),
		Output: read("output-tokens"), Tokens: read("tokens"),
	}
}

// openaiLimits reads headers whose resets are durations as Go writes them.
func openaiLimits(h http.Header, _ time.Time) Limits {
	read := func(name string) Bucket {
		b := parseBucket(h.Get("x-ratelimit-limit-"+name), h.Get("x-ratelimit-remaining-"+name))
		if d, err := time.ParseDuration(h.Get("x-ratelimit-reset-" + name)); err == nil && b.Known {
			b.Reset = max(d, 0)
		}
		return b
	}
	return Limits{Requests: read("requests"), Tokens: read("tokens")}
}

// parseBucket is known if it says how much is left.
func parseBucket(limit, remaining string) Bucket {
	left, err := strconv.ParseInt(remaining, 10, 64)
	if err != nil {
		return Bucket{}
	}
	full, err := strconv.ParseInt(limit, 10, 64)
	if err != nil {
		full = 0
	}
	return Bucket{Known: true, Limit: max(full, 0), Remaining: max(left, 0)}
}

// maxRetryAfter bounds what is believed of a Retry-After: a server that asks for
// more is as good as down, and the orchestrator decides how long to wait.
const maxRetryAfter = time.Hour

// retryAfter reads the pause that a response asks for: Retry-After-Ms, or
// Retry-After in seconds, with a fraction or not, or as a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return scaleDuration(ms, time.Millisecond)
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return scaleDuration(s, time.Second)
	}
	if at, err := http.ParseTime(v); err == nil {
		return min(max(at.Sub(now), 0), maxRetryAfter)
	}
	return 0
}

// scaleDuration is n units, which may be no number at all.
func scaleDuration(n float64, unit time.Duration) time.Duration {
	if !(n > 0) {
		return 0
	}
	if n > float64(maxRetryAfter/unit) {
		return maxRetryAfter
	}
	return time.Duration(n * float64(unit))
}

package wire

import (
	"net/http"
	"strconv"
	"time"

	"github.com/coditect/mapreduce/worker/llm"
)

// ParseBucket is known if it says how much is left.
func ParseBucket(limit, remaining string) llm.Bucket {
	left, err := strconv.ParseInt(remaining, 10, 64)
	if err != nil {
		return llm.Bucket{}
	}
	full, err := strconv.ParseInt(limit, 10, 64)
	if err != nil {
		full = 0
	}
	return llm.Bucket{Known: true, Limit: max(full, 0), Remaining: max(left, 0)}
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

package jobspec

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/text/token"
)

// A Counter counts the tokens of a job's texts, as the job wants it: outputs are
// counted by workers, in the same way, unless a provider has.
type Counter struct {
	estimate token.Estimator // nil guesses
}

// Counter returns what counts for a job. An estimator that this program does not
// know, of a job that a later one took, is taken for a guess: the job's cuts were
// made when it was submitted.
func (r *Rules) Counter(s *mapreduce.JobSpec) Counter {
	estimate, _ := token.Named(s.Estimator, r.Count) // checkSpec says so
	return Counter{estimate}
}

// Count implements chunk.Counter.
func (c Counter) Count(text string) int {
	n, _ := token.Size(text, token.Unknown, c.estimate)
	return int(n)
}

// IsEstimate reports whether nobody counts: a quarter of the characters is taken.
func (c Counter) IsEstimate() bool { return c.estimate == nil }

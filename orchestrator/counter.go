package orchestrator

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/token"
)

// A counter counts the tokens of a job's texts, as the job wants it: outputs are
// counted by workers, in the same way, unless a provider has.
type counter struct {
	estimate token.Estimator // nil guesses
}

// tokenCounter returns what counts for a job. An estimator that this program does not
// know, of a job that a later one took, is taken for a guess: the job's cuts were
// made when it was submitted.
func (c *Config) tokenCounter(s *mapreduce.JobSpec) counter {
	estimate, _ := token.Named(s.Estimator, c.Count) // checkSpec says so
	return counter{estimate}
}

// Count implements chunk.Counter.
func (c counter) Count(text string) int {
	n, _ := token.Size(text, token.Unknown, c.estimate)
	return int(n)
}

// isEstimate reports whether nobody counts: a quarter of the characters is taken.
func (c counter) isEstimate() bool { return c.estimate == nil }

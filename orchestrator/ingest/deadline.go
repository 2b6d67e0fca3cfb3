package ingest

import (
	"time"

	"github.com/coditect/mapreduce/api/errs"
)

// checkDeadline refuses a job that could not end by its deadline if all of its calls were made at once, which takes
// so long as planned. No tier is surely quicker: a vendor says of priority that it is, and not by how much.
func (s *submission) checkDeadline(takes time.Duration, parallelism int) error {
	if s.spec.Deadline.IsZero() {
		return nil
	}

	const form = "2006-01-02 15:04:05 UTC"
	now := time.Now()
	switch left := s.spec.Deadline.Sub(now); {
	case left <= 0:
		return errs.Field("deadline", "is %s, which is past", s.spec.Deadline.UTC().Format(form))
	case takes > left:
		return errs.Field("deadline", "is in %v, and the job takes about %v at any price: that is with all calls in real time, %d at a time; give it until %s, or raise the parallelism",
			left.Round(time.Second), takes.Round(time.Second), parallelism, now.Add(takes+time.Second).UTC().Format(form))
	}
	return nil
}

// atLeast is how long a submission takes of which no plan was made: a call for each of its units of documents.
func (s *submission) atLeast() time.Duration {
	r := s.config.planRates(s.spec)
	rounds := (s.publication.Map-1)/int64(max(1, r.Parallelism)) + 1
	return time.Duration(rounds) * r.CallTime
}

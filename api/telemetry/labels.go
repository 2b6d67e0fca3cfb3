package telemetry

import "sync"

// Other is the value of a label for all that have none of their own.
const Other = "_other"

// Labels bounds how many values a label has: each is a time series that somebody keeps,
// and its name may come from a client. The first values have their own, the others
// share Other. It is safe for concurrent use.
type Labels struct {
	most int

	mu   sync.RWMutex // guards the variable below
	seen map[string]bool
}

// NewLabels returns a label that has at most so many values besides Other.
func NewLabels(most int) *Labels { return &Labels{most: most, seen: make(map[string]bool)} }

// Of returns value, or Other if there are too many.
func (l *Labels) Of(value string) string {
	l.mu.RLock()
	seen, full := l.seen[value], len(l.seen) >= l.most
	l.mu.RUnlock()

	if seen {
		return value
	}
	if full {
		return Other
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	// Another may have taken the last place since.
	if len(l.seen) >= l.most && !l.seen[value] {
		return Other
	}
	l.seen[value] = true
	return value
}

package figures

import "sync/atomic"

// A countdown lets so many through, and closes a channel when they all have been.
type countdown struct {
	left atomic.Int64
	last chan<- struct{}
}

func newCount(n int, last chan<- struct{}) *countdown {
	c := &countdown{last: last}
	c.left.Store(int64(n))
	return c
}

// admit reports whether the caller is one of those let through.
func (c *countdown) admit() bool {
	left := c.left.Add(-1)
	if left == 0 {
		close(c.last)
	}
	return left >= 0
}

package figures

import "sync/atomic"

// A count lets so many through, and closes a channel when they all have been.
type count struct {
	left atomic.Int64
	last chan<- struct{}
}

func newCount(n int, last chan<- struct{}) *count {
	c := &count{last: last}
	c.left.Store(int64(n))
	return c
}

// add reports whether the caller is one of those let through.
func (c *count) add() bool {
	left := c.left.Add(-1)
	if left == 0 {
		close(c.last)
	}
	return left >= 0
}

package workers

import "time"

// A Clock is since when an attempt is held, and since when it runs, on the clock
// that runs while the store answers; each as of the first look at the attempt. A look is
// no earlier than what it sees, so a worker has a little more time than it may take.
type Clock struct {
	looked  bool
	Given   time.Duration
	running bool
	Began   time.Duration
	// The most units that parse which the session held at once, at a look. They take turns at
	// the processors, so one of them, or what waits for its slot, may wait for all of them.
	Parsing int
}

// Look notes the attempt as it is seen at a time, beside so many units that parse, and returns
// its clock.
func (a *Attempt) Look(now time.Duration, parsing int) Clock {
	c := &a.clock
	if !c.looked {
		c.looked, c.Given = true, now
	}
	if a.running && !c.running {
		c.running, c.Began = true, now
	}
	c.Parsing = max(c.Parsing, parsing)
	return *c
}

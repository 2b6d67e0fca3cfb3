package mapreduce

import "time"

// Rates are what may be asked of a model in a minute. Zero is no limit.
type Rates struct {
	Requests int64
	Input    int64 // tokens
	Output   int64 // tokens
}

// A LimitNote is what a worker has seen of a model since its last note.
type LimitNote struct {
	Name      string // provider/model
	Successes int64  // calls
	Refused   bool   // a call was, for want of room
	// Pause is how long the vendor asked for no calls when it refused one.
	Pause time.Duration
	Told  Rates // limits that the vendor told of
	Left  Rates // what it said is left of those, now
}

// A LimitShare is what a worker may ask of a model until it is told otherwise,
// or its time is up.
type LimitShare struct {
	Name  string        // provider/model
	For   time.Duration // calls may begin so long from now on; 0 is for ever
	Calls int64         // at once; 0 is no limit
	Rates Rates         // of the whole fleet
	Left  Rates         // about what is left of those now; 0 if nothing is known
	Part  float64       // of Rates and Left that this worker may use, in [0,1]
	Pause time.Duration // no call may begin before that has passed
	// OpenFor is how long its breaker is open: all calls end by it.
	OpenFor time.Duration
}

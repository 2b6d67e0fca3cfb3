package llm

import "time"

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

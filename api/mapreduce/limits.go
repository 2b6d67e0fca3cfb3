package mapreduce

// Rates are the limits of calls of a model in a minute. Zero means no limit.
type Rates struct {
	Requests int64
	Input    int64 // tokens
	Output   int64 // tokens
}

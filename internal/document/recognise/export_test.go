package recognise

// For tests.
var (
	Parse = parse
	Skew  = skew

	FitInk   = fitInk
	Positive = positive
)

package recognise

// For tests.
var (
	Parse = parse
	Skew  = skewOf

	FitInk   = fitInk
	Positive = positive
)

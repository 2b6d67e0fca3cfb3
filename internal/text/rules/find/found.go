package find

// A Found is one value and the place that it was read from. A field of type
// array has one for each element.
type Found struct {
	Field      string // path
	Value      any    // normalised, see schema.Property.Normalize
	Quote      string // Text[Start:End]
	Start, End int    // bytes of Text
	Confidence float64
	Basis      Basis
	Rivals     int // other values that the same rule found and that say something else
}

// A Basis is what a value was found by.
type Basis string

// The bases, the best first.
const (
	ByHint   Basis = ""       // labels, a pattern, lines or phrases of the schema
	ByColumn Basis = "column" // the name of the property, as that of a column of a table whose head fits the schema
	ByEntry  Basis = "entry"  // the name of the property, at the head of a line and with a colon behind it
	ByName   Basis = "name"   // the name of the property elsewhere
	ByBlock  Basis = "block"  // its place in a block of values, of labels of which the name is one
	ByType   Basis = "type"   // nothing but the form of the value
	ByGuess  Basis = "guess"  // a label of the schema in a sentence, with words that may change what it means
)

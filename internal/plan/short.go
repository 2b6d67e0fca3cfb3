package plan

import "github.com/coditect/mapreduce/internal/text/pack"

// The field of a record by which plans reckon, whatever its name, its value and the quote behind it
// are. A reduce reads SampleField of it, which has 24 tokens, or 60 characters.
const (
	SampleValue = "INDAH GIFT & HOME DECO"
	SampleQuote = "BY INDAH GIFT & HOME DECO"
	SampleField = "company: " + SampleValue + "\n  " + SampleQuote + "\n"
)

// Short is how maps are answered with values alone, and asked once more where some of these stand.
type Short struct {
	Most    int64   // tokens of the longest text that is answered so
	Prompt  int64   // tokens of the prompt besides the text
	Written float64 // tokens of the answer for each that a reduce reads of the output

	Share int64 // of a hundred such maps that are asked once more
	Again int64 // tokens of the second prompt besides the text, the answer and what is asked about

	// Asked and Places are the tokens that these values have in the second prompt, and of the answer
	// that says where they stand, for each token that a reduce reads of the output.
	Asked, Places float64
}

// isFor reports whether a text of so many tokens is answered so.
func (s *Short) isFor(tokens int64) bool { return s != nil && tokens <= s.Most }

// asksAgain reports whether the n-th map, from 0 on, is reckoned among those that are asked once
// more, which are spread evenly.
func (s *Short) asksAgain(n int64) bool {
	return saturatingMul(n+1, s.Share)/100 > saturatingMul(n, s.Share)/100
}

// answer sets what a map takes that is answered so.
func (s *Short) answer(l *Load, again bool) {
	answer := min(l.Out, scaleUp(l.Size, s.Written))
	l.Calls, l.In, l.Out = 1, pack.Sum(l.Read, s.Prompt), answer
	if again {
		l.Calls++
		l.In = pack.Sum(l.In, l.Read, s.Again, answer, scaleUp(l.Size, s.Asked))
		l.Out = pack.Sum(l.Out, scaleUp(l.Size, s.Places))
	}
}

package confidence

import "github.com/coditect/mapreduce/api/schema"

// A Form is what values look like, as far as it says what becomes of them when they are misread.
type Form string

// The forms.
const (
	TextForm   Form = "text"   // any letters: what is misread is another text
	NumberForm Form = "number" // digits: what is misread may be another number, or none
	StrictForm Form = "form"   // a date, a choice, an address of mail: what is misread is mostly none
)

// Forms returns all forms.
func Forms() []Form { return []Form{TextForm, NumberForm, StrictForm} }

// FormOf returns the form of values of a property, or of its elements.
func FormOf(p *schema.Property) Form {
	if p == nil {
		return TextForm
	}
	switch p = elementOf(p); {
	case p.Enum == nil && p.Numeric():
		return NumberForm
	case judgeForm(p) == Confirms:
		return StrictForm
	}
	return TextForm
}

// recognition is how many values that were recognised in a picture are right, by how sure the program was of them:
// between two points on a line. docs/confidence.md has how it was measured.
var recognition = map[Form][]struct{ sure, right float64 }{
	TextForm:   {{0, 0.05}, {0.3, 0.25}, {0.45, 0.35}, {0.6, 0.45}, {0.75, 0.5}, {0.85, 0.75}, {0.93, 0.98}, {1, 1}},
	NumberForm: {{0, 0.3}, {0.2, 0.3}, {0.45, 0.42}, {0.65, 0.51}, {0.75, 0.59}, {0.85, 0.68}, {0.92, 0.88}, {0.96, 0.93}, {1, 0.97}},
	StrictForm: {{0, 0.7}, {0.35, 0.7}, {0.7, 0.78}, {0.85, 0.86}, {0.92, 0.98}, {1, 1}},
}

// OfRecognition returns the factor for a value of a form whose quote was recognised in a picture, by how sure the
// program was of the word that it was least sure of. It is 1 for 0: the quote was not recognised, but read.
func OfRecognition(form Form, sure float64) float64 {
	if sure <= 0 {
		return 1
	}

	points := recognition[form]
	for i := 1; i < len(points); i++ {
		if a, b := points[i-1], points[i]; sure <= b.sure {
			return a.right + (b.right-a.right)*(sure-a.sure)/(b.sure-a.sure)
		}
	}
	return 1
}

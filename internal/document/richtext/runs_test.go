package richtext_test

import (
	"testing"

	"github.com/coditect/mapreduce/internal/document/richtext"
)

func TestWritten(t *testing.T) {
	for _, test := range []struct {
		name, before, run string
		at                richtext.Position
		want              string
	}{
		{"power", "10", "6", richtext.Raised, "⁶"},
		{"negative power", "10", "-6", richtext.Raised, "⁻⁶"},
		{"negative power with a minus", "10", "−12", richtext.Raised, "⁻¹²"},
		{"unit", "25 m", "2", richtext.Raised, "²"},
		{"charge", "Ca", "2+", richtext.Raised, "²⁺"},
		{"formula", "H", "2", richtext.Lowered, "₂"},
		{"base", "1010", "2", richtext.Lowered, "₂"},
		{"index", "x", "(1)", richtext.Lowered, "₍₁₎"},
		{"space around", "10", " 6 ", richtext.Raised, " ⁶ "},
		{"ordinal", "1", "st", richtext.Raised, "st"},
		{"trade mark", "Acme", "TM", richtext.Raised, "TM"},
		{"letters with a digit", "x", "a2", richtext.Raised, "a2"},
		{"decimals behind a number", "10", "0.5", richtext.Raised, "^0.5"},
		{"numbers behind a number", "in 2015", "1,2", richtext.Raised, "^(1,2)"},
		{"numbers behind a word", "said", "1,2", richtext.Raised, "1,2"},
		{"numbers behind a number, apart", "in 2015", " 1,2", richtext.Raised, " 1,2"},
		{"variables behind a number", "10", "n+1", richtext.Raised, "^(n+1)"},
		{"reference", "in 2015", "[1]", richtext.Raised, "[1]"},
		{"lowered behind a number", "10", "2,5", richtext.Lowered, "_(2,5)"},
		{"nothing", "10", "", richtext.Raised, ""},
		{"space", "10", " ", richtext.Raised, " "},
		{"on the line", "10", "6", richtext.OnLine, "6"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := richtext.Written(test.before, test.run, test.at); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestText writes the texts of paragraphs by what their runs say.
func TestText(t *testing.T) {
	for _, test := range []struct {
		name  string
		write func(*richtext.Runs)
		want  string
	}{
		{"raised and lowered", func(x *richtext.Runs) {
			x.WriteString("CO")
			x.At(richtext.Lowered)
			x.WriteString("2")
			x.At(richtext.OnLine)
			x.WriteString(" at 10")
			x.At(richtext.Raised)
			x.WriteRune('6')
			x.At(richtext.Lowered)
			x.WriteRune('0')
		}, "CO₂ at 10⁶₀"},
		{"runs that are cut", func(x *richtext.Runs) {
			x.WriteString("the 1")
			x.At(richtext.Raised)
			x.WriteString("0")
			x.At(richtext.OnLine)
			x.At(richtext.Raised)
			x.WriteString("th")
		}, "the 1^(0th)"},
		{"number of a note", func(x *richtext.Runs) {
			x.WriteString("m")
			x.At(richtext.Raised)
			x.WriteString("2")
			x.Insert("[^1]")
			x.WriteString("3")
		}, "m²[^1]³"},
		{"equations", func(x *richtext.Runs) {
			x.WriteString("from ")
			x.Equation("a=b")
			x.Equation("c=d")
			x.Equation("=e")
			x.Equation("")
			x.WriteString(", 5")
			x.Equation("10²")
		}, "from a=b c=d=e, 5 10²"},
		{"equations on lines", func(x *richtext.Runs) {
			x.Line()
			x.WriteString("from")
			x.Line()
			x.Equation("a=b")
			x.Line()
			x.Equation("c=d")
			x.Line()
			x.WriteString("\nfollows")
			x.Line()
			x.WriteString("")
			x.Line()
		}, "from\na=b\nc=d\nfollows"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var text richtext.Runs
			test.write(&text)
			if got := text.String(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if text.Len() != len(test.want) {
				t.Errorf("got %d bytes, want %d", text.Len(), len(test.want))
			}
			if text.Reset(); text.String() != "" {
				t.Errorf("got %q behind Reset", text.String())
			}
		})
	}
}

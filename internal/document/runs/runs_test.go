package runs_test

import (
	"testing"

	"github.com/coditect/mapreduce/internal/document/runs"
)

func TestWritten(t *testing.T) {
	for _, test := range []struct {
		name, before, run string
		at                runs.Position
		want              string
	}{
		{"power", "10", "6", runs.Raised, "⁶"},
		{"negative power", "10", "-6", runs.Raised, "⁻⁶"},
		{"negative power with a minus", "10", "−12", runs.Raised, "⁻¹²"},
		{"unit", "25 m", "2", runs.Raised, "²"},
		{"charge", "Ca", "2+", runs.Raised, "²⁺"},
		{"formula", "H", "2", runs.Lowered, "₂"},
		{"base", "1010", "2", runs.Lowered, "₂"},
		{"index", "x", "(1)", runs.Lowered, "₍₁₎"},
		{"space around", "10", " 6 ", runs.Raised, " ⁶ "},
		{"ordinal", "1", "st", runs.Raised, "st"},
		{"trade mark", "Acme", "TM", runs.Raised, "TM"},
		{"letters with a digit", "x", "a2", runs.Raised, "a2"},
		{"decimals behind a number", "10", "0.5", runs.Raised, "^0.5"},
		{"numbers behind a number", "in 2015", "1,2", runs.Raised, "^(1,2)"},
		{"numbers behind a word", "said", "1,2", runs.Raised, "1,2"},
		{"numbers behind a number, apart", "in 2015", " 1,2", runs.Raised, " 1,2"},
		{"variables behind a number", "10", "n+1", runs.Raised, "^(n+1)"},
		{"reference", "in 2015", "[1]", runs.Raised, "[1]"},
		{"lowered behind a number", "10", "2,5", runs.Lowered, "_(2,5)"},
		{"nothing", "10", "", runs.Raised, ""},
		{"space", "10", " ", runs.Raised, " "},
		{"on the line", "10", "6", runs.OnLine, "6"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := runs.Written(test.before, test.run, test.at); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestText writes the texts of paragraphs by what their runs say.
func TestText(t *testing.T) {
	for _, test := range []struct {
		name  string
		write func(*runs.Text)
		want  string
	}{
		{"raised and lowered", func(x *runs.Text) {
			x.WriteString("CO")
			x.At(runs.Lowered)
			x.WriteString("2")
			x.At(runs.OnLine)
			x.WriteString(" at 10")
			x.At(runs.Raised)
			x.WriteRune('6')
			x.At(runs.Lowered)
			x.WriteRune('0')
		}, "CO₂ at 10⁶₀"},
		{"runs that are cut", func(x *runs.Text) {
			x.WriteString("the 1")
			x.At(runs.Raised)
			x.WriteString("0")
			x.At(runs.OnLine)
			x.At(runs.Raised)
			x.WriteString("th")
		}, "the 1^(0th)"},
		{"number of a note", func(x *runs.Text) {
			x.WriteString("m")
			x.At(runs.Raised)
			x.WriteString("2")
			x.Insert("[^1]")
			x.WriteString("3")
		}, "m²[^1]³"},
		{"equations", func(x *runs.Text) {
			x.WriteString("from ")
			x.Equation("a=b")
			x.Equation("c=d")
			x.Equation("=e")
			x.Equation("")
			x.WriteString(", 5")
			x.Equation("10²")
		}, "from a=b c=d=e, 5 10²"},
		{"equations on lines", func(x *runs.Text) {
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
			var text runs.Text
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

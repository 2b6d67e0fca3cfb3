package pdf_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/document/pdf"
	"github.com/coditect/mapreduce/internal/document/recognise"
)

// An alphabet is letters that run from right to left. Tests write them as capital letters,
// as examples of UAX #9 do.
type alphabet []rune

var alphabets = map[string]alphabet{
	"Hebrew": []rune("אבגדהוזחטיכלמנסעפצקרשתםןףץ"),
	"Arabic": []rune("بتثجحخدذرزسشصضطظعغفقكلمنهو"),
}

// of returns a text with letters for its capital letters.
func (a alphabet) of(text string) string {
	return strings.Map(func(c rune) rune {
		if 'A' <= c && c <= 'Z' {
			return a[c-'A']
		}
		return c
	}, text)
}

func shownLine(text string) []pdf.Shown { return []pdf.Shown{{Left: 100, Top: 100, Text: text}} }

// shownRows returns rows of texts that begin at the same places of a page.
func shownRows(lefts []float64, rows ...[]string) []pdf.Shown {
	var all []pdf.Shown
	for i, row := range rows {
		for k, text := range row {
			all = append(all, pdf.Shown{Left: lefts[k], Top: 100 + 12*float64(i), Text: text})
		}
	}
	return all
}

// TestDirections reads made-up pages of which lines run from right to left: whichever
// order PDFium gives their characters in.
func TestDirections(t *testing.T) {
	for _, test := range []struct {
		name  string // with that of an alphabet behind a colon, if the others differ
		shown []pdf.Shown
		want  string
	}{
		{"words", shownLine("IHG FED CBA"), "ABC DEF GHI"},
		{"punctuation", shownLine("?IHG .FED ,CBA"), "ABC, DEF. GHI?"},
		{"a bullet", shownLine("FED CBA •"), "• ABC DEF"},
		{"Latin words", shownLine("IHG FED machine learning CBA"), "ABC machine learning DEF GHI"},
		{"most words are Latin, of a page of which not", []pdf.Shown{{100, 100, "PO NM LKJ IHG FED CBA"}, {100, 112, "a b c (d) CBA"}, {100, 124, "a CBA b c"}}, "ABC DEF GHI JKL MN OP\nABC a b c (d)\na ABC b c"},
		{"a Latin word, and its number", shownLine("FED python 3 CBA"), "ABC python 3 DEF"},
		{"numbers", shownLine("IHG 12.50 FED 2024/03/19 CBA"), "ABC 2024/03/19 DEF 12.50 GHI"},
		{"numbers beside each other", shownLine("FED 10 20 CBA"), "ABC 20 10 DEF"},
		{"a number of a heading", shownLine("CBA -2-5"), "2-5- ABC"},
		{"signs at numbers: Hebrew", shownLine("GFED-12% CBA $30"), "$30 ABC 12%-DEFG"},
		{"signs at numbers: Arabic", shownLine("GFED-%12 CBA $30"), "$30 ABC 12%-DEFG"},
		{"a word of two directions", shownLine("FED pythonCBA"), "ABCpython DEF"},
		{"a word of two directions, with a space", shownLine("FED python 3CBA"), "ABCpython 3 DEF"},
		{"brackets as they look", shownLine("[3] (FED) CBA"), "ABC (DEF) [3]"},
		{"brackets as they are read", shownLine("]3[ )FED( CBA"), "ABC (DEF) [3]"},
		{"brackets in brackets", shownLine("((IHG) FED) CBA"), "ABC (DEF (GHI))"},
		{"a bracket that the line before opens", shownLine("FED (CBA"), "ABC) DEF"},
		{"brackets of a Latin text", shownLine("FED f(x) CBA"), "ABC f(x) DEF"},
		{"quotes", shownLine(".«FED CBA» HG"), "GH «ABC DEF»."},
		{"an address", shownLine("FED https://a.org/b :CBA"), "ABC: https://a.org/b DEF"},
		{"vowels", shownLine("FE\u05b8D\u05bc CBA"), "ABC D\u05bcE\u05b8F"},
		{"most words run from left to right", shownLine("one two FED 12 (CBA) three four"), "one two (ABC) 12 DEF three four"},
		{"none runs from right to left", shownLine("one (two) 12 - 3 %"), "one (two) 12 - 3 %"},
		{"lines of numbers and of Latin words", []pdf.Shown{{100, 100, "FED CBA"}, {100, 112, "12 34 -5"}, {100, 124, "one (two)"}, {100, 136, "IHG FED"}}, "ABC DEF\n12 34 -5\none (two)\nDEF GHI"},
		{
			"a table",
			shownRows([]float64{50, 200, 350}, []string{"IHG", "FED", "LKJ CBA"}, []string{"10", "12.50", "CBA"}, []string{"30", ")3,500.00(", "FED"}),
			"ABC JKL\tDEF\tGHI\nABC\t12.50\t10\nDEF\t(3,500.00)\t30",
		},
		{
			"columns",
			shownRows([]float64{50, 350}, []string{"NN MM LL KK", "DD CC BB AA"}, []string{"PP OO NN", "FF EE 12"}, []string{"RR QQ ab", "JJ II HH GG"}),
			"AA BB CC DD\n12 EE FF\nGG HH II JJ\n\nKK LL MM NN\nNN OO PP\nab QQ RR",
		},
	} {
		for name, letters := range alphabets {
			if _, only, ok := strings.Cut(test.name, ": "); ok && only != name {
				continue
			}
			for _, backwards := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/%v", test.name, name, backwards), func(t *testing.T) {
					var shown []pdf.Shown
					for _, s := range test.shown {
						s.Text = letters.of(s.Text)
						shown = append(shown, s)
					}
					got, _ := pdf.ReadShown(backwards, shown...)
					if diff := cmp.Diff(letters.of(test.want)+"\n", got); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
				})
			}
		}
	}
}

// TestBoxesOfDirections looks for words where they are shown.
func TestBoxesOfDirections(t *testing.T) {
	letters := alphabets["Hebrew"]
	const line = "12.50 IHG python 3FED (CBA)"
	shown := shownLine(letters.of(line))
	text, places := pdf.ReadShown(false, shown...)
	if want := letters.of("(ABC) DEFpython 3 GHI 12.50\n"); text != want {
		t.Fatalf("got %q, want %q", text, want)
	}
	for _, test := range []struct{ read, shown string }{
		{"(ABC)", "(CBA)"},
		{"DEF", "FED"},
		{"python", "python"},
		{"3", "3"},
		{"GHI", "IHG"},
		{"12.50", "12.50"},
		{"(ABC) DEF", "FED (CBA)"},
		{"GHI 12.50", "12.50 IHG"},
	} {
		read := letters.of(test.read)
		from := strings.Index(text, read)
		at := strings.Index(line, test.shown)
		want := []mapreduce.Box{{Page: 1, Left: 100 + 6*float64(at), Top: 100, Right: 100 + 6*float64(at+len(test.shown)), Bottom: 110}}
		got := places.Locate(from, from+len(read))
		if got == nil {
			t.Fatalf("%q is nowhere", read)
		}
		if diff := cmp.Diff(want, got.Boxes); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.read, diff)
		}
	}
}

// TestDirectionsKeepCharacters reads lines of any characters: none is lost, and each has
// its place.
func TestDirectionsKeepCharacters(t *testing.T) {
	characters := func(text string) string {
		all := []rune(strings.NewReplacer(" ", "", "\t", "", "\n", "", ")", "(", "]", "[").Replace(text))
		slices.Sort(all)
		return string(all)
	}
	rapid.Check(t, func(t *rapid.T) {
		letters := alphabets[rapid.SampledFrom([]string{"Hebrew", "Arabic"}).Draw(t, "alphabet")]
		var shown []pdf.Shown
		all := ""
		for i := range rapid.IntRange(1, 4).Draw(t, "lines") {
			text := letters.of("A" + rapid.StringOfN(rapid.RuneFrom([]rune("ABCDab12 .,/+%()[]\u05b8")), 0, 30, -1).Draw(t, "line"))
			shown = append(shown, pdf.Shown{Left: 100, Top: 100 + 12*float64(i), Text: text})
			all += text
		}
		got, places := pdf.ReadShown(rapid.Bool().Draw(t, "backwards"), shown...)
		if diff := cmp.Diff(characters(all), characters(got)); diff != "" {
			t.Errorf("characters (-shown +read):\n%s", diff)
		}
		if err := places.Check(len(got)); err != nil {
			t.Error(err)
		}
	})
}

// RightToLeft is a page, for PDFium, of a font whose capital letters are Hebrew ones.
func rightToLeft(lines ...line) sheet {
	return sheet{lines: lines, hebrew: true}
}

// TestRightToLeft reads files by PDFium: with lines as they look, or word by word.
func TestRightToLeft(t *testing.T) {
	const whole = "12.50 IHG (python 3) .FED CBA"
	for _, test := range []struct {
		name, catalogue string
		page            sheet
		want            string
	}{
		{"lines as they look", "", rightToLeft(line{100, 700, whole}, line{100, 688, "LKJ 12% -"}), "ABC DEF. (python 3) GHI 12.50\n- 12% JKL\n"},
		{"in a document from right to left", "/ViewerPreferences << /Direction /R2L >>", rightToLeft(line{100, 700, whole}, line{100, 688, "LKJ 12% -"}), "ABC DEF. (python 3) GHI 12.50\n- 12% JKL\n"},
		{"words as they are read", "", rightToLeft(line{210, 700, "CBA"}, line{186, 700, "FED"}, line{130, 700, "2024/01/02"}, line{106, 700, "IHG"}), "ABC DEF 2024/01/02 GHI\n"},
		{"a ligature", "", rightToLeft(line{100, 700, "FED C@BA"}), "ABلاC DEF\n"},
		{"in a text from left to right", "", rightToLeft(line{100, 700, "one FED CBA two three"}), "one ABC DEF two three\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := read(t, shared, makeFile(test.catalogue, test.page))
			if diff := cmp.Diff(alphabets["Hebrew"].of(test.want), d.Text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestOCRFromRightToLeft has a program recognise text, which it writes as it is read.
func TestOCRFromRightToLeft(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	letters := alphabets["Hebrew"]
	const head = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext\n"
	word := func(left int, text string) string {
		return fmt.Sprintf("5\t1\t1\t1\t1\t1\t%d\t500\t80\t40\t90\t%s\n", left, text)
	}
	for name, out := range map[string]string{
		"words with boxes": head + word(1000, "ABC") + word(900, "DEF,") + word(700, "machine") + word(800, "learning") + word(600, "GHI."),
		"plain text":       "ABC DEF, machine learning GHI.\n",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "out")
			if err := os.WriteFile(file, []byte(letters.of(out)), 0o600); err != nil {
				t.Fatal(err)
			}
			r := pdf.New(pdf.Config{OCR: recognise.NewCommand([]string{"cat", file})})
			defer func() {
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}()
			if got, want := read(t, r, makeFile("", sheet{})).Text, letters.of("ABC DEF, machine learning GHI.\n"); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

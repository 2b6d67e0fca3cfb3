package lookalike_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/internal/text/lookalike"
)

// What recognition makes of words, beside what stands on paper: most pairs are as Tesseract read
// photographs of receipts.
func TestFind(t *testing.T) {
	for _, c := range []struct{ text, quote, want string }{
		{"T0TAL 6O.30 RM", "TOTAL 60.30", "T0TAL 6O.30"},
		{"GARDENlA BAKERlES (KL) SDN BHD", "Gardenia Bakeries (KL) Sdn Bhd", "GARDENlA BAKERlES (KL) SDN BHD"},
		{"the rnodern furniture co", "the modern furniture", "the rnodern furniture"},
		{"Inv oice No 12345", "Invoice No 12345", "Inv oice No 12345"},
		{"InvoiceNo 12345", "Invoice No 12345", "InvoiceNo 12345"},
		{"Date: 25/l2/2018", "25/12/2018", "25/l2/2018"},
		{"Sum 1.234,5O EUR", "1,234.50", "1.234,5O"},
		{"Müller GmbH", "Muller GmbH", "Müller GmbH"},
		{"total 12.50", "total 12.60", ""},    // other digits
		{"total 1250", "total 12.50", ""},     // no point there
		{"total 12.50", "total 125.0", ""},    // it stands elsewhere
		{"total 12.505", "total 12.50", ""},   // a word is cut
		{"subtotal 12.50", "total 12.50", ""}, // a word is cut at its beginning
		{"is of GOODS sold", "90005", ""},     // a word is no number
		{"see 8111 there", "Bill", ""},        // nor is a number a word
		{"to 8111 Oslo", "Bill 0510", ""},     // one by one
		{"code ASBB", "A5B8", ""},             // whoever reads so many digits saw something else
		{"|12|345|", "12345", ""},             // two cells
		{"12\n345", "12345", ""},              // two lines
		{"Tel 0171\n2345", "0171 2345", "0171\n2345"},
		{"ab 12", "ab1", ""}, // short
		{"", "total 12.50", ""},
	} {
		got := ""
		if all := lookalike.New(c.text).Find(c.quote, 2); len(all) > 0 {
			got = c.text[all[0].Start:all[0].End]
		}
		if got != c.want {
			t.Errorf("%q in %q: %q, want %q", c.quote, c.text, got, c.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for s, want := range map[string]string{
		"6O.30": "60.30", "l2/12/2O18": "12/12/2018", "T0TAL 6O.3O": "T0TAL 60.30", "BOOK": "BOOK", "S5": "55", "RM12.5O": "RM12.5O", "": "", "No. 1Z": "No. 12",
	} {
		if got := lookalike.Numbers(s); got != want {
			t.Errorf("%q becomes %q, want %q", s, got, want)
		}
	}
}

// Whatever is found stands in the text between words, and has the digits of the quote where both have
// digits; what stands in the text as it is is found.
func TestFindKeepsToItsRules(t *testing.T) {
	letters := rapid.StringOf(rapid.SampledFrom([]rune("abo0O1lI5S8B.,  \nrnmß漢é")))
	rapid.Check(t, func(t *rapid.T) {
		text, quote := letters.Draw(t, "text"), letters.Draw(t, "quote")
		if rapid.Bool().Draw(t, "of the text") {
			words := strings.Fields(text)
			if len(words) > 0 {
				i := rapid.IntRange(0, len(words)-1).Draw(t, "from")
				quote = strings.Join(words[i:rapid.IntRange(i, len(words)-1).Draw(t, "to")+1], " ")
			}
		}
		inWord := func(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
		for _, p := range lookalike.New(text).Find(quote, 50) {
			if p.Start < 0 || p.End <= p.Start || p.End > len(text) || !utf8.ValidString(text[p.Start:p.End]) {
				t.Fatalf("%q is found at [%d, %d) of %q", quote, p.Start, p.End, text)
			}
			before, _ := utf8.DecodeLastRuneInString(text[:p.Start])
			first, _ := utf8.DecodeRuneInString(text[p.Start:])
			if inWord(before) && inWord(first) {
				t.Fatalf("%q is found within a word of %q, at %d", quote, text, p.Start)
			}
			if a, b := lookalike.Numbers(onlyNumbers(quote)), lookalike.Numbers(onlyNumbers(text[p.Start:p.End])); len(a) == len(b) && differ(a, b) {
				t.Fatalf("%q is found as %q", quote, text[p.Start:p.End])
			}
		}
	})
}

func onlyNumbers(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

// differ reports whether two texts of one length have different digits at one place.
func differ(a, b string) bool {
	for i := range len(a) {
		if a[i] != b[i] && a[i] >= '0' && a[i] <= '9' && b[i] >= '0' && b[i] <= '9' {
			return true
		}
	}
	return false
}

package ground_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/internal/text/ground"
)

// found writes a span as its text and grade.
func found(text string, s ground.Span) string {
	if !s.Found() {
		return ""
	}
	return string(s.Grade) + ": " + text[s.ByteStart:s.ByteEnd]
}

func TestFind(t *testing.T) {
	for _, test := range []struct {
		name  string
		text  string
		quote string
		want  string
	}{
		{"exact", "the Supplier shall deliver", "Supplier shall", "exact: Supplier shall"},
		{"case", "the Supplier shall deliver", "THE SUPPLIER SHALL", "normalised: the Supplier shall"},
		{"white space runs", "total  \t due:\n  60.30", "total due: 60.30", "normalised: total  \t due:\n  60.30"},
		{"no-break space", "1\u00a0000 EUR", "1 000 EUR", "normalised: 1\u00a0000 EUR"},
		{"spaces around the quote", "the Supplier", "\n Supplier ", "normalised: Supplier"},
		{"quotation marks", "he said “it’s ‹done›”.", `said "it's 'done'"`, "normalised: said “it’s ‹done›”"},
		{"dashes", "2019–2020 — all", "2019-2020 - all", "normalised: 2019–2020 — all"},
		{"soft hyphen", "exam\u00adple", "example", "normalised: exam\u00adple"},
		{"soft hyphen at a line's end", "an exam\u00ad\nple", "example", "normalised: exam\u00ad\nple"},
		{"hyphen at a line's end", "an exam-\n  ple of", "an example", "normalised: an exam-\n  ple"},
		{"hyphen of the word at a line's end", "a well-\nknown name", "well-known name", "normalised: well-\nknown name"},
		{"hyphen before a capital", "Anti-\nAmerican", "anti-american", "normalised: Anti-\nAmerican"},
		{"flattened line break", "an exam-\nple of", "an exam- ple", "normalised: an exam-\nple"},
		{"hyphens in a range", "pages 3-\n5", "pages 35", ""},
		{"ligature", "the ﬁnal oﬃce", "the final office", "normalised: the ﬁnal oﬃce"},
		{"part of a ligature", "ﬁnal", "inal", ""},
		{"full width", "ＡＢＣ　１２３", "abc 123", "normalised: ＡＢＣ　１２３"},
		{"composed", "Cafe\u0301", "Café", "normalised: Cafe\u0301"},
		{"decomposed", "Café", "Cafe\u0301", "normalised: Café"},
		{"base of a marked letter", "e\u0301", "e", "exact: e"},
		{"ellipsis", "and so on…", "and so on...", "normalised: and so on…"},
		{"zero width", "in\u200bvoice", "invoice", "normalised: in\u200bvoice"},
		{"absent", "the Supplier shall deliver", "The buyer was convicted of fraud", ""},
		{"a word put in", "the Supplier shall deliver", "the Supplier shall not deliver", "near: the Supplier shall deliver"},
		{"only its beginning", "the Supplier shall deliver", "the Supplier shall not be held to", ""},
		{"words in another order", "alpha beta", "beta alpha", ""},
		{"empty", "text", "", ""},
		{"only white space", "some text", " \n", ""},
		{"only what is ignored", "some text", "\u00ad", ""},
		{"longer than the text", "ab", "abc", ""},
		{"empty text", "", "a", ""},
		{"whole word first", "1999 and 9", "9", "exact: 9"},
		{"wide characters", "東京都港区", "京都", "exact: 京都"},
	} {
		t.Run(test.name, func(t *testing.T) {
			span, ok := ground.New(test.text).Find(test.quote, 0)
			if ok != span.Found() {
				t.Errorf("ok is %v for span %+v", ok, span)
			}
			if got := found(test.text, span); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestFindNear(t *testing.T) {
	const text = "RM9 9 x 99 9 Nine"
	for _, test := range []struct {
		name  string
		quote string
		near  int
		want  ground.Span
	}{
		{"at the place, though in a word", "9", 2, ground.Span{Start: 2, End: 3, ByteStart: 2, ByteEnd: 3, Places: 1, Grade: ground.Exact}},
		{"next whole word", "9", 3, ground.Span{Start: 4, End: 5, ByteStart: 4, ByteEnd: 5, Places: 2, Grade: ground.Exact}},
		{"whole word before part of one", "9", 5, ground.Span{Start: 11, End: 12, ByteStart: 11, ByteEnd: 12, Places: 2, Grade: ground.Exact}},
		{"from the front again", "9", 13, ground.Span{Start: 4, End: 5, ByteStart: 4, ByteEnd: 5, Places: 2, Grade: ground.Exact}},
		{"normalised", "nine", 5, ground.Span{Start: 13, End: 17, ByteStart: 13, ByteEnd: 17, Places: 1, Grade: ground.Normalised}},
		{"normalised, from the front again", "rm9", 5, ground.Span{Start: 0, End: 3, ByteStart: 0, ByteEnd: 3, Places: 1, Grade: ground.Normalised}},
		{"outside the text", "9", 999, ground.Span{Start: 4, End: 5, ByteStart: 4, ByteEnd: 5, Places: 2, Grade: ground.Exact}},
		{"before the text", "9", -5, ground.Span{Start: 4, End: 5, ByteStart: 4, ByteEnd: 5, Places: 2, Grade: ground.Exact}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, _ := ground.New(text).Find(test.quote, test.near)
			test.want.Coverage, test.want.Density = 1, 1
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("span (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFindAll(t *testing.T) {
	for _, test := range []struct {
		name   string
		text   string
		quotes []string
		want   []int // byte offsets of the places; -1 for not found
	}{
		{"none", "a b", nil, []int{}},
		{"repeated", "a b a b a", []string{"a", "a", "a"}, []int{0, 4, 8}},
		{"repeated too often", "a b a", []string{"a", "a", "a"}, []int{0, 4, 0}},
		{"in order", "a b a b", []string{"b", "a"}, []int{2, 4}},
		{"out of order", "alpha beta", []string{"beta", "alpha"}, []int{6, 0}},
		{"a late one does not push others away", "x one two x one two end", []string{"end", "one", "two"}, []int{20, 2, 6}},
		{"between others", "1 total 2 total 3", []string{"2", "total", "3"}, []int{8, 10, 16}},
		{"overlap", "INDAH GIFT & HOME", []string{"INDAH GIFT & HOME", "GIFT"}, []int{0, 6}},
		{"absent ones between", "a b c", []string{"a", "zebra", "c"}, []int{0, -1, 4}},
		{"normalised ones in the chain", "One two ONE", []string{"two", "oNE"}, []int{4, 8}},
		{"repeated, out of order", "b a a", []string{"a", "b", "a"}, []int{2, 0, 4}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := []int{}
			for _, s := range ground.New(test.text).FindAll(test.quotes) {
				at := s.ByteStart
				if !s.Found() {
					at = -1
				}
				got = append(got, at)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("places (-want +got):\n%s", diff)
			}
		})
	}
}

func TestShift(t *testing.T) {
	got, _ := ground.New("é a").Find("a", 0)
	want := ground.Span{Start: 12, End: 13, ByteStart: 103, ByteEnd: 104, Grade: ground.Exact, Coverage: 1, Density: 1, Places: 1}
	if diff := cmp.Diff(want, got.Shift(10, 100)); diff != "" {
		t.Errorf("span (-want +got):\n%s", diff)
	}
}

// texts are short texts rich in what normalising changes, and any others.
func texts() *rapid.Generator[string] {
	pieces := rapid.SampledFrom([]string{
		"a", "B", "word", "Word", "1", " ", "  ", "\n", "\t\r\n", "-", "-\n", "–", "\u00ad", "\u00ad\n", "'", "’", "“", `"`, "`",
		"é", "e\u0301", "\u0301", "ﬁ", "Å", "ß", "ẞ", "ſ", "K", "İ", "ı", "Σ", "ς", "…", "ｆ", "漢", "각", "\u1100", "\u1161", "\u11a8",
		"\u200b", "\u200d", "😀", "´", "½", "\x00", "\u00a0", "\u0345", "ᾳ",
	})
	joined := rapid.Map(rapid.SliceOfN(pieces, 0, 30), func(p []string) string { return strings.Join(p, "") })
	return rapid.OneOf(joined, joined, rapid.Map(rapid.String(), func(s string) string { return strings.ToValidUTF8(s, "?") }))
}

// substring draws a part of text, cut between characters.
func substring(t *rapid.T, text string) (start, end int) {
	var cuts []int
	for i := range text {
		cuts = append(cuts, i)
	}
	cuts = append(cuts, len(text))
	i := rapid.IntRange(0, len(cuts)-1).Draw(t, "i")
	j := rapid.IntRange(i, len(cuts)-1).Draw(t, "j")
	return cuts[i], cuts[j]
}

func TestSubstringsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := texts().Draw(t, "text")
		start, end := substring(t, text)
		quote := text[start:end]
		got, ok := ground.New(text).Find(quote, start)
		if strings.TrimSpace(quote) == "" {
			if ok {
				t.Fatalf("white space was found: %+v", got)
			}
			return
		}
		want := ground.Span{
			Start: utf8.RuneCountInString(text[:start]), End: utf8.RuneCountInString(text[:end]),
			ByteStart: start, ByteEnd: end, Grade: ground.Exact, Coverage: 1, Density: 1, Places: 1,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("span (-want +got):\n%s", diff)
		}
	})
}

// TestNeverInvents finds quotes that are other texts, and parts of the text in
// another guise: whatever is found stands there and is the same.
func TestNeverInvents(t *testing.T) {
	guises := map[string]func(string) string{
		"as is": func(s string) string { return s }, "upper": strings.ToUpper, "lower": strings.ToLower,
		"one line": func(s string) string { return strings.Join(strings.Fields(s), " ") },
		"dashes":   func(s string) string { return strings.ReplaceAll(s, "-", "—") },
	}
	rapid.Check(t, func(t *rapid.T) {
		text := texts().Draw(t, "text")
		start, end := substring(t, text)
		guise := rapid.SampledFrom([]string{"as is", "upper", "lower", "one line", "dashes"}).Draw(t, "guise")
		quotes := []string{guises[guise](text[start:end]), texts().Draw(t, "other")}
		g := ground.New(text)
		for i, s := range g.FindAll(quotes) {
			near := rapid.IntRange(0, len(text)).Draw(t, "near")
			nearby, _ := g.Find(quotes[i], near)
			one, ok := g.Find(quotes[i], -1)
			if ok != s.Found() || one.Grade != s.Grade || nearby.Found() != s.Found() {
				t.Fatalf("Find says %+v, near %d %+v, FindAll %+v", one, near, nearby, s)
			}
			for _, s := range []ground.Span{s, one, nearby} {
				checkSpan(t, text, quotes[i], s)
			}
		}
	})
}

// A fatal is what tests, properties and fuzz targets have in common.
type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkSpan checks that what stands at s is the quote, in the sense of its grade.
func checkSpan(t fatal, text, quote string, s ground.Span) {
	t.Helper()
	if !s.Found() {
		if s != (ground.Span{}) {
			t.Fatalf("not found, but %+v", s)
		}
		return
	}
	if s.ByteStart < 0 || s.ByteStart >= s.ByteEnd || s.ByteEnd > len(text) || s.Places < 1 || s.Outside {
		t.Fatalf("span %+v of %d bytes", s, len(text))
	}
	got := text[s.ByteStart:s.ByteEnd]
	if s.Start != utf8.RuneCountInString(text[:s.ByteStart]) || s.End-s.Start != utf8.RuneCountInString(got) {
		t.Fatalf("code points of %+v are wrong in %q", s, text)
	}
	switch s.Grade {
	case ground.Exact:
		if got != quote {
			t.Fatalf("exact is %q for %q", got, quote)
		}
	case ground.Normalised:
		if !ground.Same(got, quote) {
			t.Fatalf("normalised is %q for %q", got, quote)
		}
	case ground.Fuzzy:
		elided := strings.Contains(quote, "…") || strings.Contains(quote, "...")
		if s.Coverage < 0.75 || s.Coverage > 1 || s.Density > 1 || s.Density < 1.0/3 && !elided || s.Cut {
			t.Fatalf("fuzzy is %q for %q: %+v", got, quote, s)
		}
		if strings.Map(digits, got) != strings.Map(digits, quote) && !elided {
			t.Fatalf("fuzzy is %q for %q: other numbers", got, quote)
		}
	case ground.Near:
		if s.Verified() || s.Coverage < 0.75 || s.Coverage > 1 || s.Density > 1 || s.Density < 0.5 || s.Cut {
			t.Fatalf("near is %q for %q: %+v", got, quote, s)
		}
		return
	default:
		t.Fatalf("grade is %q", s.Grade)
	}
	if s.Grade != ground.Fuzzy && (s.Coverage != 1 || s.Density != 1) {
		t.Fatalf("%s has coverage and density of %+v", s.Grade, s)
	}
}

// digits keeps the ASCII digits.
func digits(r rune) rune {
	if '0' <= r && r <= '9' {
		return r
	}
	return -1
}

// TestSubstringsAreFound finds any part of any text byte for byte, though
// nobody says where it is.
func TestSubstringsAreFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := texts().Draw(t, "text")
		start, end := substring(t, text)
		quote := text[start:end]
		if strings.TrimSpace(quote) == "" {
			return
		}
		got, ok := ground.New(text).Find(quote, -1)
		if !ok {
			t.Fatalf("%q is not found in %q", quote, text)
		}
		checkSpan(t, text, quote, got)
		if got.Grade != ground.Exact && got.Cut {
			t.Fatalf("%q is in %q, but was found as %+v", quote, text, got)
		}
	})
}

// TestOffsetsGoBack hides words that stand nowhere else within any text, and
// finds them in the very place.
func TestOffsetsGoBack(t *testing.T) {
	disguises := []func(string) string{
		strings.ToUpper,
		strings.NewReplacer(" ", "\u00a0\n", "-", "—").Replace,
		strings.NewReplacer("e", "\u00ade", "a", "ａ", "o", "ｏ", "fi", "ﬁ").Replace,
		strings.NewReplacer("i", "\u200bi", "x", "Ｘ", "'", "’").Replace,
		strings.NewReplacer("or", "o-\nr", "en", "e-\r\n  n").Replace,
	}
	rapid.Check(t, func(t *rapid.T) {
		quote := "x" + rapid.StringMatching(`[a-z]{2,9}( [a-z]{3,9}){2,6}`).Draw(t, "quote") + "z'k"
		before, behind := texts().Draw(t, "before")+". ", " "+texts().Draw(t, "behind")
		hidden := rapid.SampledFrom(disguises).Draw(t, "disguise")(quote)
		text := before + hidden + behind
		got, ok := ground.New(text).Find(quote, -1)
		if !ok || got.ByteStart != len(before) || got.ByteEnd != len(before)+len(hidden) || got.Grade == ground.Fuzzy {
			t.Fatalf("%q as %q, at %d of %q: %+v", quote, hidden, len(before), text, got)
		}
		checkSpan(t, text, quote, got)
	})
}

// TestAllInOrder quotes all words of a text and expects each where it stands.
func TestAllInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "bird", "Köln", "5", "漢", "the"}), 1, 60).Draw(t, "words")
		text := strings.Join(words, " ")
		at := 0
		for i, s := range ground.New(text).FindAll(words) {
			if s.ByteStart != at || s.Grade != ground.Exact {
				t.Fatalf("word %d of %q is at %d, was found as %+v", i, text, at, s)
			}
			at += len(words[i]) + 1
		}
	})
}

// FuzzFind finds any quote in any text, all at once and one by one.
func FuzzFind(f *testing.F) {
	f.Add("the Supplier shall not deliver 1,500 goods", "The supplier shall deliver 1,500 goods", 3)
	f.Add("exam-\nple of a “quote” … and so on", "example ... so on", -1)
	f.Add("每份合同一式两份 ＡＢＣ ﬁn 10² −5%", "合同 一式", 0)
	f.Add("a a a a a a", "a of a a a", 2)
	f.Add("\xff\u0301x\u00ad\n-", "\xff", 1)
	f.Fuzz(func(t *testing.T, text, quote string, near int) {
		g := ground.New(text)
		one, ok := g.Find(quote, near)
		if ok != one.Found() {
			t.Fatalf("ok is %v for %+v", ok, one)
		}
		all := g.FindAll([]string{quote, quote, text})
		if !utf8.ValidString(text) || !utf8.ValidString(quote) {
			return
		}
		for i, s := range append(all, one) {
			checkSpan(t, text, []string{quote, quote, text, quote}[i], s)
		}
	})
}

// TestNormalisedIsFound hides the differences that the grade is for and
// expects the quote to be found all the same.
func TestNormalisedIsFound(t *testing.T) {
	disguise := strings.NewReplacer("-", "–", "'", "’", `"`, "“", " ", "\n\t", "fi", "ﬁ", "e", "E")
	rapid.Check(t, func(t *rapid.T) {
		quote := rapid.StringMatching(`[a-z]{2,9}( ['"]?[a-z0-9]{1,9}){1,8}`).Draw(t, "quote")
		text := "before it. " + disguise.Replace(quote) + " Behind it."
		got, ok := ground.New(text).Find(quote, 0)
		if !ok || text[got.ByteStart:got.ByteEnd] != disguise.Replace(quote) && !ground.Same(text[got.ByteStart:got.ByteEnd], quote) {
			t.Fatalf("%q in %q: %+v", quote, text, got)
		}
	})
}

func TestPoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := texts().Draw(t, "text")
		text := strings.Repeat(unit, 5000/(len(unit)+1))
		g := ground.New(text)
		start, _ := substring(t, text)
		for _, p := range []int{0, start, len(text)} {
			if got, want := g.Point(p), utf8.RuneCountInString(text[:p]); got != want {
				t.Fatalf("Point(%d) = %d, want %d", p, got, want)
			}
		}
	})
}

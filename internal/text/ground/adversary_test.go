package ground_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/text/ground"
)

// TestNotVerified holds quotes of texts that hide what turns them round, and
// quotes that hide that they are others.
func TestNotVerified(t *testing.T) {
	for _, test := range []struct{ name, text, quote string }{
		// What is not seen parts no word and no number.
		{"zero width space in a word", "It was un\u200bable to pay the fine.", "able to pay the fine"},
		{"word joiner in a word", "It was un\u2060able to pay the fine.", "able to pay the fine"},
		{"direction mark in a word", "It was un\u202aable to pay the fine.", "able to pay the fine"},
		{"many in a word", "It was un" + strings.Repeat("\u200b", 5000) + "able to pay the fine.", "able to pay the fine"},
		{"joiner behind the quote", "He can\u200dnot pay the fine.", "He can"},
		{"zero width space in a number", "It paid 1\u200b5 million dollars", "5 million dollars"},
		{"soft hyphen in a number", "It paid 1\u00ad5 million dollars", "5 million dollars"},
		{"word joiner behind a sign", "It was -\u20605 degrees", "5 degrees"},
		{"soft hyphen in a negation, under an ellipsis", "The firm was certainly n\u00adot convicted of fraud.", "The firm was ... convicted of fraud"},
		{"soft hyphen in a negation, left out", "The firm was n\u00adot convicted of the fraud in June", "The firm was convicted of fraud in June"},
		// Signs, hyphens and apostrophes have many shapes.
		{"en dash as a minus", "It was –5 degrees", "5 degrees"},
		{"wide minus", "It was －5 degrees", "5 degrees"},
		{"unbreakable hyphen as a minus", "It was \u20115 degrees", "5 degrees"},
		{"minus at the front", "−5 degrees", "5 degrees"},
		{"another hyphen at a line's end", "it was un\u2010\nable to pay", "able to pay"},
		{"hyphen and line separator", "it was un-\u2028able to pay", "able to pay"},
		{"unbreakable hyphen behind non", "a record of non\u2011compliance with the rules", "compliance with the rules"},
		{"un- before a capital", "an un-American act of theirs", "American act of theirs"},
		{"grave accent", "They said that he can`t pay", "They said that he can"},
		{"acute accent", "They said that he can´t pay", "They said that he can"},
		{"prime", "They said that he can′t pay", "They said that he can"},
		{"letter apostrophe", "They said that he canʼt pay", "They said that he can"},
		// Numbers are parted in many ways.
		{"no-break space", "It paid 1\u00a0500 dollars", "500 dollars"},
		{"narrow no-break space", "It paid 1\u202f500 dollars", "500 dollars"},
		{"apostrophe", "It paid 1'500 francs", "500 francs"},
		{"curly apostrophe", "It paid 1’500 francs", "500 francs"},
		{"raised point", "It was 1·5 mg", "5 mg"},
		{"Arabic", "٣٬٥٠٠ دينار", "٥٠٠ دينار"},
		{"fraction slash", "It was 1⁄2 cups", "2 cups"},
		{"point behind a currency", "It was $.50 each", "50 each"},
		{"point at the front", ".5 million dollars", "5 million dollars"},
		{"power of ten", "It was 1.5e6 dollars", "It was 1.5"},
		{"negative power", "about 10⁻² of it", "about 10-2 of it"},
		{"lowered", "about 10₂ of it", "about 10² of it"},
		{"point left out", "It had a rate of .5 percent in June", "It had the rate of 5 percent in June"},
		{"range of two numbers", "It took 3 - 5 days to finish", "It took 3 5 days to finish"},
		{"another grouping", "It paid 1,000 dollars to us", "It paid 10,00 dollars to us"},
		{"letter for a digit", "It paid 100 dollars to us", "It paid 1O0 dollars to us"},
		{"parted at a line's end", "It paid 1,\n000 dollars", "It paid 1,000 dollars"},
		{"two numbers made one", "It paid 1\n000 dollars", "It paid 1000 dollars"},
		{"another measure", "It took 5 mg of it daily", "It took 5 g of it daily"},
		// Letters that look alike are others.
		{"Cyrillic letters", "the Supplier shall deliver goods", "the Suррlier shall deliver goods"},
		{"struck out", "It was n\u0336o\u0336t\u0336 paid", "It was not paid"},
		// Words.
		{"a few", "In June a few people came to Rome", "In June few people came to Rome"},
		{"few", "In June few people came to Rome", "In June a few people came to Rome"},
		{"a little", "There was a little hope in June", "There was little hope in June"},
		{"unable", "It was unable to pay the fine in June", "It was to pay the fine in June"},
		{"illegal", "The illegal sale was stopped in June", "The sale was stopped in June"},
		{"German", "Die Firma hat nicht gezahlt im Juni dieses Jahres", "Die Firma hat gezahlt im Juni dieses Jahres"},
		{"French", "La société a jamais payé cette amende en juin", "La société a payé cette amende en juin"},
		{"Malay", "Syarikat itu tidak membayar denda pada bulan Jun", "Syarikat itu membayar denda pada bulan Jun"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := ground.New(test.text)
			one, _ := g.Find(test.quote, -1)
			for _, s := range append(g.FindAll([]string{test.quote}), one) {
				if s.Verified() {
					t.Errorf("%q was verified as %q", test.quote, found(test.text, s))
				}
			}
		})
	}
}

// TestSeenThrough finds quotes without what is not seen in the text.
func TestSeenThrough(t *testing.T) {
	for _, test := range []struct{ name, text, quote, want string }{
		{"embedding", "sum \u202b100\u202c due", "sum 100 due", "sum \u202b100\u202c due"},
		{"isolate", "sum \u2067שלום\u2069 due", "sum שלום due", "sum \u2067שלום\u2069 due"},
		{"override", "sum \u202e100\u202c due", "sum 100 due", "sum \u202e100\u202c due"},
		{"variant", "I ❤\ufe0f you", "I ❤ you", "I ❤\ufe0f you"},
		{"no variant", "I ❤ you", "I ❤\ufe0f you", "I ❤ you"},
		{"family", "a 👨\u200d👩\u200d👧 here", "a 👨👩👧 here", "a 👨\u200d👩\u200d👧 here"},
		{"byte order mark within", "one\ufefftwo", "onetwo", "one\ufefftwo"},
		{"raised and lowered, the same", "about 10⁻² of H₂O", "ABOUT 10⁻² OF H₂O", "about 10⁻² of H₂O"},
		{"line ends", "one\r\ntwo\rthree", "one\ntwo\nthree", "one\r\ntwo\rthree"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, _ := ground.New(test.text).Find(test.quote, -1)
			if got := found(test.text, s); got != "normalised: "+test.want || !s.Verified() {
				t.Errorf("got %q (cut %v), want %q", got, s.Cut, test.want)
			}
		})
	}
}

// TestWholeText finds a text in itself, however long.
func TestWholeText(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	text := strings.Repeat("The firm paid 1,500 dollars … 漢字 👨\u200d👩\u200d👧 e\u0301.\r\n", 2000)
	g := ground.New(text)
	for _, test := range []struct {
		name, quote string
		want        ground.Grade
	}{
		{"as it is", text, ground.Exact},
		{"in capitals", strings.ToUpper(text), ground.Normalised},
		{"one word more", text + "more", ground.Near},
		{"one word before it", "more " + text, ground.Near},
		{"twice", text + text, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, _ := g.Find(test.quote, -1)
			if s.Grade != test.want {
				t.Fatalf("%q, want %q", s.Grade, test.want)
			}
			checkSpan(t, text, test.quote, s)
		})
	}
}

// TestChunkEnds tells what a chunk cannot show to be whole from what it can, and
// looks for that in the document.
func TestChunkEnds(t *testing.T) {
	for _, test := range []struct {
		name, before, chunk, behind, quote string
		want                               bool // in the document
	}{
		{"half a number", "It paid 1", "5 million dollars then.", "", "5 million dollars", false},
		{"half a word", "It was un", "able to pay then.", "", "able to pay", false},
		{"half of a parted word", "It was un-", "\nable to pay then.", "", "able to pay", false},
		{"behind a parted word", "It was un-\n", "able to pay then.", "", "able to pay", false},
		{"number goes on", "", "It paid 15", "0 dollars then.", "It paid 15", false},
		{"word goes on", "", "He said he can", "not pay.", "he can", false},
		{"word goes on in another line", "", "It was an exam-\n", "ple of it", "was an exam", false},
		{"word goes on behind its hyphen, in another line", "", "It was an exam-", "\nple of it", "was an exam", false},
		{"hyphen at the end, not of a line", "", "It was a counter-", "move of it", "a counter", true},
		{"decimals go on", "", "It paid 1.", "5 dollars then.", "It paid 1", false},
		{"decimals with their point", "", "It paid 1.", "5 dollars then.", "It paid 1.", false},
		{"end of a sentence", "", "It paid 1.", " It was so.", "It paid 1.", true},
		{"power of ten goes on", "", "It paid 1.5e", "6 dollars then.", "It paid 1.5", false},
		{"point of the number before", "It paid 1", ".5 million dollars then.", "", "5 million dollars", false},
		{"half of non-", "a record of n", "on-compliance with it", "", "compliance with it", false},
		{"half of un-, behind it what is not seen", "It was u", "n-\u200bable to pay then.", "", "able to pay", false},
		{"thousands go on", "", "It paid 5\u00a0", "000 dollars then.", "It paid 5", false},
		{"thousands go on behind their first digit", "", "It paid 5\u00a00", "00 dollars then.", "It paid 5", false},
		{"mark behind what is not seen", "", "字は漢\u200b", "\u0301字です。", "字は漢", false},
		{"line end before the chunk", "It was un-", "\n able to pay then.", "", "able to pay", false},
		{"whole behind a space", "It paid ", "5 million dollars then.", "", "5 million dollars", true},
		{"whole before a space", "", "He said he can", " pay.", "he can", true},
		{"within", "It paid 1", "5 or 5 million dollars then.", "0", "5 million dollars", true},
		{"no word at the end", "漢", "字は漢字です。", "漢", "字は漢字です。", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			document := test.before + test.chunk + test.behind
			u := ground.Unit{
				Chunk:  ground.NewChunk(test.chunk, test.before != "", test.behind != ""),
				Points: len([]rune(test.before)), Bytes: len(test.before), Document: ground.New(document),
			}
			one, _ := u.Find(test.quote, -1)
			for _, s := range append(u.FindAll([]string{test.quote}), one) {
				if s.Verified() != test.want || s.Outside || document[s.ByteStart:s.ByteEnd] != test.quote {
					t.Errorf("%+v, %q: verified must be %v", s, document[s.ByteStart:s.ByteEnd], test.want)
				}
			}
		})
	}
}

// TestChunksAgreeWithTheirDocument: what a chunk shows to be whole is whole in
// its document, wherever the chunk was cut.
func TestChunksAgreeWithTheirDocument(t *testing.T) {
	pieces := rapid.SampledFrom([]string{
		"able", "un", "non", "5", "15", "000", "is", "n", "t", " ", " ", "\n", "-", "-\n", "–", "−", ".", ",", "'", "’", "\u00a0", "\u00ad",
		"\u200b", "é", "\u0301", "漢", "$", "e",
	})
	rapid.Check(t, func(t *rapid.T) {
		document := strings.Join(rapid.SliceOfN(pieces, 1, 25).Draw(t, "pieces"), "")
		from, to := substring(t, document)
		chunk := document[from:to]
		start, end := substring(t, chunk)
		quote := chunk[start:end]
		g := ground.NewChunk(chunk, from > 0, to < len(document))
		s, ok := g.Find(quote, -1)
		if !ok || s.Cut || s.Grade != ground.Exact {
			return
		}
		for _, all := range ground.New(document).FindAll([]string{quote}) {
			if !all.Verified() {
				t.Fatalf("%q of chunk %q, of %q: verified there, not here: %+v", quote, chunk, document, all)
			}
		}
	})
}

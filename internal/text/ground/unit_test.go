package ground_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/internal/text/ground"
)

// unit returns the chunk of a document that begins and ends at byte offsets.
func unit(document string, start, end int) ground.Unit {
	return ground.Unit{
		Chunk:  ground.New(document[start:end]),
		Points: utf8.RuneCountInString(document[:start]), Bytes: start,
		Document: ground.New(document),
	}
}

// quoted returns what stands at s according to its unit.
func quoted(u ground.Unit, s ground.Span) string {
	if !s.Found() {
		return ""
	}
	text, start, end := u.Source(s)
	return text[start:end]
}

func TestUnit(t *testing.T) {
	const document = "Köln paid Acme 5 dollars. | Acme paid Bonn. An unable man. | Able men paid the big fine. Acme"
	first := strings.Index(document, "|")
	start, end := first+2, strings.LastIndex(document, "|")
	for _, test := range []struct {
		name, quote string
		want        string
		at          int
		outside     bool
	}{
		{"in the chunk", "Acme", "exact: Acme", start, false},
		{"in the chunk, normalised", "acme PAID bonn", "normalised: Acme paid Bonn", start, false},
		{"in the chunk, fuzzy", "Acme paid the Bonn", "fuzzy: Acme paid Bonn", start, false},
		{"before the chunk", "Köln paid", "exact: Köln paid", 0, true},
		{"behind the chunk", "Able men", "exact: Able men", end + 2, true},
		{"behind the chunk, fuzzy", "men paid a big fine", "fuzzy: men paid the big fine", end + 7, true},
		{"across its end", "man. | Able", "exact: man. | Able", end - 5, true},
		{"cut in the chunk, whole outside", "able", "normalised: Able", end + 2, true},
		{"cut in the chunk alone", "nable man", "exact: nable man", end - 11, false},
		{"nowhere", "Berlin paid", "", 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			u := unit(document, start, end)
			one, ok := u.Find(test.quote, -1)
			if ok != one.Found() {
				t.Errorf("ok is %v for %+v", ok, one)
			}
			for _, s := range append(u.FindAll([]string{test.quote}), one) {
				if got := found(document, s); got != test.want || s.ByteStart != test.at || s.Outside != test.outside {
					t.Errorf("got %q at %d, outside %v; want %q at %d, %v", got, s.ByteStart, s.Outside, test.want, test.at, test.outside)
				}
				if quote := quoted(u, s); quote != document[s.ByteStart:s.ByteEnd] {
					t.Errorf("source has %q", quote)
				}
			}
		})
	}
}

func TestUnitWithoutDocument(t *testing.T) {
	u := ground.Unit{Chunk: ground.New("Acme paid Bonn"), Points: 8, Bytes: 10}
	if s, _ := u.Find("Bonn", -1); s.Start != 18 || s.ByteStart != 20 || quoted(u, s) != "Bonn" {
		t.Errorf("found %+v", s)
	}
	if s, ok := u.Find("Köln", -1); ok || s.Found() {
		t.Errorf("found %+v", s)
	}
	if s, _ := u.Find("me paid", 2); !s.Verified() || s.ByteStart != 12 {
		t.Errorf("at a place that was named: %+v", s)
	}
}

// TestUnitsAgree finds what a chunk has at the same place in the document.
func TestUnitsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		document := texts().Draw(t, "document")
		start, end := substring(t, document)
		u := unit(document, start, end)
		quote := texts().Draw(t, "quote")
		if rapid.Bool().Draw(t, "part") {
			i, j := substring(t, document)
			quote = document[i:j]
		}
		s, _ := u.Find(quote, -1)
		if !s.Found() {
			return
		}
		if got := quoted(u, s); got != document[s.ByteStart:s.ByteEnd] {
			t.Fatalf("quote %q, but %q stands there", got, document[s.ByteStart:s.ByteEnd])
		}
		if inside := start <= s.ByteStart && s.ByteEnd <= end; inside == s.Outside {
			t.Fatalf("%+v is in [%d, %d): %v", s, start, end, inside)
		}
		s.Outside = false
		checkSpan(t, document, quote, s)
	})
}

// TestNearInUnit prefers what is verified in the document to what is near in the
// chunk, and what is near in the chunk to the same elsewhere.
func TestNearInUnit(t *testing.T) {
	const document = "They did not pay the fine. | They did pay the fine. | We did not sell any of it here."
	at := strings.Index(document, "|")
	u := unit(document, 0, at)
	for _, test := range []struct {
		name, quote, want string
		at                int
		outside           bool
	}{
		{"verified elsewhere", "They did pay the fine", "exact: They did pay the fine", at + 2, true},
		{"near to both", "They did gladly pay the fine", "near: They did not pay the fine", 0, false},
		{"near elsewhere", "We did sell any of it here", "near: We did not sell any of it here", strings.Index(document, "We"), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			one, _ := u.Find(test.quote, -1)
			for _, s := range append(u.FindAll([]string{test.quote}), one) {
				if got := found(document, s); got != test.want || s.ByteStart != test.at || s.Outside != test.outside || quoted(u, s) != got[strings.Index(got, " ")+1:] {
					t.Errorf("got %q at %d, outside %v; want %q at %d, %v", got, s.ByteStart, s.Outside, test.want, test.at, test.outside)
				}
			}
		})
	}
}

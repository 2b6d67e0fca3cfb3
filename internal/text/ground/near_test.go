package ground_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/internal/text/ground"
)

// TestNear finds where a quote must come from that the text does not have.
func TestNear(t *testing.T) {
	for _, test := range []struct{ name, text, quote, want string }{
		{"negation left out", "Then the firm did not pay the fine.", "the firm did pay the fine", "near: the firm did not pay the fine"},
		{"negation put in", "Then the firm did pay the fine.", "the firm did not pay the fine", "near: the firm did pay the fine"},
		{"date left out", "They met in Rome on 12/10/2014 for a day.", "They met in Rome on for a day", "near: They met in Rome on 12/10/2014 for a day"},
		{"another number", "The firm paid 1,500 dollars in June.", "firm paid 1,600 dollars in June", "near: firm paid 1,500 dollars in June"},
		{"another first word", "Alice paid the fine in June.", "Bob paid the fine in June", "near: paid the fine in June"},
		{"another last word", "They paid the fine in June.", "They paid the fine in May", "near: They paid the fine in"},
		{"two other words", "big old green birds often quickly eat ripe red fruit", "big old blue birds often quickly eat ripe cheap fruit", "near: big old green birds often quickly eat ripe red fruit"},
		{"three other words", "big old green birds often quickly eat ripe red fruit", "big old blue birds seldom quickly eat ripe cheap fruit", ""},
		{"two of six other words", "big old green birds eat fruit", "big old blue cats eat fruit", ""},
		{"the nearer place", "The firm then paid no fine. The firm paid no fine.", "The firm paid fine", "near: The firm paid no fine"},
		{"a word is worse than words left out", "They met in Rome. They met one late day in Paris then.", "They met in Paris then", "near: They met one late day in Paris then"},
		{"words far apart", "They met one rather fine and late but long day in Paris then.", "They met in Paris then", ""},
		{"half of it", "one two three four five six seven eight", "one four five eight", "near: one two three four five six seven eight"},
		{"less than half", "one two three four five six seven eight nine", "one four five nine", ""},
		{"too short", "He met Bob here.", "He met Al", ""},
		{"cut is better", "He was unable to pay. She was able and willing to pay", "able to pay", "exact: able to pay"},
		{"parted at a line's end", "The firm did not de-\nliver goods.", "the firm did deliver goods", "near: The firm did not de-\nliver goods"},
		{"plural", "The firms did not pay these fines.", "The firm did pay these fines", "near: The firms did not pay these fines"},
		{"characters", "公司不必在三十天之内提交报告", "公司必在三十天之内提交报告", "near: 公司不必在三十天之内提交报告"},
		{"only absent words", "the firm paid the fine", "quick brown foxes jump over dogs", ""},
		{"in another order", "the firm paid the fine in June", "June in fine the paid firm the", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := ground.New(test.text)
			s, ok := g.Find(test.quote, -1)
			if got := found(test.text, s); got != test.want || ok != s.Found() || s.Verified() {
				t.Errorf("got %q (verified %v), want %q", got, s.Verified(), test.want)
			}
			if all := g.FindAll([]string{test.quote})[0]; all != s {
				t.Errorf("FindAll says %+v, Find %+v", all, s)
			}
			off, err := ground.Config{Off: true}.New(test.text)
			if err != nil {
				t.Fatal(err)
			}
			if s, _ := off.Find(test.quote, -1); s.Grade == ground.Near {
				t.Errorf("found %+v word by word", s)
			}
		})
	}
}

// TestNearPushesNoneAway: what is only near takes no place from a quote that is
// in the text, nor moves those behind it.
func TestNearPushesNoneAway(t *testing.T) {
	const text = "the firm did pay the fine in June. Others paid. In May the firm did pay the fine in Rome."
	quotes := []string{"the firm did pay", "In May the firm did not pay the fine", "the firm did pay", "Others paid"}
	got := ground.New(text).FindAll(quotes)
	for i, want := range []int{0, strings.Index(text, "In May"), strings.LastIndex(text, "the firm did"), strings.Index(text, "Others")} {
		if got[i].ByteStart != want || got[i].Verified() != (i != 1) {
			t.Errorf("%q is at %d, want %d: %+v", quotes[i], got[i].ByteStart, want, got[i])
		}
	}
}

// TestNearIsFound takes a quote out of any text of words, leaves out one or two,
// or puts others in their place, and finds what was between the ends.
func TestNearIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[b-z]{4,8}`), 30, 60).Draw(t, "words")
		from := rapid.IntRange(0, len(words)-20).Draw(t, "from")
		n := rapid.IntRange(8, 20).Draw(t, "words of the quote")
		mark := func(i int) string { return "w" + string(rune('a'+i/26)) + string(rune('a'+i%26)) + "a" } // in no other word
		words[from], words[from+n-1] = mark(0), mark(1)
		quote := append([]string{}, words[from:from+n]...)
		for range rapid.IntRange(1, 2).Draw(t, "changes") {
			i := rapid.IntRange(1, len(quote)-2).Draw(t, "at")
			if rapid.Bool().Draw(t, "leave out") {
				quote = append(quote[:i:i], quote[i+1:]...)
			} else {
				quote[i] = "another"
			}
		}
		text := strings.Join(words, " ")
		s, _ := ground.New(text).Find(strings.Join(quote, " "), -1)
		if want := strings.Join(words[from:from+n], " "); !s.Found() || text[s.ByteStart:s.ByteEnd] != want {
			t.Fatalf("%q in %q: found %+v", quote, text, s)
		}
		checkSpan(t, text, strings.Join(quote, " "), s)
	})
}

package dashboard

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// Templates and the catalogue agree: there are words for each name, and no words without one.
func TestWords(t *testing.T) {
	all, err := readWords()
	if err != nil {
		t.Fatal(err)
	}
	used := make(map[string]bool)
	quoted := regexp.MustCompile(`"([a-z_]+[.a-z_-]*)"`)
	built := regexp.MustCompile(`\(print "([a-z]+\.)"`)
	var prefixes []string
	files, _ := filepath.Glob("templates/*.tmpl")
	parts, _ := filepath.Glob("templates/parts/*.tmpl")
	for _, file := range append(append(files, parts...), "job.go") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range quoted.FindAllStringSubmatch(string(text), -1) {
			used[m[1]] = true
		}
		for _, m := range built.FindAllStringSubmatch(string(text), -1) {
			prefixes = append(prefixes, m[1])
		}
	}
	for name := range all {
		known := used[name]
		for _, p := range prefixes {
			known = known || strings.HasPrefix(name, p)
		}
		if !known {
			t.Errorf("nothing says %s", name)
		}
	}
	for s := mapreduce.JobUnknown; s <= mapreduce.JobPaused; s++ {
		if _, err := all.say("state." + s.String()); err != nil {
			t.Error(err)
		}
	}
	for s := mapreduce.UnitUnknown; s <= mapreduce.UnitCancelled; s++ {
		if _, err := all.say("unit." + s.String()); err != nil {
			t.Error(err)
		}
	}
	for k := mapreduce.EventUnknown; k <= mapreduce.EventMarked; k++ {
		if _, err := all.say("event." + k.String()); err != nil {
			t.Error(err)
		}
	}
}

func TestNumbersForPeople(t *testing.T) {
	for got, want := range map[string]string{
		count(int64(-1234567)): "−1\u202f234\u202f567", count(999): "999", money(0): "$0.00", money(1): "$0.000001", money(99_999): "$0.099999",
		money(100_000): "$0.10", money(-2_500_000): "−$2.50", money(1_234_567_890): "$1\u202f234.57", percent(999, 1000): "99.9 %", percent(1, 0): "–",
		percent(9999, 10000): "99.9 %", duration(350 * time.Millisecond): "350 ms", duration(9999 * time.Millisecond): "9.9 s",
		duration(61 * time.Second): "1 min 01 s", duration(25 * time.Hour): "1 d 01 h", duration(-1): "–",
		rate(30, 10*time.Second): "3.0/s", rate(5, 100*time.Second): "3/min", rate(2000, 10*time.Second): "200/s",
		visible("a\x00b\u202ec"): "a\u2400b\ufffdc",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The pieces of a text are the text, and the piece that was asked for is the passage.
func TestMark(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := []rune(rapid.StringOfN(rapid.RuneFrom([]rune("abcä語\n")), 0, 60, -1).Draw(t, "text"))
		at := func(name string) passage {
			from := rapid.IntRange(0, 70).Draw(t, name)
			return passage{from, from + rapid.IntRange(0, 20).Draw(t, name+" length")}
		}
		here, others := at("here"), []passage{at("one"), at("two")}
		pieces, cut := mark(text, here, others)
		var all, marked strings.Builder
		for _, p := range pieces {
			all.WriteString(p.Text)
			if p.Here {
				marked.WriteString(p.Text)
			}
		}
		if cut || all.String() != string(text) {
			t.Fatalf("%q became %q", string(text), all.String())
		}
		if want := string(text[min(here.start, len(text)):min(here.end, len(text))]); marked.String() != want {
			t.Fatalf("%q is marked, want %q", marked.String(), want)
		}
	})
}

// Of a long text the part around the passage is shown.
func TestMarkOfLongTexts(t *testing.T) {
	text := []rune(strings.Repeat("x", 3*maxText) + "quote")
	pieces, cut := mark(text, passage{3 * maxText, 3*maxText + 5}, nil)
	if !cut || pieces[len(pieces)-1].Text != "quote" || !pieces[len(pieces)-1].Here {
		t.Errorf("the passage is not shown: %d pieces, cut %v", len(pieces), cut)
	}
}

// Records are sorted by value: numbers before texts, what is missing last, in both directions.
func TestRecordsInOrder(t *testing.T) {
	values := []string{`10`, `"b"`, `null`, `9`, `"A"`, `-1`}
	for direction, want := range map[bool]string{false: "-1 9 10 A b ", true: "b A 10 9 -1 "} {
		s := &recordScan{filter: recordFilter{Sort: "v", Descending: direction}, counts: map[string]int{}, places: map[string]string{}}
		for _, v := range values {
			if err := s.take(&mapreduce.ResultPart{Record: []byte(`{"v": ` + v + `}`)}); err != nil {
				t.Fatal(err)
			}
		}
		list := s.list(&visit{})
		var got []string
		for _, r := range list.Rows {
			got = append(got, r.Cells[0].Text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("descending %v: %q, want %q", direction, strings.Join(got, " "), want)
		}
	}
}

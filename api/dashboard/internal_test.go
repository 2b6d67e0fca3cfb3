package dashboard

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

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
	for _, file := range append(append(files, parts...), "jobs/job.go") {
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

// What is read in a fifth of a second is shown within a second of a change, even of one right after the reading began;
// no reading that takes a little longer waits much longer for the next; and what is slow takes a tenth of the time.
func TestReadingsAreSpaced(t *testing.T) {
	const step = time.Millisecond
	for took := time.Duration(0); took < 10*time.Second; took += step {
		next := spaced(took)
		if took <= 200*time.Millisecond && next+took > time.Second {
			t.Errorf("a change is shown after %s, if readings take %s", next+took, took)
		}
		if next < 3*took || took >= 3*time.Second && next < 10*took {
			t.Errorf("readings that take %s follow each other after %s", took, next)
		}
		if after := spaced(took + step); after-next > 11*step {
			t.Errorf("readings that take %s and %s follow each other after %s and %s", took, took+step, next, after)
		}
	}
}

// A page that is behind its job wakes as soon as it may read again, and one that is not rests for as long as it likes.
func TestPageWakesForWhatItIsBehindWith(t *testing.T) {
	const tick = 500 * time.Millisecond
	r := &rereading{page: page{slow: []string{"records"}}, version: "1", next: time.Now().Add(time.Hour)}
	if got := r.within("1", tick); got != tick {
		t.Errorf("a page that shows what there is rests for %s", got)
	}
	if got := r.within("2", tick); got != tick {
		t.Errorf("a page that may not read for an hour rests for %s", got)
	}
	r.next = time.Now()
	if got := r.within("2", tick); got != pause {
		t.Errorf("a page that may read now rests for %s", got)
	}
	if r.reading = true; r.within("2", tick) != tick {
		t.Error("a page wakes before what it reads is there")
	}
}

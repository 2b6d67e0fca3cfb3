package dashboard

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

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

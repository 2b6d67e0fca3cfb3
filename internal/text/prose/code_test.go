package prose_test

import (
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/text/prose"
)

func TestIsSentence(t *testing.T) {
	for text, want := range map[string]bool{
		"The river rose by three metres on Sunday.":         true,
		"“The river rose by three metres,” she said.":       true,
		"The `--force` flag overwrites the files of a run.": true,
		"The river rose by three metres [REF_0badcafe].":    true,
		"河水上涨了三米。":                                          true,
		"$ camelot-py lattice --output t.xlsx in.pdf.":      false,
		"import numpy as np from the package.":              false,
		"By A. Writer.":                                     false,
		"Reading PDF annotations":                           false,
		"Home | News | Sport | Weather | Contact us.":       false,
		"See https://example.org/a/b/c and https://b.org/d": false,
		"x = find(page, table, 3, rows, columns).":          false,
		"1 30.6 12/11/19 04:02:57 8 Memory 17 22.":          false,
		"and the rest of a sentence that was cut off.":      false,
	} {
		if got := prose.IsSentence(text); got != want {
			t.Errorf("IsSentence(%q) = %t, want %t", text, got, want)
		}
	}
}

func TestCodeBlocks(t *testing.T) {
	text := "Head\n----\n\nProse::\n\n    code\n\nMore.\n\n.. note::\n   Prose too.\n\n```\ncode\n```\n\n.. image:: a.png\n   :width: 3\n\n.. note:: A note.\n\n.. _target:\n\nEnd.\n"
	var got []string
	for _, s := range prose.CodeBlocks(text) {
		got = append(got, s.In(text))
	}
	want := []string{"----\n", "\n    code\n\n", ".. note::\n", "```\ncode\n```\n", ".. image:: a.png\n   :width: 3\n\n.. note::", ".. _target:\n\n"}
	if len(got) != len(want) {
		t.Fatalf("blocks %q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("block %d is %q, want %q", i, got[i], want[i])
		}
	}
}

// TestLinesOfMarkup: titles and what is no prose in reStructuredText are known by their lines.
func TestLinesOfMarkup(t *testing.T) {
	for text, want := range map[string]bool{
		"How it works\n============\n": true, "Short\n-----": true, "# no\n": false, "title: of metadata\n---\n": false, "=====\n=====\n": false, "Last": false, "": false,
	} {
		line, _, _ := strings.Cut(text, "\n")
		if got := prose.IsUnderlined(text, 0, len(line)); got != want {
			t.Errorf("IsUnderlined(%q) = %t, want %t", text, got, want)
		}
	}

	for line, want := range map[string]bool{
		".. _how_it_works:": true, ".. note:: In FoundationDB, a cluster is a set of processes.": true, "agent = Agent('test', capabilities=[hooks])": true,
		"It can go :doc:`really fast <performance>` here": true, "tables [![Build](https://example.org/a.svg)](https://example.org)": true,
		"How it works": false, "Fed lifts rates, sees faster pace of hikes": false, "The `--force` flag": false, "Why C++ and Go? 2:1 for Go": false,
	} {
		if got := prose.IsMarked(line); got != want {
			t.Errorf("IsMarked(%q) = %t, want %t", line, got, want)
		}
	}
}

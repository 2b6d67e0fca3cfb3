package plain_test

import (
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/plain"
)

func TestTitle(t *testing.T) {
	for text, want := range map[string]string{
		"# The **flood** of [1993](a.md)\n\nIt rose.":     "The flood of 1993",
		"\n\n# One #\n# Two":                              "One",
		"One\n===\n\ntext":                                "One",
		"---\ntitle: \"On dikes\"\ntags: x\n---\n# Other": "On dikes",
		"---\ntags: x\n---\n\n# Other":                    "Other",
		"---\ntitle: On dikes\nabbrev: D\n\n--- abstract\n\nText.\n\n--- middle\n\n# Introduction": "On dikes",
		"[![Build](https://ci.example/b.svg)](https://ci.example)\n![Logo](a.png) ![][b]\n\n# One": "One",
		"<p align=\"center\">\n  <img src=\"a.png\">\n</p>\n\n# One":                               "One",
		"# One [![Build](https://ci.example/b.svg)](https://ci.example)":                           "One",
		"# <img src=\"a.png\"> One":      "One",
		"![Logo](a.png) text\n\n# Later": "",
		"text\n\n# Later":                "",
		"## Second level":                "",
		"#!/bin/sh":                      "",
		"":                               "",
	} {
		d, err := plain.MarkdownFormat().Parse(t.Context(), document.Input{Content: strings.NewReader(text)})
		if err != nil || d.Title != want || d.Text != text {
			t.Errorf("%q: %+v, %v; want the title %q", text, d, err, want)
		}
	}
}

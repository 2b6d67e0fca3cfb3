package prose_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/internal/text/prose"
)

func TestSentences(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"two", "Rain fell. It was cold.", []string{"Rain fell.", "It was cold."}},
		{"abbreviations", "Dr. Smith met Gen. A. Jones in the U.S. on Jan. 5. They talked.", []string{"Dr. Smith met Gen. A. Jones in the U.S. on Jan. 5.", "They talked."}},
		{"decimals and addresses", "It rose 3.5 percent, see example.org/a.b. Then it fell.", []string{"It rose 3.5 percent, see example.org/a.b.", "Then it fell."}},
		{"references behind the end", "Rain fell. [1, 2] It was cold [3]. So.[4]", []string{"Rain fell. [1, 2]", "It was cold [3].", "So.[4]"}},
		{"full references", "Rain fell.[REF_0badcafe][REF_1a2b3c4d, REF_e5f6a7b8] It was cold.", []string{"Rain fell.[REF_0badcafe][REF_1a2b3c4d, REF_e5f6a7b8]", "It was cold."}},
		{"quotes", `He said "It rains." She left! Why?`, []string{`He said "It rains."`, "She left!", "Why?"}},
		{"paragraphs and lists", "# Rain\nIt fell\non us\n\nThen:\n- a thing\n- another", []string{"# Rain\nIt fell\non us", "Then:", "- a thing", "- another"}},
		{"et al.", "Shown by Weiss et al. in mice, i.e. rodents. Good.", []string{"Shown by Weiss et al. in mice, i.e. rodents.", "Good."}},
		{"no spaces", "雨が降った。寒かった。", []string{"雨が降った。", "寒かった。"}},
		{"a space that was forgotten", "It fell on the surface.This is known, see example.org.", []string{"It fell on the surface.", "This is known, see example.org."}},
		{"a link of a name", "Hooks can raise [`ToolFailed`][pydantic_ai.exceptions.ToolFailed] to report it. Then go on.", []string{"Hooks can raise [`ToolFailed`][pydantic_ai.exceptions.ToolFailed] to report it.", "Then go on."}},
		{"a link of a sentence", "Read [How it works. A guide](https://example.org/a) first. Then go on.", []string{"Read [How it works. A guide](https://example.org/a) first.", "Then go on."}},
		{"an address with marks", "See [this](https://example.org/What? Not) now. Go on.", []string{"See [this](https://example.org/What? Not) now.", "Go on."}},
		{"names of programs", "Use pydantic_ai.exceptions.ToolFailed or asyncio.tasks.Task or log.NewLogger here. Then go on.", []string{"Use pydantic_ai.exceptions.ToolFailed or asyncio.tasks.Task or log.NewLogger here.", "Then go on."}},
		{"code", "The mark is `Stop. Now` and ``A? B`` there. Then go on.", []string{"The mark is `Stop. Now` and ``A? B`` there.", "Then go on."}},
		{"a bracket that stays open", "It fell [so they say. It was cold.", []string{"It fell [so they say.", "It was cold."}},
		{"a backquote that stays open", "It fell ` there. It was cold.", []string{"It fell ` there.", "It was cold."}},
		{"states", "He spoke in Hershey, Penn. Thursday. The Penn. governor, from Ga. Tech, came. She lives in Reading, Penn. The house is old.", []string{"He spoke in Hershey, Penn. Thursday.", "The Penn. governor, from Ga. Tech, came.", "She lives in Reading, Penn.", "The house is old."}},
		{"a caption", "He speaks in Sioux Center on Jan. 23, 2016. (Evan Vucci / AP) Then he left.", []string{"He speaks in Sioux Center on Jan. 23, 2016. (Evan Vucci / AP)", "Then he left."}},
		{"an aside", "He speaks in Sioux Center. (It was cold there.) Then he left.", []string{"He speaks in Sioux Center.", "(It was cold there.)", "Then he left."}},
		{"notes", "Head\n====\n\n.. note:: A cluster is a set. It grows.\n\n.. _target:\n\nEnd.", []string{"Head", "====", ".. note::", "A cluster is a set.", "It grows.", ".. _target:", "End."}},
		{"nothing", " \n ", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, s := range prose.Sentences(tt.text) {
				got = append(got, s.In(tt.text))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestNothingOfATextIsLost: sentences do not overlap, and between them is space alone.
func TestNothingOfATextIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("abZ. !?\n-#[]1REF_\"”’。é"))).Draw(t, "text")
		at := 0
		for _, s := range prose.Sentences(text) {
			if s.Start < at || s.End <= s.Start || strings.TrimSpace(text[at:s.Start]) != "" || strings.TrimSpace(s.In(text)) != s.In(text) {
				t.Fatalf("%q: sentence [%d,%d) behind %d", text, s.Start, s.End, at)
			}
			at = s.End
		}
		if strings.TrimSpace(text[at:]) != "" {
			t.Fatalf("%q: %q is in no sentence", text, text[at:])
		}
		prose.Words(text)
	})
}

func TestWords(t *testing.T) {
	var got []string
	for _, w := range prose.Words("The U.S. sent 12,500 troops (5.0% more) to Raqqa, and two F-16s didn't stop.") {
		tag := w.Stem
		switch {
		case w.Number:
			tag += "/n"
		case w.Common:
			tag += "/c"
		case w.Name:
			tag += "/N"
		}
		got = append(got, tag)
	}
	want := "the/c u/N s/N send 12500/n troop 5%/n mor/c to/c raqqa/N and/c 2/n f/N 16/n s didn't/c stop"
	if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
		t.Error(diff)
	}
}

func TestStem(t *testing.T) {
	for _, family := range []string{
		"regulate regulates regulated regulating regulation regulations", "increase increases increased increasing",
		"protein proteins", "study studies studied", "stop stopped stopping stops", "develop development developed developing",
		"city cities", "measure measured measures measuring", "form forms formed forming",
	} {
		words := strings.Fields(family)
		for _, w := range words[1:] {
			if prose.Stem(w) != prose.Stem(words[0]) {
				t.Errorf("%s has the stem %q, and %s %q", w, prose.Stem(w), words[0], prose.Stem(words[0]))
			}
		}
	}
	for _, apart := range [][2]string{{"increase", "decrease"}, {"bus", "busy"}, {"north", "south"}} {
		if prose.Stem(apart[0]) == prose.Stem(apart[1]) {
			t.Errorf("%s and %s have the same stem", apart[0], apart[1])
		}
	}
}

func TestIsReadable(t *testing.T) {
	for text, want := range map[string]bool{
		"A worker that dies loses nothing: another goes on with its units [7].":            true,
		"Der Vertrag beginnt am 18. März 2001.":                                            true,
		"契約は二〇〇一年四月に始まる。":                                                                  true,
		"| `job_id`, `record` | the other job, and the place of the record |":              false,
		"```sh\ncoditect serve --listen 0.0.0.0:7600 --tls-cert certs/server.pem\n```":     false,
		"coditect serve --listen 0.0.0.0:7600 --tls-cert=/etc/server.pem --key=/etc/s.key": false,
		`<svg viewBox="0 0 990 1489"><title>One trace of a job over all processes</title>`: false,
		"![One trace over a client, two servers and three workers](images/trace.svg)":      false,
		`{match: "spiffe://example.org/worker", roles: [worker]}`:                          false,
		"": false,
	} {
		if got := prose.IsReadable(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

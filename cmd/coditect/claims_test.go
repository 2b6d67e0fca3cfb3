package main_test

import (
	"strings"
	"testing"

	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// A bridge is a source, and what a model that lies writes about it: @ stands for a reference
// to it, and ! for one that nobody issued.
const bridge = `{"document_id": "bridge", "passage": "The bridge over the river was closed in May 2021 after the flood because 3 of its 12 pillars were damaged. The mayor did not resign. Repairs will cost about 4 million euros."}`

var saidOfBridge = []struct{ text, grade string }{
	{"The bridge was closed in May 2021 after the flood @.", "supported"},
	{"The bridge was never closed @.", "contradicted"},
	{"The mayor resigned @.", "contradicted"},
	{"Repairs are free @.", "unsupported"},
	{"Is the bridge made of gold @?", "unsupported"},
	{"Nobody died !.", "unsupported"},
	{"Aliens destroyed the bridge !.", "unsupported"},
	{"The mayor stole 5 million euros from the city fund @:", "unsupported"},
}

// TestCitedSentencesAreClaims: a sentence with a reference, or whose reference was removed, is
// graded however short it is and whatever sign ends it, in texts, lists and tables. The
// figures of the report count all of them.
func TestCitedSentencesAreClaims(t *testing.T) {
	t.Parallel()
	studio := newStudio(t, fakellm.Config{Key: modelKey, Model: func(c fakellm.Call) fakellm.Reply {
		issued := shownReference.FindStringSubmatch(c.Prompt())
		if issued == nil {
			return replyOf(map[string]any{"verdicts": []any{}})
		}
		spell := strings.NewReplacer("@", "["+issued[1]+"]", "!", "[REF_0bad0bad]")
		var sentences []string
		for _, s := range saidOfBridge {
			sentences = append(sentences, spell.Replace(s.text))
		}
		return replyOf(map[string]any{
			"introduction": strings.Join(sentences, " "), "evidence_discussion": "It was a flood.", "conclusion": "It stands.",
			"themes_integrated": []string{spell.Replace("The river is dry @"), "bridges"},
		})
	}})
	studio.write("bridge.jsonl", bridge)
	o := studio.try([]string{"ANTHROPIC_API_KEY=" + modelKey}, "run", "--input", studio.path("bridge.jsonl"), "--output", studio.path("out"),
		"--pipeline", "synthesize", "--question", "Why was the bridge closed?", "--provider", "anthropic", "--model", "claude-haiku-4-5", "--base-url", studio.url)
	s := &synthesised{dir: studio.path("out")}
	if s.readResult(t); o.code != 0 || s.Report == nil {
		t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
	}

	graded := map[string]string{}
	for _, c := range s.Report.Claims {
		graded[strings.NewReplacer("[1]", "@", "[?]", "!").Replace(c.Text)] = c.Grade
	}
	want := append(saidOfBridge, struct{ text, grade string }{"The river is dry @", "unsupported"})
	for _, one := range want {
		if graded[one.text] == "" {
			t.Errorf("%q is no claim", one.text)
		} else if got := graded[one.text]; (got == "supported") != (one.grade == "supported") || one.grade == "contradicted" && got != one.grade {
			t.Errorf("%q is %s, want %s", one.text, got, one.grade)
		}
	}
	if m := s.Report.Measures; m.Claims < len(want) || m.Supported != 1 || m.Recall > 0.2 || m.Precision > 0.2 {
		t.Errorf("the figures are %+v of claims %v", m, graded)
	}
}

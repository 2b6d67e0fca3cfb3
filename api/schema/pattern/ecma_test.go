package pattern_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/schema/pattern"
)

// Expressions of ECMAScript, as schemas have them.
func TestEcma(t *testing.T) {
	for _, tt := range []struct {
		expr       string
		yes, wrong []string
	}{
		{`^(?!pattern$).*$`, []string{"", "patterns", "x"}, []string{"pattern"}},
		{`^(?=.*[A-Z])(?=.*\d).{4,}$`, []string{"Abc1", "1bcD-"}, []string{"abc1", "Ab1", "ABCD"}},
		{`(?<=\$)\d+(?!\d*%)`, []string{"costs $50"}, []string{"costs 50", "$50%"}},
		{`(?<!\.)\.$`, []string{"end."}, []string{"end..", "end"}},
		{`^(['"]).*\1$`, []string{`'a'`, `"b"`}, []string{`'a"`, `a`}},
		{`^(?<year>\d{4})-\k<year>$`, []string{"2001-2001"}, []string{"2001-2002"}},
		{`^[^\s\u0041-\u0043/\-]+$`, []string{"xyz", "D"}, []string{"A", "a b", "a/b", "a-b"}},
		{`^[\w.-]{1,2000}$`, []string{"a.b-c", strings.Repeat("a", 2000)}, []string{"", "a b", strings.Repeat("a", 2001)}},
		{`^\p{Lu}\p{L}*$`, []string{"Éa", "A"}, []string{"éa", "1"}},
		{`^a{,2}$`, []string{"a{,2}"}, []string{"aa"}},
		{`^(a|ab)(c|bcd)$`, []string{"abcd", "ac", "abc"}, []string{"abd"}},
		{`^(a*)*b$`, []string{"b", "aab"}, []string{"aac"}},
		{`^a+?b??$`, []string{"aaa", "ab"}, []string{"b"}},
		{`\bcat\b`, []string{"a cat."}, []string{"concat"}},
		{`^[^]$`, []string{"x", "\n"}, []string{"", "xy"}},
		{`^.$`, []string{"x"}, []string{"\n"}},
	} {
		e, err := pattern.CompileEcma(tt.expr)
		if err != nil {
			t.Errorf("%s: %v", tt.expr, err)
			continue
		}
		for _, text := range tt.yes {
			if !e.MatchString(text) {
				t.Errorf("%s does not match %.40q", tt.expr, text)
			}
		}
		for _, text := range tt.wrong {
			if e.MatchString(text) {
				t.Errorf("%s matches %.40q", tt.expr, text)
			}
		}
	}
}

func TestEcmaFaults(t *testing.T) {
	for _, expr := range []string{"(", "(?", ")", "[a", "*a", "a**", `\`, "[z-a]", "a{2,1}", `\k<x>`, "(?<a", `\p{Nope}`, strings.Repeat("(", 300) + strings.Repeat(")", 300)} {
		if e, err := pattern.CompileEcma(expr); err == nil {
			t.Errorf("%.30s was accepted: %v", expr, e.MatchString("a"))
		}
	}
}

// An expression that would go on for ever stops, and says so.
func TestEcmaThatExplodes(t *testing.T) {
	for _, expr := range []string{`^(?=(a+)+b)x`, `^(?!(a|a)*b)(a?){40}\1$c`, `(?=(.*)*$).*.*.*.*.*.*x`} {
		func() {
			defer func() {
				if err, _ := recover().(error); !errors.Is(err, pattern.ErrSteps) {
					t.Errorf("%s: %v", expr, err)
				}
			}()
			e, err := pattern.CompileEcma(expr)
			if err != nil {
				t.Fatal(err)
			}
			t.Errorf("%s: %v", expr, e.MatchString(strings.Repeat("a", 60)))
		}()
	}
}

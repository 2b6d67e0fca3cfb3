package pattern_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/schema/pattern"
)

func never() error { return nil }

func compile(t interface{ Fatalf(string, ...any) }, expr string) *pattern.Pattern {
	p, err := pattern.Compile(expr)
	if err != nil {
		t.Fatalf("Compile(%s): %v", expr, err)
	}
	return p
}

func findAll(t interface{ Fatalf(string, ...any) }, p *pattern.Pattern, text string) [][]int {
	var found [][]int
	err := p.FindAll(text, never, func(place []int) bool {
		found = append(found, place)
		return true
	})
	if err != nil {
		t.Fatalf("FindAll: %v", err)
	}
	return found
}

// TestBounds: what would take hours or gigabytes is refused, and says why.
func TestBounds(t *testing.T) {
	for _, tt := range []struct{ name, expr, want string }{
		{"many groups", strings.Repeat("(a?)", 3000), "the pattern has 3000 groups, of 64 at most; write (?:…) for those that only hold together"},
		{"many optional letters", strings.Repeat("(?:a?)", 6000), "the pattern is too large: it takes 12000 instructions, of 10000 at most"},
		{"repetitions", strings.Repeat("[xy]{990}", 11), "the pattern is too large"},
		{"groups in a large pattern", strings.Repeat("(a)", 60) + strings.Repeat("b?", 1500), "the pattern is too large for its 60 groups"},
		{"no expression", "a(b", "missing closing ): `a(b`"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			_, err := pattern.Compile(tt.expr)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Compile = %v; want %q", err, tt.want)
			}
			if d := time.Since(start); d > 30*time.Second {
				t.Errorf("refusing took %v", d)
			}
		})
	}
}

// TestLikeTheLibrary: searching in pieces finds what a search of all of it does.
func TestLikeTheLibrary(t *testing.T) {
	exprs := []string{
		"^a", "a$", `\Ab`, `b\z`, `\ba`, `\Ba|b`, "(a)|(b+)", "a*", "(?s)a.*?b|ab", "(?i)(?P<value>A)b?", "^", `[^\n]+\n?`, "^(?:b|(a))*$", "é+|\\bb",
	}
	rapid.Check(t, func(t *rapid.T) {
		expr := rapid.SampledFrom(exprs).Draw(t, "expr")
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "\n", " ", "é", "\xff", "AB"}), 0, 30).Draw(t, "text"), "")
		var want [][]int
		for _, place := range regexp.MustCompile("(?m)"+expr).FindAllStringSubmatchIndex(text, -1) {
			if place[0] < place[1] {
				want = append(want, place)
			}
		}
		p := compile(t, expr)
		if diff := cmp.Diff(want, findAll(t, p, text)); diff != "" {
			t.Fatalf("%s in %q (-library +got):\n%s", expr, text, diff)
		}
		// Behind a text without matches, so long that it is read in pieces.
		front := strings.Repeat("-", 1<<21/p.Size())
		if len(front) > 1<<18 || strings.Contains(expr, "^") || strings.Contains(expr, "A") {
			return
		}
		for i := range want {
			for j := range want[i] {
				if want[i][j] >= 0 {
					want[i][j] += len(front)
				}
			}
		}
		if expr == `[^\n]+\n?` || expr == `\ba` || expr == `\Ba|b` {
			return // these see what stands in front
		}
		if diff := cmp.Diff(want, findAll(t, p, front+text)); diff != "" {
			t.Fatalf("%s far behind (-library +got):\n%s", expr, diff)
		}
	})
}

// TestStops: the largest pattern there may be, on the longest text that it may be
// run on, ends within moments of being stopped.
func TestStops(t *testing.T) {
	for name, expr := range map[string]string{
		"instructions": strings.Repeat("a?", 4999) + "$",
		"groups":       "(?:" + strings.Repeat("(a?)", 63) + strings.Repeat("a?", 600) + ")$",
		"many matches": "(?s)a.*b|a",
	} {
		t.Run(name, func(t *testing.T) {
			p := compile(t, expr)
			text := strings.Repeat("a", min(16<<20, pattern.MaxWork/p.Size()))
			stopped := errors.New("stopped")
			deadline := time.Now().Add(50 * time.Millisecond)
			err := p.FindAll(text, func() error {
				if time.Now().After(deadline) {
					return stopped
				}
				return nil
			}, func([]int) bool { return true })
			if late := time.Since(deadline); !errors.Is(err, stopped) || late > 30*time.Second {
				t.Errorf("FindAll = %v, %v after it was to stop", err, late)
			}
		})
	}
}

// TestMaxWork: a text that is too long for its pattern is refused.
func TestMaxWork(t *testing.T) {
	p := compile(t, strings.Repeat("a?", 4999)+"$")
	err := p.FindAll(strings.Repeat(" ", pattern.MaxWork/p.Size()+1), never, nil)
	if err == nil || !strings.Contains(err.Error(), "too large for") {
		t.Errorf("FindAll = %v; want a refusal", err)
	}
}

// TestManyMatches: those beyond the first batch are found as well.
func TestManyMatches(t *testing.T) {
	p := compile(t, `\b[a-z]`+strings.Repeat("(?:xy?)?", 90))
	text := strings.Repeat("a ", 3000)
	if got := len(findAll(t, p, text)); got != 3000 {
		t.Errorf("%d matches; want 3000", got)
	}
}

func TestLinesThatEndInCRLF(t *testing.T) {
	p := compile(t, "^([a-z]+)$")
	if diff := cmp.Diff([][]int{{1, 4, 1, 3}, {5, 7, 5, 7}}, findAll(t, p, "\nab\r\ncd")); diff != "" {
		t.Errorf("FindAll (-want +got):\n%s", diff)
	}
}

package condition_test

import (
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/pipeline/condition"
)

func TestConditions(t *testing.T) {
	for _, tt := range []struct {
		text                  string
		count, tokens, budget int64
		want                  bool
	}{
		{"", 0, 0, 0, true},
		{"count < 5", 4, 0, 0, true},
		{"count < 5", 5, 0, 0, false},
		{"count<=5", 5, 0, 0, true},
		{"count == 5", 5, 0, 0, true},
		{"count != 5", 5, 0, 0, false},
		{"count >= 5", 4, 0, 0, false},
		{"count > 5", 6, 0, 0, true},
		{"tokens <= budget", 1, 100, 100, true},
		{"tokens <= budget", 1, 101, 100, false},
		{"tokens  >  budget", 1, 101, 100, true},
		{"tokens <= budget", 1, 1 << 50, 0, true},
		{"tokens > budget", 1, 1 << 50, 0, false},
		{"count > 15 and tokens > 6000", 16, 6000, 0, false},
		{"count > 15 and tokens > 6000", 16, 6001, 0, true},
	} {
		c, err := condition.Parse(tt.text)
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		if got := c.Holds(tt.count, tt.tokens, tt.budget); got != tt.want {
			t.Errorf("%q of %d inputs with %d tokens under %d is %t", tt.text, tt.count, tt.tokens, tt.budget, got)
		}
		if c.Budget() != strings.Contains(tt.text, "budget") {
			t.Errorf("%q depends on the budget: %t", tt.text, c.Budget())
		}
	}
}

func TestConditionsThatAreNoneAreRefused(t *testing.T) {
	for text, rule := range map[string]string{
		"count < 3 and count != 0 and count != 1 and count != 2": "never true",

		"count < 0":                                          "never true",
		"tokens > 10 and tokens < 5":                         "never true",
		"tokens > 10 and tokens < 11":                        "never true",
		"count == 3 and count != 3":                          "never true",
		"tokens < budget and tokens > budget":                "never true",
		"tokens <= budget and tokens > budget and count > 5": "never true",
		"tokens > budget and tokens < 1":                     "never true",
		"count = 5":                                          "no comparison",
		"count":                                              "no comparison",
		"documents > 5":                                      "neither count nor tokens",
		"count > budget":                                     "whole number",
		"tokens > 1.5":                                       "whole number",
		"tokens > 99999999999999999999":                      "whole number",
		"tokens > 5 or count > 3 and count > 1":              "use one of them",
		"tokens > 5 and ":                                    "neither count nor tokens",
		"counts > 5":                                         "no comparison",
		"count > 1" + strings.Repeat(" and count > 1", 8):    "at most 8",
		"5 < count":                                          "neither count nor tokens",
	} {
		if _, err := condition.Parse(text); err == nil || !strings.Contains(err.Error(), rule) {
			t.Errorf("%q: got %v, want %q", text, err, rule)
		}
	}
	for _, text := range []string{"count > 4 and count < 6", "tokens > 9 and tokens < 12 and tokens != 10", "tokens < budget and tokens != 0 and tokens != 1", "tokens == budget"} {
		if _, err := condition.Parse(text); err != nil {
			t.Errorf("%q can be true: %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "count > 5", "tokens <= budget and count != 3", "tokens > 10 and tokens < 5", "count >= -1", "count<9007199254740992"} {
		f.Add(text, int64(3), int64(100), int64(50))
	}
	f.Fuzz(func(t *testing.T, text string, count, tokens, budget int64) {
		c, err := condition.Parse(text)
		if err != nil {
			if strings.Contains(err.Error(), "is never true") && count >= 0 && tokens >= 0 && budget > 0 {
				for part := range strings.SplitSeq(text, " and ") {
					if one, err := condition.Parse(part); err != nil || !one.Holds(count, tokens, budget) {
						return
					}
				}
				t.Errorf("%q is refused as never true, and holds of %d, %d, %d", text, count, tokens, budget)
			}
			return
		}
		whole := true
		if text != "" {
			for part := range strings.SplitSeq(text, " and ") {
				one, err := condition.Parse(part)
				if err != nil {
					t.Fatalf("%q is a part of %q: %v", part, text, err)
				}
				whole = whole && one.Holds(count, tokens, budget)
			}
		}
		if c.Holds(count, tokens, budget) != whole {
			t.Errorf("%q holds of %d, %d, %d otherwise than its parts", text, count, tokens, budget)
		}
	})
}

package steps

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/text/token"
	"github.com/coditect/mapreduce/worker/agent/model"
)

// TestFitTokensEnds: a text is cut to any budget, also if each of its characters is a token or
// more, so that the line break behind the cut takes the place of what was cut.
func TestFitTokensEnds(t *testing.T) {
	m := &mergeRun{attempt: &attempt{&model.Session{Agent: &model.Agent{Count: token.New()}}}}
	for name, text := range map[string]string{
		"empty":            "",
		"words":            strings.Repeat("many words about nothing ", 20),
		"a token each":     strings.Repeat("金木水火土", 20),
		"tokens each":      strings.Repeat("𒀀𒁀𒂀", 20),
		"lines":            strings.Repeat("金\n", 50),
		"line breaks":      strings.Repeat("\n", 200),
		"invalid encoding": strings.Repeat("\xff", 50),
	} {
		for most := int64(-2); most <= 80; most++ {
			t.Run(fmt.Sprintf("%s/%d", name, most), func(t *testing.T) {
				fit := m.fitTokens(text, most)
				if n := int64(m.Agent.Count.Count(fit)); n > max(0, most) {
					t.Errorf("%q has %d tokens", fit, n)
				}
				if !strings.HasPrefix(string([]rune(text)), strings.TrimSuffix(string([]rune(fit)), "\n")) {
					t.Errorf("%q is not the beginning of the text", fit)
				}
			})
		}
	}
}

package manners

import (
	"regexp"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/parameters"
)

// Parameters are parameters of answers, as bits.
type Parameters uint16

// The parameters.
const (
	Effort Parameters = 1 << iota
	Thinking
	Verbosity
	TopP
	Temperature
	Seed
	Stop
	CacheKey

	allParameters = CacheKey<<1 - 1
)

// Levels are levels of effort, as bits in the order of parameters.Efforts.
type Levels uint8

// noEffort is the least level: that a model does not think.
const noEffort Levels = 1

// Nearest returns the level that is taken next to one: itself, or the next below it, or above it if
// there is none.
func (l Levels) Nearest(level string) string {
	var taken []string
	for i, one := range parameters.Efforts() {
		if l&(1<<i) != 0 {
			taken = append(taken, one)
		}
	}
	if len(taken) == 0 || !slices.Contains(parameters.Efforts(), level) {
		return level
	}

	return parameters.NearestEffort(level, taken)
}

// A parameterName is how servers name a parameter in what they refuse, in lower case.
type parameterName struct {
	bit   Parameters
	words *regexp.Regexp
	what  string // is said to be refused
}

// thinkingWords are how servers say that a model does not think, or not as it is asked to.
const thinkingWords = `thinking_?level|thinking level|think value|(?:support|supported|enabled?)[^.]{0,40}(?:thinking|reasoning)|` +
	`(?:thinking|reasoning)[^.]{0,60}(?:support|disabled|mandatory|unknown|extra|permitted)|thinking\.type|reasoning_?config|enable_thinking|"think"|'think'`

// parameterNames are in the order in which one is left out, if a server names several: of
// temperature and top_p, the temperature stays, and a budget goes before all of thinking.
var parameterNames = []parameterName{
	{CacheKey, regexp.MustCompile(`prompt_?cache_?key`), "prompt_cache_key"},
	{Verbosity, regexp.MustCompile(`verbosity`), "verbosity"},
	{Thinking, regexp.MustCompile(`thinking_?budget|thinking budget|budget_tokens|budget -?\d+ is|token_budget|thinking\.type[^a-z]*enabled|reasoning\.max_tokens`), "thinking_budget"},
	{Effort, regexp.MustCompile(`effort|` + thinkingWords), "effort"},
	{Thinking, regexp.MustCompile(thinkingWords), "thinking_budget"},
	{TopP, regexp.MustCompile(`\btop_?p\b|top p\b|#/p:`), "top_p"},
	{Temperature, regexp.MustCompile(`temperature`), "temperature"},
	{Seed, regexp.MustCompile(`(?:^|[^a-z])(?:random_)?seed(?:$|[^a-z])`), "seed"},
	{Stop, regexp.MustCompile(`stop_?sequence|stop sequence|(?:^|[^a-z_])stop(?:$|[^a-z_])`), "stop"},
}

// levelList is where a server says which levels it takes.
var levelList = regexp.MustCompile(`(?:supported (?:values|levels|efforts)|must be one of|one of|must be|expected|input should be|available|allowed|valid values|supports)(.*)`)

// oneLevel finds a level as a word.
var oneLevel = regexp.MustCompile(`\b(none|minimal|low|medium|high|xhigh|max)\b`)

// forcedTrait is of models that can be forced to call a tool only while they do not think:
// the refusal names both thinking and the tool.
func forcedTrait(m Manners, text string, sent Sent) (Manners, string, bool) {
	if !strings.Contains(text, "think") && !strings.Contains(text, "reasoning") {
		return m, "", false
	}
	return choiceTrait(m, text, sent)
}

// parameterTrait is of models that do not take a parameter of answers, or not the level of effort.
func parameterTrait(m Manners, text string, sent Sent) (Manners, string, bool) {
	for _, p := range parameterNames {
		if sent.Parameters&p.bit == 0 || m.Omit&p.bit != 0 || !p.words.MatchString(text) {
			continue
		}

		if p.bit == Effort {
			if next, what, ok := levelTrait(m, text, sent); ok {
				return next, what, true
			}
		}
		m.Omit |= p.bit
		return m, "it takes no " + p.what, true
	}

	if sent.Parameters&(Effort|Verbosity) == Effort && strings.Contains(text, "'"+sent.Effort+"'") {
		return levelTrait(m, text, sent) // of nothing else are such values
	}

	return m, "", false
}

// levelTrait is of models that take other levels of effort. That thinking can be switched off is not
// what somebody needs who wants it.
func levelTrait(m Manners, text string, sent Sent) (Manners, string, bool) {
	taken := takenLevels(text)
	next := taken.Nearest(sent.Effort)
	if taken == 0 || taken == m.Efforts || next == sent.Effort || taken == noEffort {
		return m, "", false
	}
	m.Efforts = taken
	return m, "it takes no effort " + sent.Effort + ", but " + next, true
}

// takenLevels returns the levels that a server says it takes; 0 if it does not say.
func takenLevels(text string) (all Levels) {
	list := levelList.FindStringSubmatch(text)
	if list == nil {
		return 0
	}
	for _, word := range oneLevel.FindAllString(list[1], -1) {
		all |= 1 << slices.Index(parameters.Efforts(), word)
	}
	return all
}

package parameters

import (
	"fmt"
	"slices"
	"strings"
)

// Limits are what is known of the parameters that a model takes. The zero value knows nothing: then
// all is sent, and the server says what it does not take.
type Limits struct {
	Not            []Name   // what it does not take
	Efforts        []string // the levels that it takes; nil is all
	LeastThinking  int64    // tokens, of a budget above 0
	MostThinking   int64    // tokens; 0 is not known
	Thinks         bool     // always: a budget of 0 is refused
	Either         bool     // an effort or a budget, and not both
	MaxTemperature float64  // 0 is not known
	MaxStops       int      // 0 is not known
	Tiers          []string // that it has; nil is all
	Batches        bool     // it can be asked in batches
}

// Refusal returns the first of the parameters that a model does not take, and the rule that it
// breaks: "is not taken"; "" if it takes all, as far as is known.
func (l Limits) Refusal(s Set) (name Name, rule string) {
	for _, n := range s.Given() {
		if rule := l.refuse(n, s); rule != "" {
			return n, rule
		}
	}
	return "", ""
}

// Keep returns the parameters that a model takes, as far as is known. In place of a level of effort
// that it does not take, it has the nearest that it takes: the next lower one, or else the next higher.
func (l Limits) Keep(s Set) Set {
	if rule := l.refuse(Effort, s); rule != "" && s.Effort != "" && !slices.Contains(l.Not, Effort) {
		s.Effort = NearestEffort(s.Effort, l.Efforts)
	}
	for name, rule := l.Refusal(s); rule != ""; name, rule = l.Refusal(s) {
		s = s.Without(name)
	}
	return s
}

// refuse returns the rule that one parameter of a set breaks, or "".
func (l Limits) refuse(n Name, s Set) string {
	switch {
	case n == Tier && s.Tier == Batch && !l.Batches:
		return "batch is not taken: its provider makes no batches here"
	case slices.Contains(l.Not, n):
		return "is not taken"
	}

	switch n {
	case Effort:
		if len(l.Efforts) > 0 && !slices.Contains(l.Efforts, s.Effort) {
			return fmt.Sprintf("%s is not taken; it takes %s", s.Effort, strings.Join(l.Efforts, ", "))
		}
	case Thinking:
		return l.refuseThinking(s)
	case Temperature:
		if l.MaxTemperature > 0 && *s.Temperature > l.MaxTemperature {
			return fmt.Sprintf("%v is not taken; it takes 0 to %v", *s.Temperature, l.MaxTemperature)
		}
	case Stop:
		if l.MaxStops > 0 && len(s.Stop) > l.MaxStops {
			return fmt.Sprintf("with %d texts is not taken; it takes %d", len(s.Stop), l.MaxStops)
		}
	case Tier:
		if s.Tier == Batch {
			return ""
		}
		for tier := range strings.SplitSeq(s.Tier, ",") {
			if len(l.Tiers) > 0 && !slices.Contains(l.Tiers, tier) {
				return fmt.Sprintf("it has no tier %s; it has %s", tier, strings.Join(l.Tiers, ", "))
			}
		}
	}

	return ""
}

// NearestEffort returns the level among those that are taken which is next to another: itself, or the
// next below it, or above it if there is none; "" if none of them is a level.
func NearestEffort(level string, taken []string) string {
	all := Efforts()
	at := slices.Index(all, level)
	lower, higher := slices.Clone(all[:at+1]), all[at+1:]
	slices.Reverse(lower)
	for _, near := range append(lower, higher...) {
		if slices.Contains(taken, near) {
			return near
		}
	}
	return "" // none of them is a level
}

func (l Limits) refuseThinking(s Set) string {
	n := *s.Thinking
	switch {
	case l.Either && s.Effort != "":
		return "is not taken beside effort; give one of them"
	case n == 0 && l.Thinks:
		return "0 is not taken: it always thinks"
	case n > 0 && n < l.LeastThinking, l.MostThinking > 0 && n > l.MostThinking:
		// Only the upper bound may be missing: zero is none.
		least := fmt.Sprint(l.LeastThinking)
		if l.MostThinking == 0 {
			return fmt.Sprintf("%d is not taken; it takes %s or more", n, least)
		}
		return fmt.Sprintf("%d is not taken; it takes %s to %d", n, least, l.MostThinking)
	}

	return ""
}

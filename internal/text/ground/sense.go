package ground

import (
	"strings"

	"github.com/coditect/mapreduce/internal/text/prose"
)

// A sense is a set of bits that tell how a word affects the words around it.
type sense uint32

const (
	isKnown   sense = 1 << iota // the other bits are valid
	isLight                     // see IsLightWord
	isKept                      // it must not be left out: see IsEssential and isBindingWord
	isCounted                   // it is a number or a quantity
	isTurning                   // it negates the words around it: see IsNegative
	isScoping                   // see isScopeWord
	isLinking                   // see isLinkWord
)

// guardedWords is the reach of a negation in words, to either side.
const guardedWords = 8

// senseAt returns the sense of token i, 0 if there is no such token.
func (x *index) senseAt(i int) sense {
	if i < 0 || i >= len(x.tokens) {
		return 0
	}

	known := &x.senses[x.tokenIDs[i]]
	// Two goroutines may compute the sense at the same time, with the same outcome.
	s := sense(known.Load())
	if s == 0 {
		k := x.tokens[i]
		s = senseOf(x.text[k.start:k.end], k.kind)
		known.Store(uint32(s))
	}
	return s
}

// nearNegation reports whether token i stands where one word more or less may
// change the meaning: in the same part of a sentence as a negation, or behind a
// scope word such as "all" or "only".
func (x *index) nearNegation(i int) bool {
	for k := i - 1; k >= max(0, i-guardedWords) && !x.endsSentence(k); k-- {
		if x.senseAt(k)&(isTurning|isScoping) != 0 {
			return true
		}
	}

	for k := i + 1; k <= min(len(x.tokens)-1, i+guardedWords) && !x.endsSentence(k-1); k++ {
		if x.senseAt(k)&isTurning != 0 {
			return true
		}
	}
	return false
}

// endsSentence reports whether a sentence or a part of one ends behind token i. A
// full stop behind few letters may belong to them.
func (x *index) endsSentence(i int) bool {
	if i+1 >= len(x.tokens) {
		return false
	}

	k := x.tokens[i]
	gap := x.text[k.end:x.tokens[i+1].start]

	switch {
	case gap == " " || gap == "":
		return false
	case strings.ContainsAny(gap, ";:!?"):
		return true
	}

	return k.end-k.start > 3 && strings.Contains(gap, ".")
}

func senseOf(word string, k kind) sense {
	s := isKnown
	for _, has := range [...]struct {
		sense sense
		yes   bool
	}{
		{isLight, prose.IsLightWord(word)},
		{isKept, k != letter || prose.IsEssential(word) || isBindingWord(word)},
		{isCounted, k == digit || k == symbol || k == letter && prose.IsQuantity(word)},
		{isTurning, k == letter && prose.IsNegative(word) && word != "un" && word != "non"},
		{isScoping, isScopeWord(word)},
		{isLinking, isLinkWord(word)},
	} {
		if has.yes {
			s |= has.sense
		}
	}
	return s
}

// isScopeWord reports whether a word makes a statement about everything that the
// words behind it describe. Leaving one of those out widens the statement: all
// large firms are not all firms.
func isScopeWord(s string) bool {
	switch s {
	case "all", "every", "each", "any", "only", "few", "fewer", "fewest", "little", "less", "if", "whether", "whenever",
		"hardly", "barely", "rarely", "seldom", "scarcely":
		return true
	}
	return false
}

// isLinkWord reports whether a word may be left out beside a number, because it
// only links the number to the text before.
func isLinkWord(s string) bool {
	switch s {
	case "and", "which", "who", "has", "have", "had", "also", "then":
		return true
	}
	return false
}

// isBindingWord reports whether a word must not be left out although it negates
// nothing. Without it the words around it may relate in another way ("was paid",
// "shot at"), a measure may lose its unit, or a wish or a guess may read as a fact.
func isBindingWord(s string) bool {
	switch s {
	// Forms of to be, units, words of doubt and of intent.
	case "am", "is", "are", "was", "were", "be", "been", "being", "at", "for",
		"dollar", "dollars", "euro", "euros", "pound", "pounds", "sterling", "yen", "yuan", "rupee", "rupees", "ringgit",
		"franc", "francs", "dinar", "dinars", "rial", "rials", "rouble", "roubles", "ruble", "rubles", "peso", "pesos", "lira",
		"kilometre", "kilometres", "kilometer", "kilometers", "km", "metre", "metres", "meter", "meters", "cm", "mm", "mile",
		"miles", "foot", "feet", "inch", "inches", "yard", "yards", "acre", "acres", "hectare", "hectares", "litre", "litres",
		"liter", "liters", "gallon", "gallons", "barrel", "barrels", "ton", "tons", "tonne", "tonnes", "kilogram", "kilograms",
		"kg", "gram", "grams", "mg", "ml", "ounce", "ounces", "lb", "lbs", "square", "cubic", "metric", "nautical", "degree",
		"degrees", "watt", "watts", "volt", "volts", "minute", "minutes", "hour", "hours", "day", "days", "week", "weeks",
		"month", "months", "year", "years", "decade", "decades", "century", "centuries", "daily", "weekly", "monthly",
		"annual", "annually", "yearly", "average", "minimum", "maximum", "net", "gross",
		"roughly", "circa", "virtually", "practically", "potential", "potentially", "seemingly", "presumably", "presumed",
		"estimated", "believed", "believes", "thought", "thinks", "rumoured", "rumored", "unconfirmed", "unverified",
		"disputed", "unsuccessful", "unsuccessfully", "hopes", "hoped", "plans", "intends", "aims", "aimed", "seeks",
		"sought", "threatened", "threatens", "promised", "promises", "pledged", "offered", "declined", "unwilling",
		"counterfeit", "mock", "supposed", "ostensibly", "arguably", "nominally", "provisional", "provisionally",
		"temporary", "temporarily", "conditional", "conditionally", "previous", "previously", "suggested", "suggests",
		"argued", "argues", "told", "according", "tries", "trying", "attempts", "attempting", "wanted", "want", "wish",
		"ought", "need", "needs", "future":
		return true
	}
	return false
}

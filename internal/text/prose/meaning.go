package prose

import "strings"

// IsLightWord reports whether a word, in small letters, may be missing from a
// quote or from the text without a change of meaning.
func IsLightWord(s string) bool {
	switch s {
	case "a", "an", "the", "of", "that", "s", "的", "了":
		return true
	}
	return false
}

// ArticleQuantifies reports whether an article changes the meaning of the word
// behind it: "a few" are some, "few" are hardly any.
func ArticleQuantifies(article, word string) bool {
	return article == "a" && (word == "few" || word == "little")
}

// IsNegative reports whether a word, in small letters, negates a sentence.
func IsNegative(s string) bool {
	switch s {
	case "not", "no", "never", "neither", "nor", "none", "nobody", "nothing", "nowhere", "cannot", "without",
		"except", "unless", "false", "falsely", "deny", "denies", "denied", "denying", "refuse", "refuses", "refused",
		"reject", "rejects", "rejected", "fail", "fails", "failed", "failing", "un", "non", "lack", "lacks", "lacked",
		"unable", "impossible", "illegal", "illegally", "unlawful", "unlawfully", "untrue", "wrongly", "forbidden",
		"prohibited", "prohibits", "banned", "excluding", "excluded", "excludes", "cease", "ceased", "ceases",
		"不", "没", "沒", "無", "无", "非", "未", "否", "勿", "别", "別":
		return true
	}
	return isNegativeForeign(s) || strings.HasSuffix(s, "n't") || strings.HasSuffix(s, "n’t")
}

// isNegativeForeign is IsNegative for the most frequent words of languages other
// than English that put spaces between words.
func isNegativeForeign(s string) bool {
	switch s {
	case "nicht", "nichts", "kein", "keine", "keinen", "keinem", "keiner", "keines", "nie", "niemals", "niemand", "ohne", "weder",
		"ne", "pas", "jamais", "sans", "aucun", "aucune", "ni", "rien", "sauf",
		"nunca", "sin", "ningún", "ninguna", "ninguno", "tampoco", "nada", "não", "sem", "nem", "nenhum", "nenhuma",
		"mai", "senza", "né", "nessun", "nessuna", "nessuno", "niet", "geen", "nooit", "zonder", "niets",
		"inte", "ikke", "icke", "ej", "aldrig", "aldri", "utan", "uden", "uten", "ei", "eivät",
		"не", "нет", "ни", "без", "никогда", "nigdy", "bez", "není", "değil", "yok", "không",
		"tidak", "bukan", "tanpa", "jangan", "belum", "لا", "ليس", "ليست", "لم", "لن", "بدون", "לא", "אין", "בלי", "नहीं", "बिना":
		return true
	}
	return false
}

// IsEssential reports whether a word, in small letters, must not be left out,
// because it negates, hedges or quantifies.
func IsEssential(s string) bool {
	return IsNegative(s) || isHedge(s) || IsQuantity(s)
}

// isHedge reports whether a word weakens a statement or makes it conditional.
func isHedge(s string) bool {
	switch s {
	case "if", "whether", "may", "might", "could", "would", "should", "can", "must", "shall", "will",
		"alleged", "allegedly", "reported", "reportedly", "apparently", "supposedly", "purported", "purportedly",
		"claimed", "claims", "claim", "claiming", "said", "says", "accused", "suspected", "denies", "possible", "possibly",
		"probably", "likely", "unlikely", "perhaps", "maybe", "hardly", "barely", "rarely", "seldom", "scarcely",
		"nearly", "almost", "attempted", "attempt", "tried", "planned", "proposed", "intended", "expected", "wants",
		"former", "formerly", "ex", "late", "deputy", "vice", "acting", "fake", "bogus", "pretended", "so-called",
		"but", "however", "although", "though", "instead", "rather", "against", "anti", "counter", "opposite",
		"stop", "stopped", "stops", "prevent", "prevents", "prevented", "avoid", "avoids", "avoided",
		"before", "after", "until", "till", "since", "or", "from", "by":
		return true
	}
	return false
}

// IsQuantity reports whether a word tells how much or how many.
func IsQuantity(s string) bool {
	switch s {
	case "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
		"thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty", "thirty", "forty",
		"fifty", "sixty", "seventy", "eighty", "ninety", "hundred", "hundreds", "thousand", "thousands", "million",
		"millions", "billion", "billions", "trillion", "trillions", "dozen", "dozens", "score", "scores", "half", "halves",
		"third", "thirds", "quarter", "quarters", "double", "triple", "twice", "once", "first", "second", "last",
		"percent", "per", "cent", "cents", "bn", "mn", "m", "k", "few", "fewer", "less", "least", "little", "more", "most",
		"many", "much", "some", "any", "all", "every", "each", "both", "either", "only", "just", "under", "over", "above",
		"below", "about", "around", "approximately", "up", "down", "than", "minus", "plus", "partly", "partially",
		"mostly", "largely", "other", "another", "same", "different":
		return true
	}
	return false
}

// NounStem returns the stem that the singular and the plural of a noun share.
func NounStem(s string) string {
	switch {
	case strings.HasSuffix(s, "men"):
		return s[:len(s)-3] + "man"
	case strings.HasSuffix(s, "ss"), strings.HasSuffix(s, "us"), strings.HasSuffix(s, "s") && len(s) <= 3:
		return s
	case strings.HasSuffix(s, "ies"):
		return s[:len(s)-3]
	case strings.HasSuffix(s, "es"):
		return s[:len(s)-2]
	}

	s = strings.TrimSuffix(s, "s")
	// A plural may have lost its e with its s above, so singulars lose theirs too.
	for _, ending := range [...]string{"ie", "y", "e"} {
		if short, ok := strings.CutSuffix(s, ending); ok {
			return short
		}
	}
	return s
}

// SameNoun reports whether one of two words is the plural of the other, as far
// as English endings tell.
func SameNoun(a, b string) bool {
	// The longer one has to be the plural.
	if len(a) > len(b) {
		a, b = b, a
	}

	if len(a) < 3 || IsEssential(a) || IsEssential(b) {
		return false
	}

	if stem, ok := strings.CutSuffix(a, "man"); ok && b == stem+"men" {
		return true
	}
	if stem, ok := strings.CutSuffix(b, "man"); ok && a == stem+"men" {
		return true
	}
	if stem, ok := strings.CutSuffix(a, "y"); ok && b == stem+"ies" {
		return true
	}

	rest, ok := strings.CutPrefix(b, a)
	if !ok || strings.HasSuffix(a, "ss") && rest == "s" {
		return false
	}
	return rest == "s" && a[len(a)-1] != 's' || rest == "es" && pluralInES(a)
}

// pluralInES reports whether the plural of s ends in es.
func pluralInES(s string) bool {
	for _, ending := range [...]string{"s", "x", "z", "ch", "sh", "o"} {
		if strings.HasSuffix(s, ending) {
			return true
		}
	}
	return false
}

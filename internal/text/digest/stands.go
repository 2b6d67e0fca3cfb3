package digest

import (
	"regexp"
	"strings"

	"github.com/coditect/mapreduce/internal/text/prose"
)

// stands reports whether a sentence of a source, tidied, can stand in a report by itself: it is a whole
// sentence that says something, and no fragment of a list or a table, no heading, no question, no
// aside, no part of a quotation, no talk to its reader, no pointer to another place, and no markup.
func stands(sentence string) bool {
	return prose.IsSentence(sentence) && !pointsAway(sentence) && !isQuestion(sentence) && !isAside(sentence) &&
		!isTalk.MatchString(sentence) && !residue.MatchString(sentence) && !isFragment(sentence) && !isCutQuotation(sentence)
}

// isCutQuotation reports whether a sentence has but one end of something quoted, as the first and the last one of
// a quotation of several sentences have: by itself it does not say who speaks.
func isCutQuotation(sentence string) bool {
	return strings.Count(sentence, "\"")%2 == 1 || strings.Count(sentence, "“") != strings.Count(sentence, "”")
}

// isQuestion reports whether a sentence asks rather than says.
func isQuestion(sentence string) bool {
	return strings.HasSuffix(strings.TrimRight(withoutReferences(sentence), ".\"”’) "), "?")
}

// isAside reports whether a sentence stands in brackets, or has but one end of them, as the
// end of an aside of several sentences does.
func isAside(sentence string) bool {
	bare := strings.TrimRight(withoutReferences(sentence), ". ")
	open, lowest := 0, 0
	for _, r := range bare {
		switch r {
		case '(':
			open++
		case ')':
			open--
			lowest = min(lowest, open)
		}
	}

	return open != 0 || lowest < 0 || strings.HasPrefix(bare, "(") && strings.HasSuffix(bare, ")")
}

// isTalk matches sentences that speak to their reader, or of their own text.
var isTalk = regexp.MustCompile(`^(?:Yes|No|Cool|Ok|OK|Okay|Well|Hi|Hello|Hey|Thanks|Thank you|Sorry|Great|Congratulations|Wow|Oops)\b[,!. ]|` +
	`\b[Ll]et['’]s\b|^(?:To summarize|In summary|In conclusion|Repeating|To repeat|As (?:mentioned|noted|discussed|described|shown|stated) )|` +
	`^(?:Refer|See|Consult|Visit|Click|Read) (?:to|the|our|also|here|on|this)\b|` +
	`^Table of Contents\b|\bTable of Contents\s+[A-Z]{2}|\b[Yy]ou can (?:read|find|see|learn|check)\b`)

// residue matches marks that are left of markup: templates, commands, paths of pictures, and rows of
// labels in capitals in front of a sentence.
var residue = regexp.MustCompile(`\{\{|\}\}|\[\^|\[\[|\]\]|<%|\\[a-z]{2,}\{|:[a-z]+:` + "`" + `|^[A-Z]{3,}(?: [A-Z&]{2,}){1,}(?: [A-Z][a-z]+)*:? `)

// isFragment reports whether a sentence says nothing by itself, because it lacks a verb or its main clause, or
// begins with the number of a page or of a row. Only English is judged.
func isFragment(sentence string) bool {
	bare := withoutReferences(sentence)
	if !isEnglish(bare) {
		return false
	}
	return !hasVerb(bare) || lacksMainClause(bare) || lacksSubject(bare) || ofTable.MatchString(bare) || ofList.MatchString(bare)
}

// ofTable matches the number in front of a heading or of a row, and the numbers of a row.
var ofTable = regexp.MustCompile(`^[($]*[0-9][0-9.,]*[)% ]* [A-Z][a-z]{2,} [a-z]|(?:[($]*[0-9][0-9.,]*[)% ]* ){3}`)

// ofList matches the beginning of an element of a list: a label and a colon, or what is explained and a dash.
var ofList = regexp.MustCompile("^[A-Z][A-Za-z-]*(?: [A-Za-z-]+){0,3}: [a-z]|^[`'\"“][^ ]*[`'\"”]+ ?[—–:-] ")

// lacksSubject reports whether a sentence begins with a verb in -s, as elements of lists do.
func lacksSubject(sentence string) bool {
	word, _, _ := strings.Cut(strings.ToLower(sentence), " ")
	return finite[word] && len(word) > 4 && strings.HasSuffix(word, "s") && strings.Contains(sentence, " ") && !strings.HasSuffix(word, "'s")
}

// lacksMainClause reports whether a sentence is a clause that another one would have to follow.
func lacksMainClause(sentence string) bool {
	word, rest, _ := strings.Cut(strings.ToLower(sentence), " ")
	switch word {
	case "if", "when", "because", "since", "although", "though", "unless", "while", "whereas":
		return !strings.Contains(rest, ",") && !strings.Contains(rest, " then ") && !strings.Contains(rest, ": ")
	case "which", "whose", "whereby":
		return true
	}
	return false
}

// leastEnglish is the share of words that English has only for its grammar, from which on a sentence is
// taken for English.
const leastEnglish = 0.12

// isEnglish reports whether a sentence has as many articles, prepositions and the like as English has.
func isEnglish(sentence string) bool {
	words := prose.Words(sentence)
	common := 0
	for _, w := range words {
		if w.Common {
			common++
		}
	}
	return float64(common) >= leastEnglish*float64(max(1, len(words)))
}

// finite are forms of verbs that can be nothing else, or seldom are.
var finite = wordSet(`is are was were am has have had do does did can could may might must shall should will would cannot can't isn't
	aren't wasn't weren't don't doesn't didn't won't wouldn't couldn't shouldn't hasn't haven't hadn't it's that's there's they're we're you're we've
	became become becomes began begin begins bring brings brought build builds built buy buys bought came come comes contain contains choose chooses chose
	cost depend depends differ differs drove enable enables exist exists fail fails fall falls fell find finds found follow follows gave get gets got
	give gives goes went grew grow grows happen happens hold holds held include includes increase increases keep keeps kept know knows knew
	lead leads led let lets lie lies lose loses lost made make makes mean means meant meet meets met need needs occur occurs offer offers
	pay pays paid provide provides put puts raise raises ran read reads receive receives remain remains remove removes represent represents
	require requires return returns rose run runs said say says saw sees seek seeks seem seems send sends sent serve serves set sets show shows
	speak spoke stand stands stood stay stays support supports take takes took tell tells told think thinks thought try tries use uses vary varies
	want wants win wins won work works write writes wrote allow allows apply applies avoid avoids call calls cause causes create creates define defines
	describe describes ensure ensures explain explains expect expects handle handles help helps ignore ignores improve improves indicate indicates
	mark marks match matches prevent prevents produce produces protect protects reduce reduces refer refers replace replaces reset resets resolve resolves
	stop stops store stores treat treats start starts ends specify specifies validate validates raise retry retries appear appears expand expands recognize recognizes
	recognise recognises identify identifies perform performs process processes consist consists determine determines`)

// wordSet is the set of the words in a text.
func wordSet(list string) map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(list) {
		m[w] = true
	}
	return m
}

// hasVerb reports whether a sentence has a word that is the verb of a clause, as far as its form tells:
// one of the finite ones, a past form, or a form in -s with an article or a preposition behind it.
// A form in -ing alone is none, and a sentence that begins with one needs a verb that can be
// nothing else.
func hasVerb(sentence string) bool {
	words := prose.Words(sentence)
	if len(words) > 0 && strings.HasSuffix(words[0].Lower, "ing") {
		words = words[:mainClause(words)]
	}

	sure, likely := false, false
	for i, w := range words {
		switch {
		case finite[w.Lower]:
			sure = true
		case i == 0:
		case isPast(words, i), isThirdPerson(words, i):
			likely = true
		}
	}

	if len(words) > 0 && strings.HasSuffix(words[0].Lower, "ing") {
		return sure
	}
	return sure || likely
}

// isPast reports whether a word may be a verb in -ed: no article and no preposition is before it, which would
// make it a property of what follows.
func isPast(words []prose.Word, i int) bool {
	if w := words[i].Lower; len(w) <= 4 || !strings.HasSuffix(w, "ed") {
		return false
	}
	switch words[i-1].Lower {
	case "a", "an", "the", "each", "every", "any", "all", "some", "this", "that", "its", "their", "our", "your", "of", "in", "on", "for", "with", "by", "from", "to", "no":
		return false
	}
	return true
}

// mainClause returns how many words of a sentence stand before its first subordinate clause.
func mainClause(words []prose.Word) int {
	for i, w := range words {
		switch w.Lower {
		case "when", "if", "that", "which", "who", "whose", "where", "while", "because", "since", "unless", "until":
			return i
		}
	}
	return len(words)
}

// isThirdPerson reports whether a word may be a verb in -s: an article, a pronoun or an adverb is behind it.
func isThirdPerson(words []prose.Word, i int) bool {
	w := words[i].Lower
	if len(w) < 4 || !strings.HasSuffix(w, "s") || strings.HasSuffix(w, "ss") || strings.HasSuffix(w, "'s") || i+1 == len(words) {
		return false
	}
	return opensPhrase(words[i+1].Lower)
}

// opensPhrase reports whether a word behind another one shows that this one may be a verb: an article, a
// pronoun or an adverb.
func opensPhrase(next string) bool {
	switch next {
	case "our", "your", "his", "her", "such", "a", "an", "the", "this", "that", "these", "it", "its", "them", "their", "no", "not", "all", "any", "each", "every", "only", "how", "whether", "what":
		return true
	}
	return strings.HasSuffix(next, "ly")
}

// withoutReferences returns a sentence without the report's references at its end.
func withoutReferences(sentence string) string {
	return strings.TrimSpace(behindSentence.ReplaceAllString(sentence, ""))
}

// leadsAway matches the beginnings of sentences that send their reader elsewhere.
var leadsAway = regexp.MustCompile(`(?i)^\W*(?:(?:please |also |and )?(?:see|refer to|consult|visit|check out|have a look at|siehe|vgl\.?|voir)\s|(?:read|learn|find out) more\b|for (?:more|further|additional|full|the full|a full|details|instructions|examples?|information)\b[^.]*\b(?:see|refer|visit|read|consult|check)\b|(?:more|further) (?:details|information|examples?|on this)\b[^.]*\b(?:in|at|see|below|here)\b|to learn more\b)`)

// pointsAway reports whether a sentence says nothing but where else to read.
func pointsAway(sentence string) bool { return leadsAway.MatchString(sentence) }

// elsewhere matches words of sentences that need what stands around them.
var elsewhere = regexp.MustCompile(`^(?:see|as (?:shown|described|noted|mentioned|above|before|a (?:further|second|final|last|result|consequence))|for (?:example|instance)|the following|in (?:this|that|these|those|such|either|both|contrast|addition|the (?:former|latter|first|second|same)|other words)|` +
	`for (?:this|that|these|those)|by (?:this|that|contrast|doing)|with (?:this|that|these)|to (?:do|achieve|address|solve) (?:this|that|so)|on the other hand|once (?:this|that|these)|after (?:this|that)|because (?:it|they|of (?:this|that))|since (?:it|they)|if (?:so|not|instead|this|that|these|it|they)|when (?:this|that|it|they)|` +
	`the (?:same|former|latter|other|only|second|third|next|last|previous|above|rest|reason|idea|result|first (?:is|one)|main (?:reason|advantage|drawback|downside))|another|one (?:is|of these|such|option|reason|way|possible|alternative)|a (?:second|third|similar|further|drawback|downside) |both (?:are|of|were|have))\b` +
	`|\bdo(?:es|ing)? so\b|\b(?:the|this|these) (?:section|chapter|page|example|rfc|document|proposal|appendix|memo|list|figure|table|diagram|snippet|step|plot|plots|option|approach|case|way|problem|issue|situation|behaviou?r|change|feature|mechanism|method|design)s?\b` +
	`|\b(?:above|below)(?:[.,)]|$)|\b(?:specified|described|mentioned|listed|shown|defined|discussed|given|noted|outlined) (?:above|below|here|earlier|previously)\b|\bthese\b|\bthe (?:following|above)\b|\b(?:handles|does|means|solves|avoids|causes|requires|allows|enables|prevents|achieves|makes|fixes|addresses|in) this(?:[.,;]| and\b| by\b| with\b|$)|\bthis way\b`)

// pointsBack reports whether a sentence begins with a word that stands for something before
// it, or speaks of what stands elsewhere.
func pointsBack(sentence string) bool {
	lower := strings.ToLower(strings.TrimLeft(withoutReferences(sentence), "\"'“‘*_ "))
	if elsewhere.MatchString(lower) {
		return true
	}

	word, _, _ := strings.Cut(lower, " ")
	switch strings.TrimRight(word, ",") {
	case "this", "these", "those", "that", "it", "its", "they", "their", "them", "he", "she", "his", "her", "such", "however", "therefore", "thus", "hence", "moreover",
		"furthermore", "also", "but", "and", "or", "so", "then", "here", "there's", "it's", "instead", "otherwise", "additionally", "consequently", "similarly",
		"likewise", "meanwhile", "nevertheless", "nonetheless", "alternatively", "conversely", "finally", "lastly", "secondly", "thirdly", "next", "again", "yet", "still",
		"that's", "accordingly", "afterwards", "together", "neither", "rather", "compounding", "unfortunately", "fortunately", "luckily":
		return true
	}
	return false
}

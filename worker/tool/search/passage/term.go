package passage

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
	"golang.org/x/text/unicode/norm"

	"github.com/coditect/mapreduce/api/shorten"
)

// Terms are what passages are found by. There are three kinds of them, told apart by their
// first byte, so that none is taken for another:
//
//	e…  the stem of a word of letters a to z, in a passage that is not in another language
//	x…  any other word as it is, or two neighbouring characters of a script without spaces
//	s…  one character of such a script
//
// Case, marks on Latin and Greek letters, and forms of width are no part of a term.
type Terms struct {
	Words   []string // of the kinds e and x, in the order of the text; the length of a passage is their number
	Singles []string // of the kind s
}

const (
	stemKind   = "e"
	wordKind   = "x"
	singleKind = "s"
)

// IsSingle reports whether a term is among Terms.Singles.
func IsSingle(term string) bool { return strings.HasPrefix(term, singleKind) }

// TermsOf returns the terms of a passage.
func TermsOf(text string) Terms {
	var t Terms
	words := wordsOf(text)
	stems := !isForeign(words)
	for _, w := range words {
		switch {
		case w.unspaced:
			t.addUnspaced(w.text)
		case stems && isPlain(w.text):
			t.Words = append(t.Words, stemKind+stemOf(w.text))
		default:
			t.Words = append(t.Words, wordKind+w.text)
		}
	}
	return t
}

// addUnspaced adds the terms of characters without a space between them.
func (t *Terms) addUnspaced(text string) {
	last := ""
	for _, r := range text {
		one := string(r)
		t.Singles = append(t.Singles, singleKind+one)
		if last != "" {
			t.Words = append(t.Words, wordKind+last+one)
		}
		last = one
	}

	if last == text { // nothing precedes it
		t.Words = append(t.Words, wordKind+text)
	}
}

// A Query is a question, or words to search for, as terms. No character of it has a meaning
// of its own.
type Query struct {
	// Words are the words of the question, each once. Each is a sorted list of terms any of
	// which stands for it.
	Words [][]string
}

// QueryOf returns the query of a text. Words that say nothing, such as "the", are left out
// unless there are no others.
func QueryOf(text string) Query {
	var all, telling [][]string
	seen := make(map[string]int) // a term that names a word, with the word's number in all
	for _, w := range wordsOf(text) {
		for _, terms := range queryTerms(w) {
			if i, ok := seen[terms[0]]; ok {
				all[i] = append(all[i], terms[1:]...)
				continue
			}
			seen[terms[0]] = len(all)
			all = append(all, terms)
		}
	}

	for i := range all {
		slices.Sort(all[i])
		all[i] = slices.Compact(all[i])
		if !slices.ContainsFunc(all[i], func(t string) bool { return silent[t] }) {
			telling = append(telling, all[i])
		}
	}

	if len(telling) == 0 {
		telling = all
	}
	slices.SortFunc(telling, slices.Compare)
	return Query{Words: telling}
}

// queryTerms returns the terms that stand for each word in a run of characters.
func queryTerms(w word) [][]string {
	if !w.unspaced {
		if isPlain(w.text) {
			return [][]string{{stemKind + stemOf(w.text), wordKind + w.text}}
		}
		return [][]string{{wordKind + w.text}}
	}

	if utf8.RuneCountInString(w.text) == 1 {
		return [][]string{{singleKind + w.text}}
	}

	var t Terms
	t.addUnspaced(w.text)
	out := make([][]string, len(t.Words))
	for i, term := range t.Words {
		out[i] = []string{term}
	}
	return out
}

// A word is a run of letters and digits, in its folded form.
type word struct {
	text     string
	unspaced bool // its script has no spaces between words
	marked   bool // it has letters other than a to z, or had before it was folded
}

// maxTermBytes bounds a word: what is longer is no word, and is found by its beginning.
const maxTermBytes = 100

// wordsOf returns the words of a text.
func wordsOf(text string) []word {
	var all []word
	text = norm.NFKC.String(text)

	start, unspaced := -1, false
	end := func(at int) {
		if start >= 0 {
			all = appendWord(all, text[start:at], unspaced)
		}
		start = -1
	}

	for at, r := range text {
		switch {
		case !isWordRune(r) && !(start >= 0 && unicode.Is(unicode.Mn, r)):
			// An apostrophe within a word does not end it.
			if !isApostrophe(text, start, at, r) {
				end(at)
			}
		case start < 0:
			start, unspaced = at, isUnspaced(r)
		case unspaced != isUnspaced(r) && !unicode.IsMark(r):
			end(at)
			start, unspaced = at, isUnspaced(r)
		}
	}

	end(len(text))
	return all
}

// isApostrophe reports whether a character is within a word as in "don't" and "Smith's".
func isApostrophe(text string, start, at int, r rune) bool {
	if start < 0 || r != '\'' && r != '’' {
		return false
	}
	rest := text[at+utf8.RuneLen(r):]
	n := strings.IndexFunc(rest[:min(len(rest), 8)], func(r rune) bool { return !unicode.IsLetter(r) })
	if n < 0 && len(rest) < 8 {
		n = len(rest)
	}
	return n > 0 && slices.Contains([]string{"s", "t", "d", "m", "re", "ve", "ll"}, rest[:n])
}

// appendWord appends a word in its folded form.
func appendWord(all []word, text string, unspaced bool) []word {
	if i := strings.IndexAny(text, "'’"); i >= 0 {
		text = text[:i]
	}

	marked := strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
	text = foldWord(text)
	if len(text) > maxTermBytes && !unspaced {
		text = text[:shorten.Boundary(text, maxTermBytes)]
	}

	if text == "" {
		return all
	}
	return append(all, word{text, unspaced, marked})
}

// foldWord returns a word in small letters, and Latin and Greek letters without their marks,
// as people who search often leave them out.
func foldWord(text string) string {
	plain := true
	for i := range len(text) {
		if c := text[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			plain = false
			break
		}
	}

	if plain {
		return text
	}

	var b strings.Builder
	last := rune(0) // the last letter
	for _, r := range norm.NFD.String(strings.ToLower(text)) {
		switch {
		case unicode.Is(unicode.Mn, r) && (unicode.In(last, unicode.Latin, unicode.Greek) || isPoint(r)):
			continue
		case r == 'ß':
			b.WriteString("ss")
		case r == 'ς':
			b.WriteRune('σ')
		default:
			b.WriteRune(r)
		}
		last = r
	}

	return norm.NFC.String(b.String())
}

// isPoint reports whether a mark is one of the vowels that Arabic and Hebrew are mostly
// written without.
func isPoint(r rune) bool { return 0x064B <= r && r <= 0x0652 || 0x0591 <= r && r <= 0x05C7 }

func isWordRune(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mc, r)
}

// isUnspaced reports whether a character is of a script in which words follow each other
// without spaces, or are joined with what follows them.
func isUnspaced(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) || r == 'ー'
}

// isPlain reports whether a word consists of the letters a to z.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < 'a' || c > 'z' {
			return false
		}
	}
	return true
}

// stemOf returns the stem of an English word, by the Snowball project's rules.
func stemOf(text string) string {
	env := snowballstem.NewEnv(text)
	english.Stem(env)
	return env.Current()
}

// isForeign reports whether the words are of another language than English that is written
// in Latin letters: it has more of the small words of others than of those of English, or
// many letters with marks.
func isForeign(words []word) bool {
	ours, others, plain, marked := 0, 0, 0, 0
	for _, w := range words {
		switch {
		case w.unspaced:
			continue
		case foreignWords[w.text]:
			others++
		case englishWords[w.text]:
			ours++
		}

		if w.marked {
			marked++
		} else if isPlain(w.text) {
			plain++
		}
	}

	return others >= 2 && others > ours || ours == 0 && marked*4 > plain
}

func setOf(texts ...string) map[string]bool {
	set := make(map[string]bool)
	for _, text := range texts {
		for w := range strings.FieldsSeq(text) {
			set[w] = true
		}
	}
	return set
}

// englishWords are small words of English which are rare in other languages.
var englishWords = setOf(`the of and to that is for with as by are this from be it its or which have has had was were
	their they his her not but we you he she at been will would can could should may than then there these those into
	about what when who how all more other some such only also`)

// foreignWords are small words of other languages in their folded form, none of them English.
var foreignWords = setOf(
	`der und das den von zu mit sich des dem auf fur ist im nicht ein eine einer einem einen auch werden aus dass sie nach wird bei wie oder uber zum zur sind als es`,
	`de la le et les du une que est pour qui dans par pas au aux sur se ce il sont avec ou cette elle nous vous ont etre`,
	`el y los del las por para con su al lo como mas pero sus esta entre cuando muy sobre tambien`,
	`di e che per una sono ho ma non si da della nel alla dei gli delle piu anche questo`,
	`o do em um com nao uma os na mais dos foi ao ele tem seu sua pelo`,
	`het een en van te dat niet zijn op aan voor er maar om ook bij naar uit worden wordt`,
	`w na sie z ze jest jak po przez od nie ktory`,
	`och att det som ar av pa med till inte ett jag og til ikke`,
	`ja ei oli kuin mutta ve bir bu icin ile yang dan itu dengan untuk dari`,
)

// silent are the terms of English words that say nothing of what is asked for.
var silent = func() map[string]bool {
	set := make(map[string]bool)
	for w := range setOf(`a an the of and or to in on at by for from with as is are was were be been being am do does did
		has have had it its this that these those there their they them he she his her we our you your i my me us
		what which who whom whose when where why how can could should would will shall may might must
		not no nor so if than then but about into over under between also any some such each other
		describe explain discuss tell please give`) {
		set[stemKind+stemOf(w)] = true
	}
	return set
}()

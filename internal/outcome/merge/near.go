package merge

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/coditect/mapreduce/api/schema"
)

// A Pair is two entities, by name, the smaller first.
type Pair struct{ A, B string }

func (p Pair) compare(q Pair) int {
	return cmp.Or(strings.Compare(p.A, q.A), strings.Compare(p.B, q.B))
}

// Near finds entities that may be the same although their keys differ. It returns
// the pairs that are the same but for spelling or a slip, and the pairs that the
// rules leave open. Both depend on the set of names alone.
//
// Only texts can be near: numbers, dates, choices and addresses of any kind are
// equal or not, and so are the numbers within texts. Near compares names that
// share the beginning or the end of a word. Where very many names share it, Near
// compares only those that are close in sorted order.
func Near(s *schema.Schema, names []string) (same, open []Pair) {
	n := &keyBlocks{blocks: make(map[string][]int)}

	// Names are sorted, so that the outcome depends on the set alone.
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if parts, ok := keyParts(name); ok && len(parts) == len(s.Key) {
			n.addKey(s, name, parts)
		}
	}

	for _, block := range n.blocks {
		n.visitPairs(block, func(i, j int) {
			pair := Pair{n.keys[min(i, j)].name, n.keys[max(i, j)].name}
			switch compareKeys(&n.keys[i], &n.keys[j]) {
			case equal:
				same = append(same, pair)
			case doubtful:
				open = append(open, pair)
			case different:
			}
		})
	}

	return uniquePairs(same), uniquePairs(open)
}

// uniquePairs sorts pairs and removes duplicates: several blocks may yield the same
// pair.
func uniquePairs(pairs []Pair) []Pair {
	slices.SortFunc(pairs, Pair.compare)
	return slices.Compact(pairs)
}

// Clusters joins pairs into clusters, and returns for each name the smallest name
// of its cluster.
func Clusters(pairs []Pair) map[string]string {
	parent := make(map[string]string)
	var root func(name string) string
	root = func(name string) string {
		above, ok := parent[name]
		if !ok || above == name {
			parent[name] = name
			return name
		}

		// Each name on the way is put right below the root, so that later searches are
		// short.
		top := root(above)
		parent[name] = top
		return top
	}

	// The smaller root stays, so that the outcome does not depend on the order of the
	// pairs.
	for _, p := range pairs {
		a, b := root(p.A), root(p.B)
		parent[max(a, b)] = min(a, b)
	}

	for name := range parent {
		parent[name] = root(name)
	}
	return parent
}

// keyParts returns the key values in the name of an entity.
func keyParts(name string) ([]string, bool) {
	text, ok := strings.CutPrefix(name, entityKey)
	if !ok {
		return nil, false
	}
	var parts []string
	return parts, json.Unmarshal([]byte(text), &parts) == nil
}

// A key is the key of an entity, prepared for comparison.
type key struct {
	name    string
	exact   string // the part that must be equal
	texts   []text // the texts, by field
	sortKey string // for sorting within a block
}

// A text is a text value of a key.
type text struct {
	words  []string // sorted
	joined string   // the words in their order, without spaces
}

// keyBlocks groups keys into blocks, so that near keys share a block.
type keyBlocks struct {
	keys   []key
	blocks map[string][]int
}

// Bounds of a block. In a block of more than maxBlock names, each is compared only
// with the next neighbourWindow in sorted order.
const (
	maxBlock        = 100
	neighbourWindow = 10
	maxShort        = 6 // letters of a word that counts as short
)

func (n *keyBlocks) addKey(s *schema.Schema, name string, parts []string) {
	k := key{name: name}

	for i, path := range s.Key {
		if p := s.Field(path); p == nil || p.Type != schema.String && p.Type != schema.Any || p.Enum != nil || p.Format != "" {
			k.exact += parts[i] + "\x00"
			continue
		}

		t, numbers := textOf(parts[i])
		k.exact += numbers + "\x00"
		k.texts = append(k.texts, t)
		k.sortKey += strings.Join(t.words, " ") + "\x00"
	}

	n.keys = append(n.keys, k)

	// A key joins a block once, however many of its words share an affix.
	at := make(map[string]bool)
	for _, t := range k.texts {
		for _, w := range append(t.words, t.joined) {
			for _, block := range wordAffixes([]rune(w)) {
				at[block] = true
			}
		}
	}

	for block := range at {
		n.blocks[k.exact+block] = append(n.blocks[k.exact+block], len(n.keys)-1)
	}
}

// wordAffixes returns the first and the last letters of a word, fewer for a short
// word. Two words that differ by one slip share at least one of these.
func wordAffixes(w []rune) []string {
	var all []string
	for _, m := range []int{2, 3} {
		if m == 2 && len(w) <= maxShort || m == 3 && len(w) >= maxShort {
			m = min(m, len(w))
			all = append(all, "^"+string(w[:m]), "$"+string(w[len(w)-m:]))
		}
	}
	return all
}

// visitPairs visits the pairs of a block.
func (n *keyBlocks) visitPairs(block []int, visit func(i, j int)) {
	reach := len(block)
	// Neighbours in the order of their texts are the most likely to be near each other.
	if len(block) > maxBlock {
		reach = neighbourWindow
		slices.SortFunc(block, func(i, j int) int {
			return cmp.Or(strings.Compare(n.keys[i].sortKey, n.keys[j].sortKey), strings.Compare(n.keys[i].name, n.keys[j].name))
		})
	}

	for k, i := range block {
		for _, j := range block[k+1 : min(len(block), k+1+reach)] {
			visit(i, j)
		}
	}
}

// textOf returns the words of a text without accents, and its numbers in order,
// which must be equal. A word with a digit is a number.
func textOf(s string) (t text, numbers string) {
	s = strings.Map(func(c rune) rune {
		if unicode.Is(unicode.Mn, c) || c == '\'' || c == '’' || c == '.' {
			return -1
		}
		return c
	}, norm.NFD.String(s))

	for _, w := range strings.FieldsFunc(s, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsNumber(c) }) {
		if strings.ContainsFunc(w, unicode.IsNumber) {
			numbers += w + " "
			continue
		}
		t.words = append(t.words, w)
	}

	// The joined words keep their order; the list is sorted for the comparison.
	t.joined = strings.Join(t.words, "")
	slices.Sort(t.words)
	return t, numbers
}

// A similarity is the outcome of comparing two texts.
type similarity int

const (
	different similarity = iota
	doubtful             // the rules leave it open
	equal
)

// compareKeys compares all texts of two keys. The least similar pair decides.
func compareKeys(a, b *key) similarity {
	if a.exact != b.exact {
		return different
	}

	all := equal
	for i := range a.texts {
		all = min(all, compareTexts(&a.texts[i], &b.texts[i]))
	}
	return all
}

// compareTexts compares two texts word by word, in any order. Texts that differ in
// one word are as similar as these words. Texts that differ in two words are
// doubtful at best. If one text has one word more, they are doubtful if they share
// another word.
func compareTexts(x, y *text) similarity {
	if x.joined == y.joined {
		return equal // at most the spaces differ
	}

	a, b, common := differingWords(x.words, y.words)
	switch {
	case a.n+b.n == 0:
		return equal
	case a.n == 1 && b.n == 1:
		return compareWord(a.words[0], b.words[0])
	case common && a.n+b.n == 1:
		return doubtful
	case a.n == 2 && b.n == 2:
		straight := min(compareWord(a.words[0], b.words[0]), compareWord(a.words[1], b.words[1]))
		crossed := min(compareWord(a.words[0], b.words[1]), compareWord(a.words[1], b.words[0]))
		return min(max(straight, crossed), doubtful)
	default:
		return different
	}
}

// unmatchedWords are the words of one text that another lacks: how many, and the
// first.
type unmatchedWords struct {
	n     int
	words [2]string
}

func (r *unmatchedWords) add(word string) {
	if r.n < len(r.words) {
		r.words[r.n] = word
	}
	r.n++
}

// differingWords returns the words that two sorted lists do not share, and
// whether they share any.
func differingWords(a, b []string) (onlyA, onlyB unmatchedWords, common bool) {
	// Both lists are sorted, so one pass finds the words that stand in one of them alone.
	for len(a)+len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
			onlyA.add(a[0])
			a = a[1:]
		case len(a) == 0 || a[0] > b[0]:
			onlyB.add(b[0])
			b = b[1:]
		default:
			common = true
			a, b = a[1:], b[1:]
		}
	}
	return onlyA, onlyB, common
}

// The least length of two words that may be the same although they differ.
const (
	minSlip         = 5  // by a letter left out, doubled or exchanged
	minSubstitution = 9  // by one letter
	minTwoSlips     = 12 // by two letters
	minDoubtful     = 4  // by one letter, doubtful
)

// compareWord compares two words by the number of letters deleted, inserted,
// substituted or transposed between them.
func compareWord(a, b string) similarity {
	x, y := []rune(a), []rune(b)
	n := max(len(x), len(y))

	switch d := editDistance(x, y, 2); {
	case d == 1 && (n >= minSubstitution || n >= minSlip && isSlip(x, y)):
		return equal
	case d == 2 && n >= minTwoSlips:
		return equal
	case d == 1 && n >= minDoubtful, d == 2 && n >= minSubstitution:
		return doubtful
	default:
		return different
	}
}

// isSlip reports whether two words at a distance of 1 differ by a slip of writing
// or reading. A substituted letter is a slip only if the two letters look alike.
func isSlip(x, y []rune) bool {
	if len(x) != len(y) {
		return true
	}

	i := 0
	for x[i] == y[i] {
		i++
	}

	if i+1 < len(x) && x[i+1] != y[i+1] {
		return true // exchanged
	}
	return lookAlike(x[i], y[i])
}

// lookAlike reports whether two letters are easily confused.
func lookAlike(a, b rune) bool {
	for _, group := range [...]string{"ilj", "oec", "uv", "nh", "ao"} {
		if strings.ContainsRune(group, a) && strings.ContainsRune(group, b) {
			return true
		}
	}
	return false
}

// maxWord bounds the words that are compared, in letters.
const maxWord = 64

// editDistance returns the optimal string alignment distance of two words. It
// returns more than most if the distance is larger or a word is too long.
func editDistance(x, y []rune, most int) int {
	if len(x)-len(y) > most || len(y)-len(x) > most || max(len(x), len(y)) > maxWord {
		return most + 1
	}

	// Three rows are enough: an exchange of letters looks back by two.
	var rows [3][maxWord + 1]int
	for j := range y {
		rows[0][j+1] = j + 1
	}

	for i := range x {
		before, last, row := &rows[(i+2)%3], &rows[i%3], &rows[(i+1)%3]

		row[0] = i + 1
		for j := range y {
			changed := 1
			if x[i] == y[j] {
				changed = 0
			}

			d := min(row[j]+1, last[j+1]+1, last[j]+changed)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				d = min(d, before[j-1]+1)
			}
			row[j+1] = d
		}
	}

	return rows[len(x)%3][len(y)]
}

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

// Near compares entities whose names are keys, as far as they may be one. It
// returns the pairs that are, written with another spelling or a slip, and those
// that the rules leave open. Both depend on the set of names alone.
//
// Of keys that differ at all only texts can be near: numbers, dates, choices and
// addresses of any kind are equal or not, and so are the numbers within texts.
// Pairs are sought among names that have the begin or the end of a word in common;
// where very many have it, only among those that are neighbours in order.
func Near(s *schema.Schema, names []string) (same, open []Pair) {
	n := &neighbours{blocks: make(map[string][]int)}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if parts, ok := keyParts(name); ok && len(parts) == len(s.Key) {
			n.add(s, name, parts)
		}
	}
	for _, block := range n.blocks {
		n.pairs(block, func(i, j int) {
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
	return once(same), once(open)
}

// once sorts pairs and keeps each once: it may have been found in several blocks.
func once(pairs []Pair) []Pair {
	slices.SortFunc(pairs, Pair.compare)
	return slices.Compact(pairs)
}

// Clusters returns for each name in pairs that are one the smallest name of its
// cluster.
func Clusters(pairs []Pair) map[string]string {
	parent := make(map[string]string)
	var root func(name string) string
	root = func(name string) string {
		above, ok := parent[name]
		if !ok || above == name {
			parent[name] = name
			return name
		}
		top := root(above)
		parent[name] = top
		return top
	}
	for _, p := range pairs {
		a, b := root(p.A), root(p.B)
		parent[max(a, b)] = min(a, b)
	}
	for name := range parent {
		parent[name] = root(name)
	}
	return parent
}

// keyParts returns the values of the key that an entity is named by.
func keyParts(name string) ([]string, bool) {
	text, ok := strings.CutPrefix(name, entityKey)
	if !ok {
		return nil, false
	}
	var parts []string
	return parts, json.Unmarshal([]byte(text), &parts) == nil
}

// A key is an entity's, made ready to be compared.
type key struct {
	name  string
	exact string // what has to be equal
	texts []text // the rest, by field
	order string // by which it is sorted among others
}

// A text is one of a key.
type text struct {
	words  []string // sorted
	joined string   // the same as they stand
}

// neighbours are keys by what near ones have in common.
type neighbours struct {
	keys   []key
	blocks map[string][]int
}

// Bounds of a block: one of more names is gone through in order, and each compared
// with the next few.
const (
	maxBlock = 100
	window   = 10
	maxShort = 6 // letters of a word that counts as short
)

func (n *neighbours) add(s *schema.Schema, name string, parts []string) {
	k := key{name: name}
	for i, path := range s.Key {
		if p := s.Field(path); p == nil || p.Type != schema.String || p.Enum != nil || p.Format != "" {
			k.exact += parts[i] + "\x00"
			continue
		}
		t, numbers := textOf(parts[i])
		k.exact += numbers + "\x00"
		k.texts = append(k.texts, t)
		k.order += strings.Join(t.words, " ") + "\x00"
	}
	n.keys = append(n.keys, k)
	at := make(map[string]bool)
	for _, t := range k.texts {
		for _, w := range append(t.words, t.joined) {
			for _, block := range affixes([]rune(w)) {
				at[block] = true
			}
		}
	}
	for block := range at {
		n.blocks[k.exact+block] = append(n.blocks[k.exact+block], len(n.keys)-1)
	}
}

// affixes returns what a word has in common, in one of them at least, with each
// that differs from it by one slip: its first and its last letters, fewer of a
// short word.
func affixes(w []rune) []string {
	var all []string
	for _, m := range []int{2, 3} {
		if m == 2 && len(w) <= maxShort || m == 3 && len(w) >= maxShort {
			m = min(m, len(w))
			all = append(all, "^"+string(w[:m]), "$"+string(w[len(w)-m:]))
		}
	}
	return all
}

// pairs visits the pairs of a block.
func (n *neighbours) pairs(block []int, visit func(i, j int)) {
	reach := len(block)
	if len(block) > maxBlock {
		reach = window
		slices.SortFunc(block, func(i, j int) int {
			return cmp.Or(strings.Compare(n.keys[i].order, n.keys[j].order), strings.Compare(n.keys[i].name, n.keys[j].name))
		})
	}
	for k, i := range block {
		for _, j := range block[k+1 : min(len(block), k+1+reach)] {
			visit(i, j)
		}
	}
}

// textOf returns the words of a text without accents, and what of it must be equal:
// its numbers in order. A word with a digit is a number.
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
	t.joined = strings.Join(t.words, "")
	slices.Sort(t.words)
	return t, numbers
}

// A likeness is how near two texts are.
type likeness int

const (
	different likeness = iota
	doubtful           // the rules leave it open
	equal
)

// compareKeys compares all texts of two keys: the least like ones decide.
func compareKeys(a, b *key) likeness {
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
// one word are as like as those words are, in two words at best doubtful; one with
// a word more is doubtful if they have another in common.
func compareTexts(x, y *text) likeness {
	if x.joined == y.joined {
		return equal // cut into words elsewhere, if at all
	}
	a, b, common := apart(x.words, y.words)
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

// A rest is words that one text has and another does not: how many, and the first.
type rest struct {
	n     int
	words [2]string
}

func (r *rest) add(word string) {
	if r.n < len(r.words) {
		r.words[r.n] = word
	}
	r.n++
}

// apart returns the words that two sorted lists do not share, and whether they
// share any.
func apart(a, b []string) (onlyA, onlyB rest, common bool) {
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

// Lengths from which words may be one that differ.
const (
	minSlip   = 5  // in a letter that was left out, doubled, or changed places
	minOther  = 9  // in one letter
	minTwo    = 12 // in two
	minUnsure = 4  // in one letter, perhaps
)

// compareWord compares two words by how many letters were left out, put in, put in
// another's place or exchanged with the next to make one of the other.
func compareWord(a, b string) likeness {
	x, y := []rune(a), []rune(b)
	n := max(len(x), len(y))
	switch d := distance(x, y, 2); {
	case d == 1 && (n >= minOther || n >= minSlip && slip(x, y)):
		return equal
	case d == 2 && n >= minTwo:
		return equal
	case d == 1 && n >= minUnsure, d == 2 && n >= minOther:
		return doubtful
	default:
		return different
	}
}

// slip reports whether two words at a distance of 1 differ by what happens in
// writing or reading: all but one letter in another's place, unless those look
// alike.
func slip(x, y []rune) bool {
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

// lookAlike reports whether one letter is easily read for another.
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

// distance is the optimal string alignment distance of two words, or more than
// most if it is more than that, or if they are too long.
func distance(x, y []rune, most int) int {
	if len(x)-len(y) > most || len(y)-len(x) > most || max(len(x), len(y)) > maxWord {
		return most + 1
	}
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

// Package refs names citations. Internally an id is a hash of the cited text; for
// people and models it is a short REF id. The package finds REF ids in prose, and
// turns them into the numbers of a bibliography and back. It also describes the sources
// that a text refers to: it reads who wrote what and when out of the metadata of documents,
// and writes the entries of a bibliography as Markdown, CSL-JSON and BibTeX.
//
// It is pure and imports nothing of the project.
package refs

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"iter"
	"regexp"
	"slices"
	"strings"
)

// An ID is the identity of a citation: the SHA-256 of the cited text and its place.
// Equal citations have equal ids, whoever found them, when, and in which order.
type ID [sha256.Size]byte

// A DocumentHash is the SHA-256 of a document's content.
type DocumentHash [sha256.Size]byte

// domain separates these hashes from all others. It ends in a version.
const domain = "coditect/mapreduce citation 1\x00"

// New returns the id of the citation of quote, which stands at the bytes
// [start, end) of a document. Fields have fixed lengths but for the last, so no
// two citations hash the same bytes.
func New(doc DocumentHash, start, end int, quote string) ID {
	h := sha256.New()
	h.Write([]byte(domain))
	h.Write(doc[:])
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(start)))
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(end)))
	h.Write([]byte(quote))
	return ID(h.Sum(nil))
}

// Compare orders ids by their bytes.
func Compare(a, b ID) int { return slices.Compare(a[:], b[:]) }

// String returns the id in full, in hexadecimal.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Spellings begin with Mark, followed by at least MinDigits hexadecimal digits.
const (
	Mark      = "REF_"
	MinDigits = 8
)

// A Spelling spells the ids of a set: each as Mark and the fewest digits, at least
// MinDigits, with which no other id of the set begins. So no spelling begins with
// another, and none depends on the order of the ids. It needs 8 bytes an id.
type Spelling struct {
	prefixes        []uint64 // of all ids, sorted, each once
	sharedPrefixIDs []ID     // ids that share their prefix with another, sorted
}

// prefixOf returns the first 64 bits of id.
func prefixOf(id ID) uint64 { return binary.BigEndian.Uint64(id[:8]) }

// prefixDigits is how many hexadecimal digits a prefix holds.
const prefixDigits = 16

// NewSpelling returns the spelling of the set ids, which may hold an id more than
// once. It iterates over ids a second time if some share their first 64 bits, as
// equal ids do. Both times the sequence must hold the same ids.
func NewSpelling(ids iter.Seq[ID]) *Spelling {
	s := &Spelling{}
	for id := range ids {
		s.prefixes = append(s.prefixes, prefixOf(id))
	}

	slices.Sort(s.prefixes)

	var shared []uint64
	for i, p := range s.prefixes {
		if i > 0 && s.prefixes[i-1] == p {
			shared = append(shared, p)
		}
	}

	// Only ids that share a prefix have to be held in full, and most sets have none.
	if len(shared) == 0 {
		return s
	}

	s.prefixes = slices.Compact(s.prefixes)
	s.sharedPrefixIDs = idsSharingPrefix(ids, slices.Compact(shared))
	return s
}

// idsSharingPrefix returns the different ids whose common prefix is in shared,
// sorted.
func idsSharingPrefix(ids iter.Seq[ID], shared []uint64) []ID {
	first := make([]ID, len(shared)) // the first id of each prefix
	seen := make([]bool, len(shared))
	differ := map[ID]bool{}
	for id := range ids {
		i, found := slices.BinarySearch(shared, prefixOf(id))
		switch {
		case !found:
		case !seen[i]:
			first[i], seen[i] = id, true
		case first[i] != id:
			differ[first[i]], differ[id] = true, true
		}
	}

	// Prefixes of which all ids are equal have none in differ.
	out := make([]ID, 0, len(differ))
	for id := range differ {
		out = append(out, id)
	}
	slices.SortFunc(out, Compare)

	return out
}

// Spell returns the spelling of id, which must be in the set.
func (s *Spelling) Spell(id ID) string {
	digits := MinDigits
	p := prefixOf(id)

	// In sorted order the neighbours share the most digits.
	if i, found := slices.BinarySearch(s.prefixes, p); found {
		for _, k := range [...]int{i - 1, i + 1} {
			if k >= 0 && k < len(s.prefixes) {
				digits = max(digits, sharedDigits(p, s.prefixes[k])+1)
			}
		}
	}

	if i, found := slices.BinarySearchFunc(s.sharedPrefixIDs, id, Compare); found {
		for _, k := range [...]int{i - 1, i + 1} {
			if k >= 0 && k < len(s.sharedPrefixIDs) {
				digits = max(digits, sharedIDDigits(id, s.sharedPrefixIDs[k])+1)
			}
		}
	}

	return Mark + id.String()[:digits]
}

// sharedDigits returns how many first digits two different prefixes share.
func sharedDigits(a, b uint64) int {
	n := 0
	for n < prefixDigits && a>>(60-4*n) == b>>(60-4*n) {
		n++
	}
	return n
}

// sharedIDDigits returns how many first digits two different ids share.
func sharedIDDigits(a, b ID) int {
	x, y := a.String(), b.String()
	n := 0
	for n < len(x)-1 && x[n] == y[n] {
		n++
	}
	return n
}

// A Named is an id with its spelling.
type Named struct {
	ID   ID
	Name string
}

// All returns the ids with their spellings in hash order, each once. It is for
// sets that fit in memory, such as the citations of one prompt.
func All(ids iter.Seq[ID]) []Named {
	set := slices.Collect(ids)
	slices.SortFunc(set, Compare)
	set = slices.Compact(set)

	s := NewSpelling(slices.Values(set))
	named := make([]Named, len(set))
	for i, id := range set {
		named[i] = Named{ID: id, Name: s.Spell(id)}
	}
	return named
}

// Parse returns the id that a name spells in full.
func Parse(name string) (ID, bool) {
	var id ID
	digits, ok := strings.CutPrefix(Canonical(name), Mark)
	if !ok || len(digits) != hex.EncodedLen(len(id)) {
		return id, false
	}

	_, err := hex.Decode(id[:], []byte(digits))
	return id, err == nil
}

// Full returns the name that spells the id in full.
func (id ID) Full() string { return Mark + id.String() }

// inFull matches an id as Full spells it.
var inFull = regexp.MustCompile(Mark + `[0-9a-f]{64}`)

// FullIDs returns the ids that a text holds in full, in the order of the text, with
// repetitions.
func FullIDs(text string) (ids []ID) {
	for _, name := range inFull.FindAllString(text, -1) {
		id, _ := Parse(name) // it has the form
		ids = append(ids, id)
	}
	return ids
}

// RespellFull returns a text with each id that it holds in full as spell says, wherever
// it stands: in code and addresses too.
func RespellFull(text string, spell func(ID) string) string {
	return inFull.ReplaceAllStringFunc(text, func(name string) string {
		id, _ := Parse(name) // it has the form
		return spell(id)
	})
}

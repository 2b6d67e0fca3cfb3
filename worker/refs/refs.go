// Package refs names citations: by what they cite inside, and by short REF ids
// where people and models read them. It finds REF ids in prose, and turns them
// into the numbers of a bibliography and back.
//
// It is pure and imports nothing of the project.
package refs

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"iter"
	"slices"
	"strings"
)

// An ID is the identity of a citation: the SHA-256 of what it cites. Equal
// citations have equal ids, whoever found them, when, and in which order.
type ID [sha256.Size]byte

// A DocumentHash is the SHA-256 of a document's content.
type DocumentHash [sha256.Size]byte

// domain keeps these hashes apart from all others. It ends in a version.
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

// A Spelling spells the ids of a set: each as Mark and as many digits, at least
// MinDigits, as no other id of the set begins with. So no spelling begins with
// another, and none depends on the order in which the ids came. It holds 8
// bytes an id.
type Spelling struct {
	prefixes []uint64 // of all ids, sorted, each once
	close    []ID     // ids that share their prefix with another, sorted
}

// prefix returns the first digits of id, those that are compared first.
func prefix(id ID) uint64 { return binary.BigEndian.Uint64(id[:8]) }

// prefixDigits is how many hexadecimal digits a prefix holds.
const prefixDigits = 16

// NewSpelling returns the spelling of the set ids, which may name an id more
// than once. It goes over ids a second time if some share their first 64 bits,
// as equal ones do; both times the sequence must hold the same ids.
func NewSpelling(ids iter.Seq[ID]) *Spelling {
	s := &Spelling{}
	for id := range ids {
		s.prefixes = append(s.prefixes, prefix(id))
	}
	slices.Sort(s.prefixes)
	var shared []uint64
	for i, p := range s.prefixes {
		if i > 0 && s.prefixes[i-1] == p {
			shared = append(shared, p)
		}
	}
	if len(shared) == 0 {
		return s
	}
	s.prefixes = slices.Compact(s.prefixes)
	s.close = closeIDs(ids, slices.Compact(shared))
	return s
}

// closeIDs returns the different ids that have a prefix in common which is in
// shared, sorted.
func closeIDs(ids iter.Seq[ID], shared []uint64) []ID {
	first := make([]ID, len(shared)) // the first id of each prefix
	seen := make([]bool, len(shared))
	differ := map[ID]bool{}
	for id := range ids {
		i, found := slices.BinarySearch(shared, prefix(id))
		switch {
		case !found:
		case !seen[i]:
			first[i], seen[i] = id, true
		case first[i] != id:
			differ[first[i]], differ[id] = true, true
		}
	}
	out := make([]ID, 0, len(differ))
	for id := range differ {
		out = append(out, id)
	}
	slices.SortFunc(out, Compare)
	return out
}

// Spell returns the spelling of id, which must be of the set.
func (s *Spelling) Spell(id ID) string {
	digits := MinDigits
	p := prefix(id)
	if i, found := slices.BinarySearch(s.prefixes, p); found {
		for _, k := range [...]int{i - 1, i + 1} {
			if k >= 0 && k < len(s.prefixes) {
				digits = max(digits, alike(p, s.prefixes[k])+1)
			}
		}
	}
	if i, found := slices.BinarySearchFunc(s.close, id, Compare); found {
		for _, k := range [...]int{i - 1, i + 1} {
			if k >= 0 && k < len(s.close) {
				digits = max(digits, alikeIDs(id, s.close[k])+1)
			}
		}
	}
	return Mark + id.String()[:digits]
}

// alike returns how many first digits two different prefixes share.
func alike(a, b uint64) int {
	n := 0
	for n < prefixDigits && a>>(60-4*n) == b>>(60-4*n) {
		n++
	}
	return n
}

// alikeIDs returns how many first digits two different ids share.
func alikeIDs(a, b ID) int {
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

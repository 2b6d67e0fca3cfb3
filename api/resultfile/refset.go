package resultfile

import (
	"crypto/sha256"
	"strconv"
	"strings"
)

// A refSet is a set of references. There may be millions: as strings they would take a hundred bytes
// each, and cost the garbage collector much. The zero value is empty.
type refSet struct {
	short map[uint32]struct{}   // the numbers of those with the fewest digits, as nearly all are
	other map[[16]byte]struct{} // the first half of the SHA-256 of each other one
}

// add adds a reference, and reports whether it is new.
func (s *refSet) add(ref string) bool {
	if n, ok := numberOf(ref); ok {
		return addKey(&s.short, n)
	}
	sum := sha256.Sum256([]byte(ref))
	return addKey(&s.other, [16]byte(sum[:16]))
}

func addKey[K comparable](set *map[K]struct{}, key K) bool {
	if _, known := (*set)[key]; known {
		return false
	}
	if *set == nil {
		*set = make(map[K]struct{})
	}
	(*set)[key] = struct{}{}
	return true
}

// shortMark and shortDigits are how nearly all references are spelt.
const (
	shortMark   = "REF_"
	shortDigits = 8
)

// numberOf returns the number of a reference that is spelt with the fewest digits. No two of these
// have the same.
func numberOf(ref string) (uint32, bool) {
	digits, ok := strings.CutPrefix(ref, shortMark)
	if !ok || len(digits) != shortDigits || strings.ContainsFunc(digits, isNoDigit) {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	return uint32(n), err == nil
}

// isNoDigit reports whether r is no digit as references have them, which are small letters.
func isNoDigit(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'f') }

package format

// raisedForms and loweredForms are the digits and signs of which there are raised and
// lowered characters. Letters are left out: few have one, and 1st with a raised st is
// written as people write it on the line.
var (
	raisedForms = map[rune]rune{
		'0': '⁰', '1': '¹', '2': '²', '3': '³', '4': '⁴', '5': '⁵', '6': '⁶', '7': '⁷', '8': '⁸', '9': '⁹',
		'+': '⁺', '=': '⁼', '(': '⁽', ')': '⁾', '-': '⁻', '−': '⁻', '–': '⁻', '‐': '⁻', '‑': '⁻',
	}
	loweredForms = map[rune]rune{
		'0': '₀', '1': '₁', '2': '₂', '3': '₃', '4': '₄', '5': '₅', '6': '₆', '7': '₇', '8': '₈', '9': '₉',
		'+': '₊', '=': '₌', '(': '₍', ')': '₎', '-': '₋', '−': '₋', '–': '₋', '‐': '₋', '‑': '₋',
	}
)

// Raise returns the raised character that looks like a digit or sign, if there is one.
func Raise(c rune) (rune, bool) {
	f, ok := raisedForms[c]
	return f, ok
}

// Lower returns the lowered character that looks like a digit or sign, if there is one.
func Lower(c rune) (rune, bool) {
	f, ok := loweredForms[c]
	return f, ok
}

// IsRaised reports whether c is a raised digit or sign.
func IsRaised(c rune) bool {
	return c == '¹' || c == '²' || c == '³' || c == '⁰' || '⁴' <= c && c <= '⁾'
}

// IsLowered reports whether c is a lowered digit or sign.
func IsLowered(c rune) bool { return '₀' <= c && c <= '₎' }

package format

import "strings"

// Words that say yes and no: in data, as programs and people write it; in documents too, in the
// languages that are read; and marks of documents, which are words of data nowhere.
const (
	yesData, noData         = "true yes y", "false no n"
	yesSwitch, noSwitch     = "1 on", "0 off" // of data alone: in a document they are numbers and words
	yesDocument, noDocument = "ja oui si sí sim да 是 はい checked", "nein non nee não nao нет 否 いいえ unchecked none"
	yesMark, noMark         = "✓ ✔ ☑ ☒ x", "✗ ✘ ☐ □"
)

// ParseBoolean reads yes or no as data has it.
func ParseBoolean(text string) (yes, ok bool) {
	return sayIn(text, yesData+" "+yesSwitch, noData+" "+noSwitch)
}

// ParseAnswer reads yes or no as a document has it: a word or a mark, folded by Fold.
func ParseAnswer(text string) (yes, ok bool) {
	return sayIn(text, yesData+" "+yesDocument+" "+yesMark, noData+" "+noDocument+" "+noMark)
}

// sayIn reports which of two lists of words has a text, and whether one has.
func sayIn(text, yes, no string) (says, ok bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	if text == "" || strings.ContainsAny(text, " \t\r\n") {
		return false, false
	}

	for word := range strings.FieldsSeq(yes) {
		if word == text {
			return true, true
		}
	}

	for word := range strings.FieldsSeq(no) {
		if word == text {
			return false, true
		}
	}

	return false, false
}

package document

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxTitle bounds the title of a document, in bytes.
const MaxTitle = 600

// cleanTitle returns a title on one line without invisible characters; "" if it is what a
// program writes into each new file, or the name of one.
func cleanTitle(title string) string {
	title = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == utf8.RuneError || !unicode.IsGraphic(r):
			return -1
		}
		return r
	}, title)

	title = strings.Join(strings.Fields(title), " ")
	if isProgramTitle(title) {
		return ""
	}

	if len(title) > MaxTitle {
		// The cut must not fall within a character.
		end := MaxTitle - len("…")
		for !utf8.RuneStart(title[end]) {
			end--
		}
		title = title[:end] + "…"
	}

	return title
}

// isProgramTitle reports whether a title is one that nobody has chosen.
func isProgramTitle(title string) bool {
	lower := strings.ToLower(title)
	switch lower {
	case "untitled", "untitled document", "unknown", "title", "slide 1", "powerpoint presentation", "powerpoint-präsentation",
		"présentation powerpoint", "presentación de powerpoint", "new document", "document", "blank":
		return true
	}

	if name, ok := strings.CutPrefix(lower, "document"); ok && strings.Trim(name, "0123456789") == "" {
		return true
	}
	if strings.HasPrefix(lower, "microsoft word - ") || strings.HasPrefix(lower, "microsoft powerpoint - ") || strings.HasPrefix(lower, "microsoft excel - ") {
		return true
	}

	// The name of a file is no title, and the id of the document has it.
	for _, extension := range []string{".doc", ".docx", ".dvi", ".indd", ".odt", ".pdf", ".ppt", ".pptx", ".qxd", ".rtf", ".tex", ".xls", ".xlsx"} {
		if strings.HasSuffix(lower, extension) {
			return true
		}
	}
	return false
}

package document

import (
	"strings"

	"github.com/coditect/mapreduce/api/shorten"
)

// MaxTitle bounds the title of a document, in bytes.
const MaxTitle = 600

// cleanTitle returns a title on one line without invisible characters; "" if it is what a
// program writes into each new file, or the name of one.
func cleanTitle(title string) string {
	title = shorten.Visible(title)
	if isProgramTitle(title) {
		return ""
	}

	return shorten.MarkedBytes(title, MaxTitle)
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

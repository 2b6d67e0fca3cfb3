package page

import "strings"

// mailNames are the names of which the header of a mail has one at least.
var mailNames = []string{"from", "to", "subject", "date", "received", "message-id"}

// ReadMailHeader returns where the header of a mail with which the text begins ends: two
// lines or more of names and values, a line that begins with white space going on
// with the value above it. It returns 0 if there is none.
func (p *Page) ReadMailHeader() int {
	names, known := 0, false
	for i, line := range p.Lines {
		text := p.Text[line.Start:line.End]
		if strings.TrimSpace(text) == "" || i > maxHeaderLines {
			break
		}
		if i > 0 && (text[0] == ' ' || text[0] == '\t') {
			continue
		}

		name, _, found := strings.Cut(text, ":")
		if !found || name == "" || strings.ContainsAny(name, " \t") {
			return 0
		}

		names++
		for _, n := range mailNames {
			known = known || strings.EqualFold(name, n)
		}
	}

	if names < 2 || !known {
		// One known name keeps any other text with colons from passing for a mail.
		return 0
	}

	for _, line := range p.Lines {
		if strings.TrimSpace(p.Text[line.Start:line.End]) == "" {
			return line.Start
		}
	}

	return len(p.Text)
}

// maxHeaderLines bounds the header of a mail.
const maxHeaderLines = 500

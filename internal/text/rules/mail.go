package rules

import (
	"strings"

	"github.com/coditect/mapreduce/internal/text/rules/form"
)

// mailNames are the names of which the header of a mail has one at least.
var mailNames = []string{"from", "to", "subject", "date", "received", "message-id"}

// readMailHeader returns where the header of a mail with which the text begins ends: two
// lines or more of names and values, a line that begins with white space going on
// with the value above it. It returns 0 if there is none.
func (d *document) readMailHeader() int {
	names, known := 0, false
	for i, line := range d.lines {
		text := d.text[line.Start:line.End]
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

	for _, line := range d.lines {
		if strings.TrimSpace(d.text[line.Start:line.End]) == "" {
			return line.Start
		}
	}

	return len(d.text)
}

// maxHeaderLines bounds the header of a mail.
const maxHeaderLines = 500

// endOfFolded returns where the value of a label in the header of a mail ends, which
// may go on in lines that begin with white space; 0 for other labels.
func (d *document) endOfFolded(m mark) int {
	if m.End > d.headerEnd || !d.isEntry(m) {
		return 0
	}

	end := 0
	for i := d.lineAt(m.Start) + 1; i < len(d.lines) && d.lines[i].Start < d.headerEnd; i++ {
		line := d.lines[i]
		if c := d.text[line.Start]; c != ' ' && c != '\t' {
			break
		}

		end = form.Trim(d.text, line).End
	}

	return end
}

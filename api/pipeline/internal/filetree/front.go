package filetree

import (
	"regexp"
	"strconv"
	"strings"
)

// ReadFront reads the front matter of a file: YAML, or lines of a key and its text.
func (r *Reader) ReadFront(front []byte) *Node {
	root := r.ReadYAML(front)
	if r.Err == nil {
		return root
	}

	loose := quoteFront(front) // many programs take lines for keys and texts
	if loose == nil {
		return root
	}
	r.Err = nil
	return r.ReadYAML(loose)
}

// frontKey matches a line of front matter that begins with a key.
var frontKey = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_-]*):(?:[ \t]+(.*?))?[ \t]*\r?$`)

// quoteFront returns front matter that is no YAML, because its texts have colons or quotation
// marks in them, with the rest of each line as the text of its key. A line without a key
// belongs to the one before it. It returns nil if the front matter has no keys.
func quoteFront(front []byte) []byte {
	var out []string
	last, text := -1, ""

	for i, line := range strings.Split(string(front), "\n") {
		// A line of its own for each, so that lines keep their numbers.
		out = append(out, "")
		key := frontKey.FindStringSubmatch(line)
		switch {
		case key != nil:
			last, text = i, key[2]
			out[i] = key[1] + ": " + strconv.Quote(text)
		case last >= 0 && strings.TrimSpace(line) != "":
			text += "\n" + strings.TrimSpace(line)
			name, _, _ := strings.Cut(out[last], ":")
			out[last] = name + ": " + strconv.Quote(strings.TrimSpace(text))
		}
	}

	if last < 0 {
		return nil
	}
	return []byte(strings.Join(out, "\n"))
}

package refs

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/shorten"
)

// A Source is a document as a bibliography describes it. Any text may be empty.
type Source struct {
	ID      string   `json:"document_id"` // of the document, never empty
	Title   string   `json:"title,omitempty"`
	Authors []string `json:"authors,omitempty"`
	Year    string   `json:"year,omitempty"`
	URL     string   `json:"url,omitempty"`
}

// An Entry is a source with the number and the id by which a text refers to it.
type Entry struct {
	Number int    `json:"number"`          // from 1 on
	Ref    string `json:"ref"`             // REF_…
	Place  string `json:"place,omitempty"` // of the passage in its document, such as "page 3"; may be empty
	Source
}

// Bounds of what a source is described by, in characters, and of its authors in number.
const (
	maxTitle   = 300
	maxAuthor  = 100
	maxAuthors = 100
	maxYear    = 40
	maxURL     = 1000
)

// Names of metadata. Other metadata does not describe a source.
const (
	metadataID      = "document_id"
	metadataTitle   = "title"
	metadataAuthors = "authors"
	metadataYear    = "year"
	metadataURL     = "url"
)

// FromMetadata returns the source that a document is, by its id in the job and its metadata:
// document_id, title, authors, year and url. Authors are a JSON list of texts, or a text
// with semicolons, or "and", between them.
func FromMetadata(document string, metadata map[string]string) Source {
	s := Source{
		ID:    document,
		Title: oneLine(metadata[metadataTitle], maxTitle),
		Year:  oneLine(metadata[metadataYear], maxYear),
		URL:   webAddress(metadata[metadataURL]),
	}

	if id := oneLine(metadata[metadataID], maxTitle); id != "" {
		s.ID = id
	}

	for _, author := range authorsOf(metadata[metadataAuthors]) {
		if author = oneLine(author, maxAuthor); author != "" && len(s.Authors) < maxAuthors {
			s.Authors = append(s.Authors, author)
		}
	}
	return s
}

// authorsOf returns the names in the metadata of authors.
func authorsOf(text string) []string {
	var list []string
	if json.Unmarshal([]byte(text), &list) == nil {
		return list
	}

	var one string
	if json.Unmarshal([]byte(text), &one) == nil {
		text = one
	}
	return authorBreak.Split(text, -1)
}

// authorBreak stands between two authors in one text. Commas stand within names, too.
var authorBreak = regexp.MustCompile(`\s*;\s*|\s+(?:and|&)\s+`)

// webAddress returns an address if it is one of the web. No other leads anywhere that a
// reader should be sent to.
func webAddress(text string) string {
	text = strings.TrimSpace(text)
	lower := strings.ToLower(text)
	if !strings.HasPrefix(lower, "https://") && !strings.HasPrefix(lower, "http://") || len(text) > maxURL ||
		strings.ContainsFunc(text, func(r rune) bool {
			return unicode.IsSpace(r) || !unicode.IsGraphic(r) || strings.ContainsRune("<>\"'`{}\\", r)
		}) {
		return ""
	}
	return text
}

// oneLine returns a text on one line without invisible characters, of at most so many
// characters.
func oneLine(text string, most int) string {
	text = shorten.Visible(text)
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// Label returns the source in one short line, as the list of references of a prompt has
// it: the authors, the title and the year, as far as they are known. It is never empty.
func (s *Source) Label() string {
	var parts []string
	if who := s.shortAuthors(); who != "" {
		parts = append(parts, who+".")
	}

	title := oneLine(s.Title, maxLabelTitle)
	if title == "" {
		title = oneLine(s.ID, maxLabelTitle)
	}

	parts = append(parts, title)
	if s.Year != "" {
		parts = append(parts, "("+s.Year+")")
	}

	return strings.Join(parts, " ")
}

const maxLabelTitle = 160

// shortAuthors returns who wrote it, in few words.
func (s *Source) shortAuthors() string {
	switch len(s.Authors) {
	case 0:
		return ""
	case 1:
		return familyName(s.Authors[0])
	case 2:
		return familyName(s.Authors[0]) + " and " + familyName(s.Authors[1])
	}
	return familyName(s.Authors[0]) + " et al"
}

// familyName returns the family name of an author: what stands before a comma, or the
// last word without what is only behind names.
func familyName(name string) string {
	family, _ := splitName(name)
	return family
}

// splitName returns the family name and the given names of an author. A name that is one
// word, or of an organisation, has no given names.
func splitName(name string) (family, given string) {
	if before, after, ok := strings.Cut(name, ","); ok && strings.TrimSpace(before) != "" {
		return strings.TrimSpace(before), strings.TrimSpace(after)
	}

	words := strings.Fields(name)
	if len(words) < 2 {
		return name, ""
	}

	// The family name is the last word but for suffixes, with the particles before it.
	at := len(words) - 1
	if isSuffix(words[at]) && at > 1 {
		at--
	}
	for at > 1 && isParticle(words[at-1]) {
		at--
	}

	return strings.Join(words[at:], " "), strings.Join(words[:at], " ")
}

// isSuffix reports whether a word stands behind names without being one.
func isSuffix(word string) bool {
	switch strings.ToLower(strings.Trim(word, ".")) {
	case "jr", "sr", "ii", "iii", "iv", "phd", "md":
		return true
	}
	return false
}

// isParticle reports whether a word before a family name belongs to it.
func isParticle(word string) bool {
	switch word {
	case "van", "von", "de", "del", "della", "der", "den", "di", "da", "dos", "du", "la", "le", "ter", "ten", "bin", "ibn", "al":
		return true
	}
	return false
}

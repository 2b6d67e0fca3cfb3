package refs

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// Unknown replaces an id in a text that nobody issued.
const Unknown = "?"

// An Edit is a replacement that was made in a text.
type Edit struct {
	Start, End int    // bytes of the text as it is now, half-open
	Old        string // the text that was replaced
}

// A Removed is an id that was removed from a text because nobody issued it.
type Removed struct {
	Name string // canonical; "[7]" for a number that the writer made up
	At   int    // byte of the original text
}

// A Converted is a text whose ids were replaced.
type Converted struct {
	Text    string
	Edits   []Edit    // in order
	Removed []Removed // in order
}

var errEdits = errors.New("refs: the edits are not of this text")

// Restore undoes the edits of a text. It fails if they are not edits of this text.
func Restore(text string, edits []Edit) (string, error) {
	var b strings.Builder
	at := 0
	for _, e := range edits {
		if e.Start < at || e.End < e.Start || e.End > len(text) {
			return "", errEdits
		}
		b.WriteString(text[at:e.Start])
		b.WriteString(e.Old)
		at = e.End
	}

	b.WriteString(text[at:])
	return b.String(), nil
}

// A Numbering numbers ids in the order of their first appearance in one or several
// texts. The zero Numbering knows no id.
type Numbering struct {
	known func(name string) bool
	order []string
	at    map[string]int
}

// NewNumbering returns a numbering of the ids for which known is true. It calls
// known with canonical names.
func NewNumbering(known func(name string) bool) *Numbering {
	return &Numbering{known: known, at: make(map[string]int)}
}

// Used returns the ids that have numbers, in the order of their numbers. These are
// the entries of the bibliography.
func (n *Numbering) Used() []string { return slices.Clone(n.order) }

// Number returns the number of an id, from 1, or 0 if it has none yet.
func (n *Numbering) Number(name string) int { return n.at[Canonical(name)] }

// Convert replaces the ids in the prose of text by bracketed numbers. It leaves
// code and addresses alone. It replaces an id that is not known by Unknown and
// reports it. It does the same with a bracketed number of the text itself that a
// reader could take for a reference.
func (n *Numbering) Convert(text string) Converted {
	return replaceMentions(text, findMentions(text, n.isIssued), func(name string) (string, bool) {
		if !n.isIssued(name) {
			return "", false
		}
		if n.at[name] == 0 {
			n.order = append(n.order, name)
			n.at[name] = len(n.order)
		}
		return strconv.Itoa(n.at[name]), true
	})
}

func (n *Numbering) isIssued(name string) bool { return n.known != nil && n.known(name) }

// Respell replaces the ids in the prose of text by the results of spell, for
// instance names that are unique in a prompt by names that are unique everywhere.
// It removes and reports an id that spell does not know, as Convert does.
func Respell(text string, spell func(name string) (string, bool)) Converted {
	known := func(name string) bool {
		_, ok := spell(name)
		return ok
	}

	all := findMentions(text, known)
	all = slices.DeleteFunc(all, func(m mention) bool { return m.number })
	return replaceMentions(text, all, spell)
}

// replaceMentions rewrites text with the result of spell in place of each id.
func replaceMentions(text string, all []mention, spell func(string) (string, bool)) Converted {
	var b strings.Builder
	var c Converted

	at := 0
	for _, m := range all {
		// Numbers in brackets that are years or amounts stay as they are.
		if m.number && !slices.ContainsFunc(m.names, isReference) {
			continue
		}

		b.WriteString(text[at:m.start])
		start := b.Len()
		b.WriteString("[" + strings.Join(c.spellNames(m, spell), ", ") + "]")
		c.Edits = append(c.Edits, Edit{start, b.Len(), text[m.start:m.end]})
		at = m.end
	}

	b.WriteString(text[at:])
	c.Text = b.String()
	return c
}

// spellNames returns the replacements of the ids of a mention. It replaces and
// records those that spell does not know.
func (c *Converted) spellNames(m mention, spell func(string) (string, bool)) []string {
	var parts []string
	for _, name := range m.names {
		to, ok := Unknown, name == Unknown

		switch {
		case m.number:
			name = "[" + name + "]"
		case !ok:
			to, ok = spell(name)
		}

		if !ok {
			to = Unknown
			c.Removed = append(c.Removed, Removed{name, m.start})
		}

		// Several unknown ids are one question mark.
		if !slices.Contains(parts, to) {
			parts = append(parts, to)
		}
	}
	return parts
}

// isReference reports whether a reader would take a number in brackets for a
// reference, and not for a year or an amount.
func isReference(number string) bool {
	n, err := strconv.Atoi(number)
	return err == nil && n < 10_000 && (n < 1900 || n >= 2100)
}

// Mentioned returns the ids in the prose of text, known or not, each once, in the
// order of their first appearance.
func Mentioned(text string, known func(name string) bool) []string {
	var names []string
	seen := make(map[string]bool)
	for _, m := range findMentions(text, known) {
		for _, name := range m.names {
			if !m.number && name != Unknown && !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}

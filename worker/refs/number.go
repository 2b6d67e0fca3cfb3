package refs

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// Unknown stands in a text where an id stood that nobody issued.
const Unknown = "?"

// An Edit is a replacement that was made in a text.
type Edit struct {
	Start, End int    // bytes of the text as it is now, half-open
	Old        string // what stood there
}

// A Removed is an id that was taken out of a text because nobody issued it.
type Removed struct {
	Name string // canonical; of a number that the writer made up, "[7]"
	At   int    // byte of the text as it was
}

// A Converted is a text whose ids were replaced.
type Converted struct {
	Text    string
	Edits   []Edit    // in order
	Removed []Removed // in order
}

var errEdits = errors.New("refs: the edits are not of this text")

// Restore undoes edits of a text. It fails if they cannot be of this text.
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

// A Numbering gives numbers to ids in the order of their first appearance, over
// one text or several. Its zero value knows no id.
type Numbering struct {
	known func(name string) bool
	order []string
	at    map[string]int
}

// NewNumbering returns a numbering of ids of which known is true. It is asked
// for canonical names.
func NewNumbering(known func(name string) bool) *Numbering {
	return &Numbering{known: known, at: make(map[string]int)}
}

// Used returns the ids that have numbers, that of 1 first: what the
// bibliography has to hold.
func (n *Numbering) Used() []string { return slices.Clone(n.order) }

// Number returns the number of an id, from 1, or 0 if it has none yet.
func (n *Numbering) Number(name string) int { return n.at[Canonical(name)] }

// Convert replaces the ids in the prose of text with bracketed numbers. Code and
// addresses are left alone. An id that is not known gets no number: Unknown
// stands in its place, and it is reported. So is a number in brackets that the
// text had already, if it could be taken for one of these.
func (n *Numbering) Convert(text string) Converted {
	return replace(text, mentions(text, n.issued), func(name string) (string, bool) {
		if !n.issued(name) {
			return "", false
		}
		if n.at[name] == 0 {
			n.order = append(n.order, name)
			n.at[name] = len(n.order)
		}
		return strconv.Itoa(n.at[name]), true
	})
}

func (n *Numbering) issued(name string) bool { return n.known != nil && n.known(name) }

// Respell replaces the ids in the prose of text by what spell returns for them,
// for instance names that are unique in a prompt by names that are everywhere.
// An id that spell does not know is removed and reported, as by Convert.
func Respell(text string, spell func(name string) (string, bool)) Converted {
	known := func(name string) bool {
		_, ok := spell(name)
		return ok
	}
	all := mentions(text, known)
	all = slices.DeleteFunc(all, func(m mention) bool { return m.number })
	return replace(text, all, spell)
}

// replace writes text anew, with what spell says in place of each id.
func replace(text string, all []mention, spell func(string) (string, bool)) Converted {
	var b strings.Builder
	var c Converted
	at := 0
	for _, m := range all {
		if m.number && !slices.ContainsFunc(m.names, isReference) {
			continue
		}
		b.WriteString(text[at:m.start])
		start := b.Len()
		b.WriteString("[" + strings.Join(c.spelled(m, spell), ", ") + "]")
		c.Edits = append(c.Edits, Edit{start, b.Len(), text[m.start:m.end]})
		at = m.end
	}
	b.WriteString(text[at:])
	c.Text = b.String()
	return c
}

// spelled returns what stands for the ids of a mention, and reports those that
// nothing stands for.
func (c *Converted) spelled(m mention, spell func(string) (string, bool)) []string {
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
		if !slices.Contains(parts, to) {
			parts = append(parts, to)
		}
	}
	return parts
}

// isReference reports whether a number in brackets would be taken for one of a
// reference, not for a year or an amount.
func isReference(number string) bool {
	n, err := strconv.Atoi(number)
	return err == nil && n > 0 && n < 10_000 && (n < 1900 || n >= 2100)
}

// Mentioned returns the ids in the prose of text, each once, in the order of
// their first appearance, whether they are known or not.
func Mentioned(text string, known func(name string) bool) []string {
	var names []string
	seen := make(map[string]bool)
	for _, m := range mentions(text, known) {
		for _, name := range m.names {
			if !m.number && name != Unknown && !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}

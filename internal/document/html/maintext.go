package html

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	xhtml "golang.org/x/net/html"
)

// The choice of the main text is our own, and not a reader's view such as Readability's,
// for two reasons. Such a library works on a tree whose nodes know nothing of their place
// in the source. And it picks the one element that reads best, and leaves out tables,
// lists and short paragraphs beside it, in which values stand. Here everything is kept but
// elements that say that they are navigation or advertisements, or that are lists of
// links where such stand.

// minMainText is how many bytes of text outside links make a main text. A page with less
// is kept whole.
const minMainText = 300

// minLinks is how many links make a list of links.
const minLinks = 4

// A reason is why a part of a page is not of its main text.
type reason int8

const (
	none reason = iota
	navigation
	advertisement
	footer
	sidebar
	header
	linkList
)

// String returns the reason as notes name it.
func (r reason) String() string {
	return [...]string{"", "navigation", "advertisements", "footer", "sidebar", "header", "lists of links"}[r]
}

// A part is a part of a page that may be left out: the content of one element.
type part struct {
	why       reason
	from, to  int  // bytes of the page, between the element's tags
	needsMain bool // left out only if the page marks its main text
	prose     int  // bytes of text outside links
	links     int  // bytes of text in links
}

// An element is an open element of a page, with what there was before it.
type element struct {
	name  string
	why   reason
	main  bool // its text is main text
	from  int  // byte of the page behind its tag
	prose int
	links int
	count totals
}

// totals are how many elements of a kind have begun.
type totals struct{ links, mains, headings int }

// maxOpen bounds the elements within each other of a page of which parts are left out.
const maxOpen = 10_000

// A partFinder finds the parts of a page that are not its main text. It takes the tags
// and the text of the page in order. Elements that are never closed, and those that hold
// the main element, are no parts. The time is linear in what it takes.
type partFinder struct {
	open      []element
	openNames map[string]int // how many of open have a name
	mains     int            // how many of open are main text
	apart     int            // how many of open may be left out
	inLink    bool
	inTitle   bool
	count     totals
	prose     int // bytes of text outside links so far, without the title
	links     int // bytes of text in links so far
	mainProse int // bytes of prose in main text so far
	found     []part
	tooDeep   bool // more than maxOpen were open: there are no parts
}

// tagAttributes returns the attributes of a tag that tell what its element is for, for whom, and
// whether it shows; and what an input holds.
func tagAttributes(z *xhtml.Tokenizer, more bool) map[string]string {
	var values map[string]string
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		switch k := string(key); k {
		case "role", "class", "id", "href", "aria-hidden", "hidden", "style", "type", "checked", "selected", "value", "colspan", "rowspan":
			if values == nil {
				values = make(map[string]string)
			}
			// HTML takes the first of two attributes of one name.
			if _, twice := values[k]; twice {
				continue
			}

			if values[k] = string(value); k != "value" {
				values[k] = strings.ToLower(values[k])
			}
		}
	}

	return values
}

// begin adds the start tag of an element, whose content begins at from.
func (f *partFinder) begin(name string, attrs map[string]string, from int) {
	switch name {
	case "a":
		_, f.inLink = attrs["href"]
		if f.inLink {
			f.count.links++
		}
		return
	case "h1":
		f.count.headings++
		return
	case "title":
		f.inTitle = true
		return
	}

	if !isContainer(name) || f.tooDeep {
		return
	}

	if len(f.open) == maxOpen {
		f.tooDeep, f.open, f.openNames, f.found = true, nil, nil, nil
		return
	}

	// An article within something that may be left out, such as an advertisement, is no
	// main text.
	e := element{name: name, from: from, prose: f.prose, links: f.links, count: f.count}
	e.main = name == "main" || attrs["role"] == "main" || name == "article" && f.apart == 0
	if e.main {
		f.mains++
		f.count.mains++
	} else if e.why = reasonOf(name, attrs, f.mains > 0); e.why != none && e.why != linkList {
		f.apart++
	}

	if f.openNames == nil {
		f.openNames = make(map[string]int)
	}
	f.openNames[name]++
	f.open = append(f.open, e)
}

// end adds the end tag of an element, whose content ends at to.
func (f *partFinder) end(name string, to int) {
	switch name {
	case "a":
		f.inLink = false
	case "title":
		f.inTitle = false
	}

	// Elements that were never closed end with the one around them.
	for f.openNames[name] > 0 {
		e := f.open[len(f.open)-1]
		f.open = f.open[:len(f.open)-1]
		f.openNames[e.name]--
		switch {
		case e.main:
			f.mains--
		case e.why != none && e.why != linkList:
			f.apart--
		}
		if e.name == name {
			f.addPart(e, to)
			return
		}
	}
}

// text adds n bytes of text.
func (f *partFinder) text(n int) {
	switch {
	case f.inTitle:
	case f.inLink:
		f.links += n
	default:
		f.prose += n
		if f.mains > 0 {
			f.mainProse += n
		}
	}
}

// addPart adds an element that ends at to, if it may be left out.
func (f *partFinder) addPart(e element, to int) {
	p := part{why: e.why, from: e.from, to: to, prose: f.prose - e.prose, links: f.links - e.links}
	if e.why == none || p.prose+p.links == 0 || f.count.mains > e.count.mains {
		return
	}

	mostlyLinks := p.links > 0 && p.links >= p.prose

	// What reads like text is kept, whatever its element is called, unless the page marks
	// its main text elsewhere.
	switch e.why {
	case footer, sidebar:
		p.needsMain = !mostlyLinks
	case header:
		if !mostlyLinks || f.count.headings > e.count.headings {
			return
		}
	case linkList:
		p.needsMain = true
		if f.count.links-e.count.links < minLinks || p.links < 2*p.prose {
			return
		}
	case navigation:
		if !mostlyLinks && e.name != "nav" {
			return
		}
	}

	f.found = append(f.found, p)
}

// leftOut returns the parts of the page that are left out, in order and apart from each
// other. There are none if what is left would not clearly be the main text: too short, or
// less than what is left out.
func (f *partFinder) leftOut() []part {
	var parts []part
	slices.SortFunc(f.found, func(a, b part) int { return cmp.Or(a.from-b.from, b.to-a.to) })

	end, prose := 0, 0
	for _, p := range f.found {
		// A part within another is left out with it.
		if p.from < end || p.needsMain && f.mainProse < minMainText {
			continue
		}
		parts = append(parts, p)
		end = p.to
		prose += p.prose
	}

	if kept := f.prose - prose; kept < minMainText || kept < prose {
		return nil
	}

	return parts
}

// noteOf returns what readers of a document should know of the parts that were left out.
func noteOf(parts []part) string {
	var size int
	var names []string
	for _, p := range parts {
		size += p.prose + p.links
		if name := p.why.String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}

	slices.Sort(names)
	return fmt.Sprintf("%d bytes of text beside the main text were left out: %s (--html full keeps them)", size, strings.Join(names, ", "))
}

// isContainer reports whether elements called name hold parts of pages. All of them need
// an end tag.
func isContainer(name string) bool {
	switch name {
	case "article", "aside", "div", "footer", "header", "ins", "main", "menu", "nav", "ol", "section", "table", "ul":
		return true
	}
	return false
}

// reasonOf returns why an element would not be main text. An aside, a footer or a header
// within main text is of that text.
func reasonOf(name string, attrs map[string]string, inMain bool) reason {
	words := strings.FieldsFunc(attrs["class"]+" "+attrs["id"], func(r rune) bool { return r == ' ' || r == '-' || r == '_' || r == '\n' || r == '\t' })
	why := none

	switch role := attrs["role"]; {
	case slices.ContainsFunc(words, isAdvertisement):
		return advertisement
	case name == "nav" || role == "navigation" || slices.ContainsFunc(words, isNavigation):
		return navigation
	case name == "footer" || role == "contentinfo" || isNamed(attrs, "footer"):
		why = footer
	case name == "aside" || role == "complementary" || isNamed(attrs, "sidebar"):
		why = sidebar
	case name == "header" || role == "banner" || isNamed(attrs, "header"):
		why = header
	case name == "ul" || name == "ol" || name == "menu":
		why = linkList
	}

	// Advertisements and navigation are none of a main text, wherever they stand.
	if inMain {
		return none
	}
	return why
}

// isAdvertisement reports whether a word of a class or id says that its element is an
// advertisement.
func isAdvertisement(word string) bool {
	switch word {
	case "ad", "ads", "adsbygoogle", "adslot", "advert", "adverts", "advertisement", "advertisements", "advertising", "sponsored":
		return true
	}
	return false
}

// isNavigation reports whether a word of a class or id says that its element is
// navigation, if it is mostly links.
func isNavigation(word string) bool {
	switch word {
	case "breadcrumb", "breadcrumbs", "menu", "nav", "navbar", "navigation", "pager", "pagination", "related", "share", "sharing", "social":
		return true
	}
	return false
}

// isNamed reports whether the id or a class of an element is name, of the page or of the
// site.
func isNamed(attrs map[string]string, name string) bool {
	for _, class := range append(strings.Fields(attrs["class"]), attrs["id"]) {
		if class == name || class == "site-"+name || class == "page-"+name {
			return true
		}
	}
	return false
}

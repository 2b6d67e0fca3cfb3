package fetch

import (
	"bytes"
	"cmp"
	"io"
	"net/url"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"

	"github.com/coditect/mapreduce/api/shorten"
)

// A link is a link of a page.
type link struct{ text, url string }

// Bounds of what is read of the description of a page.
const (
	maxLinks = 200
	maxField = 500 // bytes
)

// described are the names of meta elements that say something of a page, with the names
// under which evidence has it. The first that is there counts.
var described = []struct{ meta, name string }{
	{"article:published_time", "published"},
	{"datepublished", "published"},
	{"date", "published"},
	{"dc.date", "published"},
	{"parsely-pub-date", "published"},
	{"article:modified_time", "updated"},
	{"author", "author"},
	{"article:author", "author"},
	{"dc.creator", "author"},
	{"og:site_name", "site"},
	{"og:title", "og_title"},
	{"description", "description"},
	{"og:description", "description"},
}

// describe reads the title, the links and what else a page says of itself. base is the
// address of the page.
func (p *page) describe(data []byte, contentType string, base *url.URL) {
	from, err := charset.NewReader(bytes.NewReader(data), contentType)
	if err != nil {
		from = bytes.NewReader(data)
	}
	d := describer{page: p, base: base, metas: make(map[string]string), seen: make(map[string]bool)}
	d.read(from)

	for _, m := range described {
		if value := d.metas[m.meta]; value != "" && p.metadata[m.name] == "" {
			p.metadata[m.name] = value
		}
	}

	if title := p.metadata["og_title"]; p.title == "" {
		p.title = title
	}

	delete(p.metadata, "og_title")
}

// A describer reads the elements of a page.
type describer struct {
	page  *page
	base  *url.URL
	metas map[string]string
	seen  map[string]bool // addresses of links

	into *strings.Builder // the text of what is open; nil if nothing is
	end  string           // the element that ends it
	href string           // of the link that is open
}

func (d *describer) read(from io.Reader) {
	z := html.NewTokenizer(from)
	z.SetMaxBuf(1 << 20)

	for {
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			attrs := make(map[string]string, len(t.Attr))
			for _, a := range t.Attr {
				attrs[a.Key] = a.Val
			}
			d.begin(t.Data, attrs)
		case html.EndTagToken:
			name, _ := z.TagName()
			d.ended(string(name))
		case html.TextToken:
			if d.into != nil && d.into.Len() < maxField {
				d.into.WriteString(string(z.Text()))
			}
		}
	}
}

func (d *describer) begin(name string, attrs map[string]string) {
	switch name {
	case "html":
		if lang := attrs["lang"]; lang != "" && len(lang) < 40 {
			d.page.metadata["language"] = lang
		}
	case "base":
		if u, err := d.base.Parse(attrs["href"]); err == nil {
			d.base = u
		}
	case "meta":
		key := strings.ToLower(cmp.Or(attrs["property"], attrs["name"], attrs["itemprop"]))
		if value := shorten.Line(attrs["content"], maxField); key != "" && value != "" && d.metas[key] == "" && len(d.metas) < 200 {
			d.metas[key] = value
		}
	case "time":
		if d.metas["date"] == "" {
			d.metas["date"] = shorten.Line(attrs["datetime"], maxField)
		}
	case "title":
		if d.page.title == "" && d.into == nil {
			d.into, d.end = new(strings.Builder), name
		}
	case "a":
		if d.into == nil && len(d.page.links) < maxLinks {
			d.into, d.end, d.href = new(strings.Builder), name, attrs["href"]
		}
	}
}

func (d *describer) ended(name string) {
	if d.into == nil || name != d.end {
		return
	}

	text := shorten.Line(html.UnescapeString(d.into.String()), maxField)
	d.into = nil
	if name == "title" {
		d.page.title = text
		return
	}

	u, err := d.base.Parse(strings.TrimSpace(d.href))
	if err != nil || d.href == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || len(d.href) > 2000 {
		return
	}

	// A place within a page is the same page.
	u.Fragment, u.RawFragment = "", ""
	if address := u.String(); !d.seen[address] && text != "" {
		d.seen[address] = true
		d.page.links = append(d.page.links, link{text, address})
	}
}

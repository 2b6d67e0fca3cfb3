package html_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/html"
)

// readFull returns the document that a page is with all of its text.
func readFull(page string) (*document.Document, error) {
	r, err := document.NewRegistry(html.FullFormat())
	if err != nil {
		return nil, err
	}
	return r.Parse(context.Background(), document.Input{Name: "a.html", Content: strings.NewReader(page)})
}

var (
	prose  = strings.Repeat("The supplier delivers the goods. ", 12)
	menu   = `<ul><li><a href=/>Home</a><li><a href=/a>About</a><li><a href=/b>Blog</a><li><a href=/c>Contact</a></ul>`
	story  = "<main><h1>Order</h1><p>" + prose + "</main>"
	marked = "Order\n\n" + strings.TrimSpace(prose)
	plain  = "<p>" + prose + "</p>"
)

func TestMainText(t *testing.T) {
	for _, tt := range []struct {
		name string
		page string
		want string // empty if all text is kept
		note string
	}{
		{"nav", "<title>T</title><nav>" + menu + "</nav>" + plain, "T\n\n" + strings.TrimSpace(prose), "25 bytes of text beside the main text were left out: navigation (--html full keeps them)"},
		{"nav in main text", "<main><nav>On this page</nav><h1>Order</h1>" + plain + "</main>", marked, "navigation"},
		{"role", `<div role=navigation>` + menu + "</div>" + story, marked, "navigation"},
		{"class", `<div class="top site-nav">` + menu + "</div>" + story, marked, "navigation"},
		{"breadcrumb", `<div id=breadcrumb><a href=/>Home</a> &gt; <a href=/a>Orders</a></div>` + story, marked, "navigation"},
		{"class of a menu that is no links", `<div class="menu">Soup 3.50, Fish 12.00</div>` + story, "", ""},
		{"advertisement", story + `<div class="ad-slot"><p>Buy <b>now</b></p></div>`, marked, "advertisements"},
		{"advertisement within a text", "<p>one<ins class=adsbygoogle>Buy</ins>two " + prose, "one\ntwo " + strings.TrimSpace(prose), "advertisements"},
		{"advertisement with a script and a drawing", `<div class=advert>Buy<script>"</div>"</script><svg></div></svg><pre>x</div>` + story, marked, "advertisements"},
		{"word that begins like one", `<div class="address admin">Soup Street 1</div>` + story, "", ""},
		{"footer", story + "<footer>All rights reserved</footer>", marked, "footer"},
		{"footer of links in a page without a mark", plain + "<footer>See <a href=/>Imprint and contact</a></footer>", strings.TrimSpace(prose), "footer"},
		{"footer of words in a page without a mark", plain + "<footer>Bank: DE00 1234</footer>", "", ""},
		{"footer of an article", "<article><h1>Order</h1>" + plain + "<footer>Signed: Ann</footer></article>", "", ""},
		{"aside", "<aside>Weather: rain</aside>" + story, marked, "sidebar"},
		{"aside of the main text", "<main>" + plain + "<aside>Due: Friday</aside></main>", "", ""},
		{"aside of articles", story + "<aside><article>Other news</article></aside>", marked, "sidebar"},
		{"header of links", "<header><b>Shop</b>" + menu + "</header>" + story, marked, "header"},
		{"header with the heading", "<header><h1>Order 7</h1>" + menu + "</header><p>" + prose, "", ""},
		{"list of links beside the main text", story + menu, marked, "lists of links"},
		{"list of links of the main text", "<main>" + plain + menu + "</main>", "", ""},
		{"several", "<header><nav>" + menu + "</nav></header>" + story + `<div class="social"><a href=/>Share</a></div><footer>Imprint</footer>`, marked, "footer, header, navigation"},
		{"short page", "<nav>" + menu + "</nav><p>Total: 12.50</p>", "", ""},
		{"more beside the main text than in it", `<div class=ad>` + prose + prose + "</div>" + story, "", ""},
		{"everything in a class", `<body class="ads"><div class="with-ads">` + plain + "</div>", "", ""},
		{"main text in navigation", "<nav>" + story + "</nav>" + plain, "", ""},
		{"never closed", story + "<nav>Home", "", ""},
		{"closed by its parent", "<div><nav>Home</div>" + story + "</nav>", "", ""},
		{"beside an element that never ends", "<nav>Home<svg></nav>" + story, marked, "navigation"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := read(tt.page, "")
			if err != nil {
				t.Fatal(err)
			}
			full, err := readFull(tt.page)
			if err != nil {
				t.Fatal(err)
			}
			if tt.want == "" {
				tt.want = full.Text
			}
			if diff := cmp.Diff(tt.want, strings.TrimSpace(got.Text)); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if len(full.Notes) > 0 || (tt.note != "") != (len(got.Notes) == 1) || tt.note != "" && !strings.Contains(got.Notes[0], tt.note) {
				t.Errorf("notes are %q, and %q of the full text; want %q", got.Notes, full.Notes, tt.note)
			}
			checkPage(t, tt.page, got)
		})
	}
}

// TestMainTextIsOfTheSource: whatever a page is made of, each character that is kept is the
// same one of the source as in the full text, what is not navigation or an advertisement is
// kept, and what is left out is said.
func TestMainTextIsOfTheSource(t *testing.T) {
	tags := [][2]string{
		{"<nav>", "</nav>"},
		{"<aside>", "</aside>"},
		{"<footer>", "</footer>"},
		{"<header>", "</header>"},
		{"<main>", "</main>"},
		{"<article>", "</article>"},
		{"<div class=ad>", "</div>"},
		{"<div class='x menu'>", "</div>"},
		{"<div>", "</div>"},
		{"<ins class=ads>", "</ins>"},
		{"<ul><li>", "</ul>"},
		{"<table><tr><td>", "</table>"},
		{"<a href=/>", "</a>"},
		{"<pre>\n", "</pre>"},
		{"<svg>", "</svg>"},
		{"<nav>", ""},
		{"", "</nav>"},
		{"", "</div>"},
		{"<script>", "</script>"},
	}
	left := 0
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		number := 0
		var write func(depth int, apart bool)
		write = func(depth int, apart bool) {
			for range rapid.IntRange(1, 4).Draw(t, "parts") {
				if depth == 0 || rapid.Bool().Draw(t, "text") {
					number++
					text := fmt.Sprintf(" part%d &amp;\u00a0ü", number)
					if rapid.IntRange(0, 3).Draw(t, "long") == 0 && !apart {
						text += prose
					}
					b.WriteString(text)
					continue
				}
				tag := rapid.SampledFrom(tags).Draw(t, "tag")
				b.WriteString(tag[0])
				write(depth-1, apart || strings.HasPrefix(tag[0], "<nav") || strings.Contains(tag[0], "class=ad"))
				b.WriteString(tag[1])
			}
		}
		write(3, false)
		page := b.String()
		got, err := read(page, "text/html; charset=utf-8")
		if err != nil {
			t.Skip("a page without text")
		}
		full, err := readFull(page)
		if err != nil {
			t.Fatal(err)
		}
		kept, all := letters(got), letters(full)
		for at, r := range kept {
			if all[at] != r {
				t.Fatalf("%q comes from %v of %q, where the full text has %q", r, at, page, all[at])
			}
		}
		if (len(kept) < len(all)) != (len(got.Notes) > 0) {
			t.Fatalf("%d of %d letters of %q are kept, and the notes are %q", len(kept), len(all), page, got.Notes)
		}
		if len(got.Notes) > 0 {
			left++
			if len(got.Text) < 300 {
				t.Fatalf("%q is left of %q", got.Text, page)
			}
		}
	})
	if left == 0 {
		t.Error("no page had anything left out")
	}
}

// letters returns the characters of a document that are not white space, by the bytes of
// the source from which they come.
func letters(d *document.Document) map[[2]int]rune {
	all := map[[2]int]rune{}
	for i, r := range d.Text {
		if !strings.ContainsRune(" \t\r\n", r) {
			from, to := d.Source.Source(i, i+utf8.RuneLen(r))
			all[[2]int{from, to}] = r
		}
	}
	return all
}

package ooxml_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/internal/zipmake"
	"github.com/coditect/mapreduce/internal/document/ooxml"
)

// reads returns pictures whose bytes are their text: a line each, of which the first words are least sure.
func reads(share float64) ooxml.Pictures {
	return ooxml.Pictures{Share: share, Read: func(_ context.Context, data []byte, _ document.Waiter) (*document.Recognised, error) {
		switch text := string(data); text {
		case "":
			return new(document.Recognised), nil
		case "damaged":
			return nil, document.Refuse("a picture that is damaged")
		default:
			found := &document.Recognised{Sure: 0.8}
			for i, line := range strings.Split(text, "\n") {
				found.Lines = append(found.Lines, document.RecognisedLine{Text: line, Sure: 0.5 + 0.1*float64(i)})
			}
			return found, nil
		}
	}}
}

// Sides of pictures, in EMU: of a page of A4, and of a stamp.
const (
	pageWide, pageHigh = 7560310, 10692130
	stamp              = 500000
)

// drawing is a picture in a Word document.
func drawing(id string, wide, high int) string {
	return fmt.Sprintf(`<w:r><w:drawing><wp:inline xmlns:wp="wp"><wp:extent cx="%d" cy="%d"/><a:graphic xmlns:a="a"><pic:pic xmlns:pic="pic"><pic:blipFill><a:blip xmlns:r="r" r:embed="%s"/></pic:blipFill></pic:pic></a:graphic></wp:inline></w:drawing></w:r>`, wide, high, id)
}

func media(name, text string) zipmake.File { return zipmake.File{Name: "media/" + name, Content: text} }

// TestDocxPictures: the text of a picture stands behind its paragraph, with its place and how sure it is,
// and once however often it is shown.
func TestDocxPictures(t *testing.T) {
	rels := zipmake.File{Name: "_rels/document.xml.rels", Content: `<R><R Id="big" Type="x/image" Target="media/1.png"/><R Id="same" Type="x/image" Target="/word/media/1.png"/><R Id="small" Type="x/image" Target="media/2.png"/><R Id="bad" Type="x/image" Target="media/3.png"/><R Id="none" Type="x/image" Target="media/4.png"/><R Id="far" Type="x/image" TargetMode="External" Target="http://example.org/"/><R Id="cell" Type="x/image" Target="media/5.png"/></R>`}
	xml := p("before") + `<w:p><w:r><w:t>shown: </w:t></w:r>` + drawing("big", pageWide, pageHigh) + `</w:p>` + `<w:p>` + drawing("same", pageWide, pageHigh) + drawing("small", stamp, stamp) + drawing("far", pageWide, pageHigh) + `</w:p>` +
		`<w:p>` + drawing("bad", pageWide, pageHigh) + drawing("none", pageWide, pageHigh) + drawing("lost", pageWide, pageHigh) + `</w:p>` +
		`<w:tbl><w:tr><w:tc>` + p("typed") + `</w:tc><w:tc><w:p>` + drawing("cell", pageWide, pageHigh) + `</w:p></w:tc></w:tr></w:tbl>` + p("after")
	data := body(t, xml, rels, media("1.png", "Invoice 17\nTotal 5"), media("2.png", "paid"), media("3.png", "damaged"), media("4.png", ""), media("5.png", "in a cell"))

	for _, test := range []struct {
		name, want string
		pictures   ooxml.Pictures
	}{
		{"none", "before\nshown: \n\n| typed |  |\n| --- | --- |\n\nafter\n", ooxml.Pictures{}},
		{"large ones", "before\nshown:\nInvoice 17\nTotal 5\n\n| typed | in a cell |\n| --- | --- |\n\nafter\n", reads(0.5)},
		{"all", "before\nshown:\nInvoice 17\nTotal 5\n\npaid\n\n| typed | in a cell |\n| --- | --- |\n\nafter\n", reads(0.0001)},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, err := zipmake.Parse(t, ooxml.DocxFormat(test.pictures), "a.docx", data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.ReplaceAll(test.want, ": \n", ":\n"), d.Text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}

	d, err := zipmake.Parse(t, ooxml.DocxFormat(reads(0.5)), "a.docx", data)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"before": "paragraph 1 0", "Invoice": "part picture, paragraph 2 0.5", "Total": "part picture, paragraph 2 0.6", "in a cell": "paragraph 6 0.5", "typed": "paragraph 5 0"} {
		at := strings.Index(d.Text, text)
		if l := d.Layout.Locate(at, at+len(text)); l == nil || fmt.Sprint(l, " ", l.Recognised) != want {
			t.Errorf("%q is at %v, want %s", text, l, want)
		}
	}
	if d.Confidence <= 0.8 || d.Confidence >= 1 {
		t.Errorf("confidence %v of a text of which some was recognised", d.Confidence)
	}
	notes := []string{"text was recognised in 2 of its pictures, with a confidence of 0.80", "1 of its pictures were not read: a picture that is damaged"}
	if diff := cmp.Diff(notes, d.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// TestPptxPictures: the share is one of the slide.
func TestPptxPictures(t *testing.T) {
	pic := func(id string, side int) string {
		return fmt.Sprintf(`<p:pic><p:blipFill><a:blip r:embed="%s"><a:extLst><a:ext cx="1" cy="1"/></a:extLst></a:blip></p:blipFill><p:spPr><a:xfrm><a:ext cx="%d" cy="%d"/></a:xfrm></p:spPr></p:pic>`, id, side, side)
	}
	slide := `<p:sld xmlns:p="p" xmlns:a="a" xmlns:r="r"><p:cSld><p:bg><p:bgPr><a:blipFill><a:blip r:embed="back"/></a:blipFill></p:bgPr></p:bg><p:spTree>` +
		shape("title", line("0", "Prices")) + pic("big", 900) + pic("small", 100) + `</p:spTree></p:cSld></p:sld>`
	data := zipmake.Zip(t,
		zipmake.File{Name: "[Content_Types].xml", Content: "<Types/>"},
		zipmake.File{Name: "ppt/presentation.xml", Content: `<p:presentation xmlns:p="p" xmlns:r="r"><p:sldIdLst><p:sldId id="256" r:id="s"/></p:sldIdLst><p:sldSz cx="1000" cy="1000"/></p:presentation>`},
		zipmake.File{Name: "ppt/_rels/presentation.xml.rels", Content: `<R><R Id="s" Type="x/slide" Target="slides/slide1.xml"/></R>`},
		zipmake.File{Name: "ppt/slides/slide1.xml", Content: slide},
		zipmake.File{Name: "ppt/slides/_rels/slide1.xml.rels", Content: `<R><R Id="big" Type="x/image" Target="../media/1.png"/><R Id="small" Type="x/image" Target="../media/2.png"/><R Id="back" Type="x/image" Target="../media/3.png"/></R>`},
		zipmake.File{Name: "ppt/media/1.png", Content: "Bolt 3.50"},
		zipmake.File{Name: "ppt/media/2.png", Content: "logo"},
		zipmake.File{Name: "ppt/media/3.png", Content: "draft"})

	for share, want := range map[float64]string{0: "## Prices\n\ndraft\nBolt 3.50\nlogo\n", 0.5: "## Prices\n\ndraft\nBolt 3.50\n"} {
		d, err := zipmake.Parse(t, ooxml.PptxFormat(reads(share)), "", data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, d.Text); diff != "" {
			t.Errorf("share %v (-want +got):\n%s", share, diff)
		}
		at := strings.Index(d.Text, "3.50")
		if l := d.Layout.Locate(at, at+4); l == nil || l.Slide != 1 || l.Part != "picture" || l.Recognised != 0.5 {
			t.Errorf("the price is at %+v", l)
		}
	}
}

package xmlread_test

import (
	"encoding/xml"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/xmlread"
)

// text returns all text of a document but that of elements called x.
func text(d *xmlread.Decoder) (string, error) {
	var b strings.Builder
	write := func(s string) { b.WriteString(s) }
	var child func(xml.StartElement) error
	child = func(e xml.StartElement) error {
		switch e.Name.Local {
		case "x":
			return d.Skip()
		case "t":
			s, err := d.Text()
			write("[" + xmlread.Attr(e, "n") + s + "]")
			return err
		}
		return d.Each(child, write)
	}
	err := d.Document(func(xml.StartElement) error { return d.Each(child, write) })
	return b.String(), err
}

// spread returns a text of Latin-1 with zeros before and behind the byte of each character.
func spread(s string, before, behind int) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteString(strings.Repeat("\x00", before) + string([]byte{byte(r)}) + strings.Repeat("\x00", behind))
	}
	return b.String()
}

func TestDecoder(t *testing.T) {
	const lol = `<!DOCTYPE a [<!ENTITY l "lol"><!ENTITY m "&l;&l;&l;">]>`
	for _, test := range []struct{ name, xml, want, refused string }{
		{"elements", `<?xml version="1.0"?><!-- c --><a>1<x><x/>2</x><p:b xmlns:p="q">3<![CDATA[<4>]]></p:b>&amp;<t q:n="5:">6<c>7</c></t></a>`, "13<4>&[5:67]", ""},
		{"charset", "<?xml version=\"1.0\" encoding=\"iso-8859-1\"?><a>Gr\xf6\xdfe</a>", "Größe", ""},
		{"UTF-16", "\xff\xfe" + spread(`<?xml version="1.0" encoding="UTF-16"?><a>Größe</a>`, 0, 1), "Größe", ""},
		{"UTF-16 that declares nothing", "\xff\xfe" + spread(`<a>Größe</a>`, 0, 1), "Größe", ""},
		{"UTF-16, the higher byte first", "\xfe\xff" + spread(`<a>Größe</a>`, 1, 0), "Größe", ""},
		{"UTF-16 without a mark", spread(`<?xml version="1.0" encoding="UTF-16LE"?><a>Größe</a>`, 0, 1), "Größe", ""},
		{"UTF-16 without a mark, the higher byte first", spread(`<?xml version="1.0" encoding="UTF-16"?><a>Größe</a>`, 1, 0), "Größe", ""},
		{"UTF-16 without a mark or a declaration", spread("\n<a>Größe</a>", 0, 1), "Größe", ""},
		{"UTF-32", "\xff\xfe\x00\x00" + spread(`<?xml version="1.0" encoding="UTF-32"?><a>Größe</a>`, 0, 3), "Größe", ""},
		{"UTF-32, the higher byte first", "\x00\x00\xfe\xff" + spread(`<?xml version="1.0" encoding="ISO-10646-UCS-4"?><a>Größe</a>`, 3, 0), "Größe", ""},
		{"UTF-32 without a mark", spread(`<a>Größe</a>`, 0, 3), "Größe", ""},
		{"UTF-32 without a mark, the higher byte first", spread(`<a>Größe</a>`, 3, 0), "Größe", ""},
		{"UTF-16 that is cut off", "\xff\xfe<", "", "damaged"},
		{"zeros", "\x00\x00\x00\x00", "", "damaged"},
		{"UTF-16 by name alone", `<?xml version="1.0" encoding="utf-16"?><a>Größe</a>`, "Größe", ""},
		{"charset that is none", `<?xml version="1.0" encoding="klingon"?><a>x</a>`, "", "klingon"},
		{"entities are not expanded", lol + `<a>&m;</a>`, "", "invalid character entity &m;"},
		{"empty", ` `, "", "name is empty"},
		{"cut off", `<a><b>x`, "x", "unexpected EOF"},
		{"crossed", `<a><b></a></b>`, "", "closed by"},
		{"deep", strings.Repeat("<a>", 300), "", "more than 256 elements"},
		{"deep and skipped", `<a><x>` + strings.Repeat("<a>", 300), "", "more than 256 elements"},
		{"long text", `<a>` + strings.Repeat("x", 3<<20) + `</a>`, "", "more than 2097152 bytes"},
		{"many attributes", `<a ` + strings.Repeat(`b="" `, 1<<19) + `/>`, "", "more than 2097152 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := text(xmlread.New("name", strings.NewReader(test.xml), document.Limits{}))
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			refused, ok := errors.AsType[*document.RefusedError](err)
			if ok != (test.refused != "") || ok && !strings.Contains(refused.Reason, test.refused) {
				t.Errorf("got %v, want a refusal for %q", err, test.refused)
			}
		})
	}
}

// TestReadErrors passes errors of reading on as they are.
func TestReadErrors(t *testing.T) {
	broken := errors.New("broken")
	if _, err := text(xmlread.New("name", iotest.ErrReader(broken), document.Limits{})); !errors.Is(err, broken) {
		t.Errorf("got %v, want the error of the reader", err)
	}
}

func TestIsOn(t *testing.T) {
	for value, want := range map[string]bool{"": true, "1": true, "true": true, "on": true, "0": false, "false": false, "off": false} {
		if got := xmlread.IsOn(value); got != want {
			t.Errorf("%q is %t, want %t", value, got, want)
		}
	}
}

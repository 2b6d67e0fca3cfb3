package rtf_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/internal/zipmake"
	"github.com/coditect/mapreduce/internal/document/rtf"
)

func TestText(t *testing.T) {
	const fonts = `{\fonttbl{\f0\fnil Arial;}{\f1\fcharset204 Cyr;}{\f2\fcharset128 Min;}}{\stylesheet{\s0 Normal;}{\s1\outlinelevel0 heading 1;}{\s2\sbasedon1 x;}}{\info{\title Not text}}`
	for _, test := range []struct{ name, rtf, want string }{
		{"paragraphs", `one\par\par two {\b bold} and\tab tab\line line\par`, "one\n\ntwo bold and\ttab\nline\n"},
		{"escapes", `\{a\}\\ b\~c\_d\-e \emdash  \ldblquote q\rdblquote \par`, "{a}\\ b c-de — “q”\n"},
		{"bytes", `Gr\'f6\'dfe \f1 \'c4\'e0\f0  \f2 \'8a\'bf\'8e\'9a\par`, "Größe Да 漢字\n"},
		{"Unicode", `\u8364? \uc2\u8364\'80\'80x\uc0\u8364 y\uc1{\u-10179?\u-8704?}\par`, "€ €x€y😀\n"},
		{"headings", `{\pard\s1 Title\par}\pard text\par{\pard\outlinelevel1 Part\par}`, "# Title\n\ntext\n\n## Part\n"},
		{"lists", `{\listtext\pard 1.\tab}first\par{\listtext \u8226?\tab}\ilvl1 dot\par\pard plain\par`, "1. first\n  - dot\n\nplain\n"},
		{"hidden and deleted", `a{\v hidden}{\deleted gone}{\revised kept}\v x\v0 b{\deleted\par}c\par`, "akeptbc\n"},
		{"raised and lowered", `H{\sub 2}O 10\super -\super 6\nosupersub  m{\super 2{\*\footnote 3\par}} 1\super st\plain  10\super 0.5\super0  2{\super 3\par}4\par`, "H₂O 10⁻⁶ m²[^1] 1st 10^0.5 2³\n4\n\n[^1]: 3\n"},
		{"fields", `{\field{\*\fldinst HYPERLINK "http://example.org/"}{\fldrslt link}} end\par`, "link end\n"},
		{"pictures", `a{\pict\pngblip 89504e470d}{\*\unknown {\b x}}{\object{\*\objdata 0102}{\result shown}}\bin3 }}}b\par`, "ashownb\n"},
		{"notes", `claim{\super\chftn{\*\footnote\chftn proof\par more}} x{\*\atnid A}{\*\atnauthor Ann}{\*\annotation{\*\atndate 1}really?}\par`, "claim[^1] x\n\n[^1]: proof more\nComment by Ann: really?\n"},
		{"margins", `{\header ACME\par}{\footer 7\par}text\par`, "ACME\ntext\n"},
		{"text boxes", `around{\shp{\*\shpinst{\sp{\sn a}{\sv b}}{\shptxt boxed\par twice\par}}{\shprslt{\*\do x}boxed}} it\par`, "around it\nboxed\ntwice\n"},
		{"tables", `before\par\trowd\intbl A|B\cell b\par c\cell\row\trowd\intbl 1\cell{\nestcell}2\cell\row\pard after\par`, "before\n\n| A\\|B | b c |\n| --- | --- |\n| 1 | 2 |\n\nafter\n"},
		{
			"merged cells",
			`\trowd\trhdr\cellx1000\cellx3000\intbl Name\cell Height\cell\row\trowd\trhdr\cellx1000\cellx2000\cellx3000\intbl Name\cell 1992\cell 1993\cell\row` +
				`\trowd\clvmgf\cellx1000\cellx2000\cellx3000\intbl Ost\cell 1\cell 2\cell\row\trowd\clvmrg\cellx1010\cellx1990\cellx3000\intbl\cell 3\cell 4\cell\row` +
				`\trowd\cellx1000\clmgf\cellx2000\clmrg\cellx3000\intbl all\cell 10\cell\cell\row\pard`,
			"| Name | Height | Height |\n| Name | 1992 | 1993 |\n| --- | --- | --- |\n| Ost | 1 | 2 |\n| Ost | 3 | 4 |\n| all | 10 ||\n",
		},
		{
			"a head that goes on beside a cell of it",
			`\trowd\trhdr\clvmgf\cellx1000\cellx2000\intbl Part\cell Net\cell\row\trowd\clvmrg\cellx1000\cellx2000\intbl\cell EUR\cell\row` +
				`\trowd\cellx1000\cellx2000\intbl Bolt\cell 1\cell\row\pard`,
			"| Part | Net |\n| Part | EUR |\n| --- | --- |\n| Bolt | 1 |\n",
		},
		{
			"edges that are not quite the same", `\trowd\cellx1000\cellx2000\intbl a\cell b\cell\row\trowd\cellx1100\cellx2100\intbl 1\cell 2\cell\row\pard`,
			"| a | b |\n| --- | --- |\n| 1 | 2 |\n",
		},
		{"a frame", `\trowd\intbl one\cell\row\pard x\par`, "one\nx\n"},
		{"in Unicode too", `{\upr{ansi}{\*\ud{better}}}\par`, "better\n"},
		{"no last mark", `end`, "end\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, err := zipmake.Parse(t, rtf.Format(), "", []byte(`{\rtf1\ansi\ansicpg1252`+fonts+"\n"+test.rtf+"}\x00"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, d.Text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlaces(t *testing.T) {
	d, err := zipmake.Parse(t, rtf.Format(), "", []byte(`{\rtf1 one\par\trowd\intbl two\cell three\cell\row\pard four\par}`))
	if err != nil {
		t.Fatal(err)
	}
	for i, word := range []string{"one", "two", "three", "four"} {
		at := strings.Index(d.Text, word)
		if l := d.Layout.Locate(at, at+len(word)); l == nil || l.Paragraph != i+1 {
			t.Errorf("%q is at %+v, want paragraph %d", word, l, i+1)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, test := range []struct{ name, rtf, want string }{
		{"cut off", `{\rtf1 one\par {\b `, "ends within a group"},
		{"groups", `{\rtf1 ` + strings.Repeat("{", 1000), "more than 500 groups"},
		{"cells", `{\rtf1 \trowd\intbl ` + strings.Repeat(`\cell`, 2000) + `\row}`, "1000 columns"},
		{"no text", `{\rtf1 {\fonttbl{\f0 Arial;}}}`, "no text"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := zipmake.Parse(t, rtf.Format(), "", []byte(test.rtf))
			if refused, ok := errors.AsType[*document.RefusedError](err); !ok || !strings.Contains(refused.Reason, test.want) {
				t.Errorf("got %v, want one that refuses for %q", err, test.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`\trowd\intbl a\cell b\row`, `{\footnote{\header x}}\par\'e4\u8364?`, `{\listtext 1.}\deleted\par\bin9`, `\uc9\u-10179{\u-8704}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		_, err := zipmake.Parse(t, rtf.Format(), "", append([]byte(`{\rtf1`), body...))
		if err != nil && !errors.As(err, new(*document.RefusedError)) {
			t.Errorf("got %v, which does not refuse the file", err)
		}
	})
}

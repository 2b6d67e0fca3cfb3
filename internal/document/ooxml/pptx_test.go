package ooxml_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/internal/zipmake"
	"github.com/coditect/mapreduce/internal/document/ooxml"
)

func shape(role, text string) string {
	return `<p:sp><p:nvSpPr><p:nvPr><p:ph type="` + role + `"/></p:nvPr></p:nvSpPr><p:txBody>` + text + `</p:txBody></p:sp>`
}

func line(level, text string) string {
	return `<a:p><a:pPr lvl="` + level + `"/><a:r><a:t>` + text + `</a:t></a:r></a:p>`
}

func slide(shapes string) string {
	return `<p:sld xmlns:p="p" xmlns:a="a" xmlns:r="r"><p:cSld><p:spTree>` + shapes + `</p:spTree></p:cSld></p:sld>`
}

// presentation returns two slides, of which the second entry is shown first.
func presentation(t testing.TB, first, second string) []byte {
	return zipmake.Zip(t,
		zipmake.File{Name: "[Content_Types].xml", Content: "<Types/>"},
		zipmake.File{Name: "ppt/presentation.xml", Content: `<p:presentation xmlns:p="p" xmlns:r="r"><p:sldIdLst><p:sldId id="256" r:id="rId2"/><p:sldId id="257" r:id="rId1"/><p:sldId id="258" r:id="rId2"/><p:sldId id="259" r:id="none"/></p:sldIdLst></p:presentation>`},
		zipmake.File{Name: "ppt/_rels/presentation.xml.rels", Content: `<R><R Id="rId1" Type="x/slide" Target="slides/slide1.xml"/><R Id="rId2" Type="x/slide" Target="/ppt/slides/slide2.xml"/><R Id="rId3" Type="x/slide" TargetMode="External" Target="http://example.org/"/></R>`},
		zipmake.File{Name: "ppt/slides/slide1.xml", Content: slide(second)},
		zipmake.File{Name: "ppt/slides/slide2.xml", Content: slide(first)},
		zipmake.File{Name: "ppt/slides/_rels/slide2.xml.rels", Content: `<R><R Id="d1" Type="x/diagramData" Target="../diagrams/data1.xml"/><R Id="n" Type="x/notesSlide" Target="../notesSlides/notes1.xml"/></R>`},
		zipmake.File{Name: "ppt/diagrams/data1.xml", Content: `<d xmlns:a="a"><pt><t>` + line("0", "step") + `</t></pt></d>`},
		zipmake.File{Name: "ppt/notesSlides/notes1.xml", Content: slide(shape("sldImg", "") + shape("body", line("0", "say it")) + shape("sldNum", line("0", "1")))})
}

func TestPptxText(t *testing.T) {
	table := `<p:graphicFrame><a:tbl><a:tr><a:tc gridSpan="2"><a:txBody>` + line("0", "wide") + `</a:txBody></a:tc><a:tc hMerge="1"><a:txBody/></a:tc></a:tr><a:tr><a:tc><a:txBody>` + line("0", "a") + line("0", "b") + `</a:txBody></a:tc><a:tc><a:txBody>` + line("0", "c") + `</a:txBody></a:tc></a:tr></a:tbl></p:graphicFrame>`
	first := shape("body", line("0", "one")+line("1", "two")) + shape("ctrTitle", line("0", "The")+line("0", "title")) + shape("sldNum", line("0", "1")) + table +
		`<p:graphicFrame><dgm:relIds xmlns:dgm="dgm" r:dm="d1"/></p:graphicFrame><p:grpSp>` + shape("subTitle", line("0", "single")+line("0", " ")) + `</p:grpSp>`
	d, err := zipmake.Parse(t, ooxml.PptxFormat(ooxml.Pictures{}), "", presentation(t, first, shape("obj", line("0", "alone"))))
	if err != nil {
		t.Fatal(err)
	}
	want := "## The title\n\n- one\n  - two\n\n| wide | wide |\n| --- | --- |\n| a b | c |\n\nstep\nsingle\n\nNotes: say it\n\n## Slide 2\n\nalone\n"
	if diff := cmp.Diff(want, d.Text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for word, slide := range map[string]int{"two": 1, "say it": 1, "c |": 1, "alone": 2} {
		at := strings.Index(d.Text, word)
		if l := d.Layout.Locate(at, at+1); l == nil || l.Slide != slide {
			t.Errorf("%q is at %+v, want slide %d", word, l, slide)
		}
	}
}

// TestScripts: raised and lowered runs, and equations, which slides have in one of two
// alternatives.
func TestScripts(t *testing.T) {
	run := func(properties, text string) string {
		return `<a:r><a:rPr ` + properties + `/><a:t>` + text + `</a:t></a:r>`
	}
	root := `<m:oMath><m:rad><m:deg/><m:e><m:r><a:rPr baseline="30000"/><m:t>b</m:t></m:r></m:e></m:rad></m:oMath>`
	for _, test := range []struct{ name, shapes, want string }{
		{"raised and lowered", shape("obj", `<a:p>`+run("", "CO")+run(`baseline="-25000"`, "2")+run(`baseline="0"`, " at 10")+run(`baseline="30%"`, "1")+run(`baseline="30000"`, "2")+`<a:r><a:t> 1</a:t></a:r>`+run(`baseline="30000"`, "st")+`</a:p>`), "CO₂ at 10¹² 1st"},
		{"equation", `<mc:AlternateContent xmlns:mc="mc"><mc:Choice Requires="a14">` + shape("obj", `<a:p><a:r><a:t>so </a:t></a:r><a14:m>`+root+`</a14:m></a:p>`) + `</mc:Choice><mc:Fallback>` + shape("obj", line("0", "picture")) + `</mc:Fallback></mc:AlternateContent>`, "so √(b)"},
		{"equations on lines", shape("obj", `<a:p><a14:m><m:oMathPara>`+root+root+`</m:oMathPara></a14:m></a:p>`), "√(b)\n√(b)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, err := zipmake.Parse(t, ooxml.PptxFormat(ooxml.Pictures{}), "", presentation(t, shape("title", line("0", "T"))+test.shapes, ""))
			if err != nil {
				t.Fatal(err)
			}
			if want := "## T\n\n" + test.want + "\n"; !strings.HasPrefix(d.Text, want) {
				t.Errorf("got %q, want %q at the beginning", d.Text, want)
			}
		})
	}
}

func FuzzPptxParse(f *testing.F) {
	f.Add([]byte(shape("title", line("0", "x"))))
	f.Add([]byte(shape("obj", `<a:p><a:r><a:rPr baseline="1"/><a:t>2</a:t></a:r><m:oMathPara><m:oMath><m:f><m:num/><m:r><m:t>x</m:t></m:r></m:f></m:oMath></m:oMathPara></a:p>`)))
	f.Add([]byte(`<a:tbl><a:tc/><a:tr><a:tc/></a:tr></a:tbl><relIds r:dm="d1"/>`))
	f.Fuzz(func(t *testing.T, shapes []byte) {
		_, err := zipmake.Parse(t, ooxml.PptxFormat(ooxml.Pictures{}), "", presentation(t, string(shapes), ""))
		if err != nil && !errors.As(err, new(*document.RefusedError)) {
			t.Errorf("got %v, which does not refuse the file", err)
		}
	})
}

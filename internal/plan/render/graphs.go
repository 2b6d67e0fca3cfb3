package render

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// nameCells is how much of a name a picture shows.
const nameCells = 40

// Mermaid returns the sketch as a flow chart of Mermaid.
func (s *Sketch) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart TB\n")

	all, _ := s.allBoxes()
	for i := range all {
		x := &all[i]
		lines := []string{mermaidText(Badge(x.kind, x.level)), mermaidText(clipCells(visibleText(x.name), nameCells))}
		for _, d := range x.detailLines() {
			lines = append(lines, mermaidText(d))
		}

		fmt.Fprintf(&b, "  n%d[\"%s\"]\n  style n%d fill:%s,stroke:%s,color:#111%s\n", i, strings.Join(lines, "<br/>"),
			i, x.fillColour(), x.strokeColour(), ifNot(!x.expected, ",stroke-dasharray:5 4"))
		for _, e := range x.from {
			label := ""
			if e.count > 1 {
				label = fmt.Sprintf("|%d|", e.count)
			}
			fmt.Fprintf(&b, "  n%d -->%s n%d\n", e.box, label, i)
		}
	}
	return b.String()
}

// mermaidText writes what may mean something to Mermaid, or to the HTML that it
// makes, as the number of the character.
func mermaidText(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || strings.ContainsRune(" .-_,$…", r) {
			b.WriteRune(r)
			continue
		}
		fmt.Fprintf(&b, "#%d;", r)
	}
	return b.String()
}

// DOT returns the sketch in the language of Graphviz.
func (s *Sketch) DOT() string {
	var b strings.Builder
	b.WriteString("digraph mapreduce {\n  rankdir=TB;\n  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\"];\n")

	all, first := s.allBoxes()
	for l := range s.rows {
		b.WriteString("  { rank=same;")
		for i := first[l]; i < first[l+1]; i++ {
			fmt.Fprintf(&b, " n%d;", i)
		}
		b.WriteString(" }\n")
	}

	for i := range all {
		x := &all[i]
		lines := append([]string{Badge(x.kind, x.level), clipCells(visibleText(x.name), nameCells)}, x.detailLines()...)
		for j := range lines {
			lines[j] = dotText(lines[j])
		}

		fmt.Fprintf(&b, "  n%d [label=\"%s\", fillcolor=\"%s\", color=\"%s\"%s];\n", i, strings.Join(lines, `\n`),
			x.fillColour(), x.strokeColour(), ifNot(!x.expected, `, style="rounded,filled,dashed"`))
		for _, e := range x.from {
			label := ""
			if e.count > 1 {
				label = fmt.Sprintf(" [label=\"%d\"]", e.count)
			}
			fmt.Fprintf(&b, "  n%d -> n%d%s;\n", e.box, i, label)
		}
	}

	b.WriteString("}\n")
	return b.String()
}

// dotText escapes for a string of DOT, in which a backslash begins an escape and
// an ampersand an entity of HTML.
func dotText(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, `&`, `&amp;`).Replace(s)
}

// reduceFills are the colours of the levels of reduction, in turn.
func reduceFills() []string {
	return []string{"#ffe0b2", "#ffccbc", "#f8bbd0", "#e1bee7", "#d1c4e9", "#f0f4c3"}
}

// fillColour returns the colour of a box.
func (b *box) fillColour() string {
	switch b.kind {
	case mapreduce.KindMap:
		return "#cfe8fc"
	case mapreduce.KindReduce:
		fills := reduceFills()
		return fills[max(0, b.level-1)%len(fills)]
	case mapreduce.KindFinal:
		return "#c8e6c9"
	case mapreduce.KindDirect:
		return "#b2dfdb"
	}
	return "#eceff1"
}

// strokeColour returns the colour of a box's edge, which says how its units are.
func (b *box) strokeColour() string {
	switch b.worstState() {
	case mapreduce.UnitFailed, mapreduce.UnitCancelled:
		return "#c62828"
	case mapreduce.UnitComplete:
		return "#2e7d32"
	case mapreduce.Processing:
		return "#1565c0"
	}
	return "#546e7a"
}

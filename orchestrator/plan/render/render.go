// Package render shows the DAG of a job: as text for people, as the JSON of
// dag.json, as Mermaid, DOT and SVG for pictures. Whatever units and agents are
// named, a name stays a name: each format escapes in its own way.
//
// It is pure and imports the vocabulary, orchestrator/plan and orchestrator/pack.
package render

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/pack"
	"github.com/coditect/mapreduce/orchestrator/plan"
)

// Formats are the names that As knows.
func Formats() []string { return []string{"text", "json", "mermaid", "dot", "svg"} }

// As returns d in the named format.
func As(format string, d *plan.DAG) (string, error) {
	switch format {
	case "text":
		return Text(d), nil
	case "json":
		return JSON(d)
	case "mermaid":
		return Mermaid(d), nil
	case "dot":
		return DOT(d), nil
	case "svg":
		return SVG(d), nil
	}
	return "", errs.Field("format", "must be one of %s", strings.Join(Formats(), ", "))
}

// MaxShown is the most nodes of a level that a picture shows one by one; a
// larger level is one node with its count.
const MaxShown = 24

// Badge returns what a picture calls a unit of that kind and level, or "".
func Badge(kind mapreduce.UnitKind, level int) string {
	switch kind {
	case mapreduce.KindMap:
		return "MAP"
	case mapreduce.KindReduce:
		return fmt.Sprintf("REDUCE L%d", level)
	case mapreduce.KindFinal:
		return "AGGREGATE"
	case mapreduce.KindDirect:
		return "DIRECT"
	case mapreduce.KindParse:
		return "PARSE"
	}
	return ""
}

// A box is what a picture has for a node, or for all nodes of a large level.
type box struct {
	level    plan.Level
	kind     mapreduce.UnitKind
	name     string // shown; of a folded level its count
	details  []string
	state    mapreduce.UnitState
	from     []edge
	expected bool
}

// An edge leads from a box; several outputs may come along it.
type edge struct {
	box   int
	count int
}

// boxes returns the boxes of a DAG, level by level, and the number of each
// level's first box, with one more at the end.
func boxes(d *plan.DAG) (all []box, first []int) {
	at := make([]int, len(d.Nodes)) // the box of each node
	for _, l := range d.Levels {
		first = append(first, len(all))
		fold := l.Count() > MaxShown
		for i := l.First; i < l.End; i++ {
			if !fold || i == l.First {
				all = append(all, box{level: l, kind: d.Nodes[i].Kind, expected: l.Expected})
			}
			at[i] = len(all) - 1
		}
		for b := first[len(first)-1]; b < len(all); b++ {
			from := l.First + b - first[len(first)-1]
			nodes := d.Nodes[from : from+1]
			if fold {
				nodes = d.Nodes[l.First:l.End]
			}
			all[b].fill(nodes, at)
		}
	}
	return all, append(first, len(all))
}

func (b *box) fill(nodes []plan.Node, at []int) {
	b.name = string(nodes[0].ID)
	if len(nodes) > 1 {
		b.name = fmt.Sprintf("%s units", grouped(int64(len(nodes))))
	}
	var calls, tokens int64
	for i := range nodes {
		load := nodes[i].Load
		calls, tokens = pack.Sum(calls, load.Calls), pack.Sum(tokens, load.In, load.Out)
		b.edges(nodes[i].Inputs, at)
	}
	switch {
	case nodes[0].Outcome != nil:
		b.outcome(nodes)
	case calls > 0:
		b.details = append(b.details, fmt.Sprintf("%s, %s tokens", count(calls, "call"), grouped(tokens)))
	}
}

// edges adds to those that lead to b. Inputs are in order, so that those of one
// box follow each other.
func (b *box) edges(inputs []int32, at []int) {
	for _, in := range inputs {
		if n := len(b.from); n > 0 && b.from[n-1].box == at[in] {
			b.from[n-1].count++
			continue
		}
		b.from = append(b.from, edge{box: at[in], count: 1})
	}
}

// outcome adds what became of units.
func (b *box) outcome(nodes []plan.Node) {
	counts := make(map[mapreduce.UnitState]int)
	cost := int64(0)
	for i := range nodes {
		if o := nodes[i].Outcome; o != nil {
			counts[o.State]++
			cost += o.CostMicros
		}
	}
	var states []string
	for s := range mapreduce.UnitCancelled + 1 {
		switch n := counts[s]; {
		case n > 0 && len(nodes) == 1:
			states, b.state = append(states, s.String()), s
		case n > 0:
			states = append(states, fmt.Sprintf("%s %s", grouped(int64(n)), s))
			if b.state != mapreduce.UnitFailed {
				b.state = s
			}
		}
	}
	b.details = append(b.details, strings.Join(states, ", "), dollars(cost))
}

// count returns "1 call", "2 calls".
func count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return grouped(n) + " " + what + "s"
}

// grouped returns n with commas between thousands.
func grouped(n int64) string {
	s := fmt.Sprint(n)
	head := len(s) % 3
	if n < 0 {
		head = (len(s)-1)%3 + 1
	}
	var b strings.Builder
	b.WriteString(s[:head])
	for i := head; i < len(s); i += 3 {
		if i > 0 && s[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteString(s[i : i+3])
	}
	return b.String()
}

// dollars returns millionths of a US dollar in dollars.
func dollars(micros int64) string {
	if micros%10_000 == 0 || micros >= 100_000_000 {
		return fmt.Sprintf("$%.2f", float64(micros)/1e6)
	}
	return fmt.Sprintf("$%.4f", float64(micros)/1e6)
}

// visible returns s on one line, without what is not seen or turns around what
// is: control characters, marks of direction, bytes that are no text.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029', r == 0xfffe, r == 0xffff:
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(s, string(utf8.RuneError)))
}

// clip returns s, or as much of both its ends as fits so many cells, with an
// ellipsis between. Characters of East Asia take two.
func clip(s string, cells int) string {
	runes := []rune(s)
	if width(runes) <= cells {
		return s
	}
	head, tail, room := 0, len(runes), cells-1
	for width(runes[:head+1]) <= room-room/2 {
		head++
	}
	for tail-1 > head && width(runes[tail-1:]) <= room/2 {
		tail--
	}
	return string(runes[:head]) + "…" + string(runes[tail:])
}

func width(runes []rune) int {
	n := 0
	for _, r := range runes {
		if n++; r >= 0x1100 {
			n++
		}
	}
	return n
}

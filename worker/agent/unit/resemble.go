package unit

import (
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/internal/text/lookalike"
)

// maxResembling bounds the places that one quote may look like.
const maxResembling = 100

// Resemble sets the places of quotes that were not found in a stretch of text that was recognised in
// pictures, if words there look like them. What was found stays as it is.
func Resemble(t *protocol.Text, stretch ground.Unit, quotes []string, places []Place) {
	var text *lookalike.Text
	for i, quote := range quotes {
		if places[i].Verified() {
			continue
		}
		if text == nil {
			text = lookalike.New(stretch.Chunk.String())
		}
		if all := text.Find(quote, maxResembling); len(all) > 0 {
			s := spanOf(stretch.Chunk, all[0])
			s.Places = len(all)
			places[i] = At(stretch, s.Shift(stretch.Points, stretch.Bytes))
			places[i].Outside = Outside(t, places[i].Span)
		}
	}
}

// spanOf returns a place of a text as a span.
func spanOf(t *ground.Text, p lookalike.Place) ground.Span {
	start := t.Point(p.Start)
	return ground.Span{
		Start: start, End: start + utf8.RuneCountInString(t.String()[p.Start:p.End]), ByteStart: p.Start, ByteEnd: p.End,
		Grade: ground.Lookalike, Coverage: 1, Density: 1,
	}
}

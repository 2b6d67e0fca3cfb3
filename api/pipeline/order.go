package pipeline

import (
	"cmp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// An Order sorts the inputs of batches by a field: of documents one of their metadata,
// of items a property.
type Order struct {
	Field      string
	Descending bool
}

// Ordering returns how the inputs of the stage are sorted; ok is false if they stay as
// they are.
func (s *Stage) Ordering() (_ Order, ok bool) {
	field, way, _ := strings.Cut(s.Order, " ")
	return Order{Field: field, Descending: way == "desc"}, s.Order != ""
}

// Compare compares what two inputs have in the field: numbers by size and before
// texts, texts by their bytes.
func (o Order) Compare(a, b string) int {
	x, xErr := strconv.ParseFloat(a, 64)
	y, yErr := strconv.ParseFloat(b, 64)

	var n int
	switch {
	case xErr == nil && yErr == nil:
		n = cmp.Compare(x, y)
	case xErr == nil:
		n = -1
	case yErr == nil:
		n = 1
	default:
		n = strings.Compare(a, b)
	}

	if o.Descending {
		return -n
	}
	return n
}

// Kept returns how many bytes of an input's text the stage keeps: those of its passage,
// or all.
func (s *Stage) Kept(text []byte) int {
	if s.Passage == 0 || int64(len(text)) <= s.Passage {
		return len(text)
	}

	at := 0
	for range s.Passage {
		if at == len(text) {
			break
		}
		_, n := utf8.DecodeRune(text[at:])
		at += n
	}

	return at
}

// Gathers reports whether each unit of the stage works on several documents, though not
// all of them as one: on a batch, or on all as one of several agents.
func (s *Stage) Gathers() bool {
	return s.From == Documents && (s.Each == EachBatch || s.Each == EachAgent)
}

package batch

import (
	"strings"

	"github.com/coditect/mapreduce/worker/llm"
)

// Bounds of the mark of an order, in bytes. The shortest is long enough that no two are alike by
// chance.
const (
	shortestMark = 8
	LongestMark  = 24
)

const (
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

	// between stands between mark and id of a line, as vendors are sent them. No mark has it.
	between = "-"
)

// CheckMark refuses a mark that is not 8 to LongestMark of the letters a-z, A-Z and 0-9.
func CheckMark(mark string) error {
	if len(mark) < shortestMark || len(mark) > LongestMark || strings.Trim(mark, letters) != "" {
		return llm.NewError(llm.Invalid, "the mark of an order, %q, is not %d to %d of a-z, A-Z and 0-9", mark, shortestMark, LongestMark)
	}
	return nil
}

// CheckID refuses an id of a line that is not one or more of a-z, A-Z, 0-9, _ and -, or longer than
// the vendor takes.
func (l Limits) CheckID(id string) error {
	switch {
	case id == "" || strings.Trim(id, letters+"_-") != "":
		return llm.NewError(llm.Invalid, "the id of a line, %q, is not one or more of a-z, A-Z, 0-9, _ and -", id)
	case l.LongestID > 0 && len(id) > l.LongestID:
		return llm.NewError(llm.Invalid, "the id of a line, %q, has %d bytes, and the vendor takes %d", id, len(id), l.LongestID)
	}
	return nil
}

// Check refuses an order that no vendor would take, or that passes a limit of lines and ids. Its
// bytes are the sum of Vendor.Size.
func (o Order) Check(l Limits) error {
	if err := CheckMark(o.Mark); err != nil {
		return err
	}

	switch n := len(o.Lines); {
	case n == 0:
		return llm.NewError(llm.Invalid, "an order has no lines")
	case n < l.Fewest:
		return llm.NewError(llm.Invalid, "an order has %d lines, and the vendor makes no batch of fewer than %d", n, l.Fewest)
	case l.Lines > 0 && n > l.Lines:
		return llm.NewError(llm.TooLarge, "an order has %d lines, and the vendor takes %d", n, l.Lines)
	}

	seen := make(map[string]bool, len(o.Lines))
	for _, line := range o.Lines {
		if err := l.CheckID(line.CustomID); err != nil {
			return err
		}
		if seen[line.CustomID] {
			return llm.NewError(llm.Invalid, "two lines of an order have the id %q", line.CustomID)
		}
		seen[line.CustomID] = true

		if line.Request.Model != o.Model {
			return llm.NewError(llm.Invalid, "line %q asks %q, and its order %q", line.CustomID, line.Request.Model, o.Model)
		}
	}
	return nil
}

// SentID returns the id by which a vendor is sent a line: whichever line of a batch comes first among
// its results, its id says whose it is.
func SentID(mark, customID string) string { return mark + between + customID }

// CutID returns the mark and the id of a line from what a vendor was sent. It is false if that is none
// of ours.
func CutID(sent string) (mark, customID string, ok bool) {
	mark, customID, ok = strings.Cut(sent, between)
	if !ok || customID == "" || CheckMark(mark) != nil {
		return "", "", false
	}
	return mark, customID, true
}

// Fit returns how many of the next lines, whose sizes are given, fit into one order. It is 0 only if
// the first is too large by itself, or there are none.
func (l Limits) Fit(sizes []int64) int {
	var total int64
	for n, size := range sizes {
		total += size
		if l.Lines > 0 && n == l.Lines || l.Bytes > 0 && total > l.Bytes {
			return n
		}
	}
	return len(sizes)
}

package toolbox

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/worker/tool"
)

// Bounds of the evidence of one call.
const (
	maxPieces   = 64       // of evidence
	maxURI      = 2 << 10  // bytes
	maxTitle    = 512      // bytes
	maxMedia    = 128      // bytes
	maxMetadata = 32       // names
	maxValue    = 1 << 10  // bytes of a name or value of Metadata
	maxAll      = 16 << 20 // bytes of all evidence of a call
)

// within returns a result within its bounds. It shares no memory with the original, which
// may be huge: texts are cloned after they were cut.
func within(spec *tool.Spec, in *tool.Result, now time.Time) *tool.Result {
	out := &tool.Result{Cut: max(in.Cut, 0)}
	text := shorten.Bytes(in.Text, spec.MaxOutput)
	out.Cut += int64(len(in.Text) - len(text))
	out.Text = strings.ToValidUTF8(strings.Clone(text), "\uFFFD")

	for _, l := range in.Links[:min(len(in.Links), tool.MaxLinks)] {
		if l.Address != "" && len(l.Address) <= maxURI && utf8.ValidString(l.Address) {
			out.Links = append(out.Links, tool.Link{Text: plain(l.Text, maxTitle), Address: strings.Clone(l.Address)})
		}
	}

	for i := range in.Pictures {
		p := &in.Pictures[i]
		if i >= tool.MaxPictures || len(p.Data) > tool.MaxPicture {
			out.Cut += int64(len(p.Data))
			continue
		}
		// Only the words about it are bounded here: a picture has no text.
		e, _ := bounded(&tool.Evidence{URI: p.URI, Title: p.Title, Media: p.Media, Retrieved: p.Retrieved}, 0, now)
		out.Pictures = append(out.Pictures, tool.Picture{URI: e.URI, Title: e.Title, Media: e.Media, Retrieved: e.Retrieved, Data: bytes.Clone(p.Data)})
	}

	room := maxAll
	for i := range in.Evidence {
		e := &in.Evidence[i]
		if i >= maxPieces || room == 0 {
			out.Cut += int64(len(e.Text))
			continue
		}
		one, left := bounded(e, min(room, tool.MaxEvidence), now)
		out.Cut += int64(left)
		room -= min(room, len(one.Text))
		if strings.TrimSpace(one.Text) != "" {
			out.Evidence = append(out.Evidence, one)
		}
	}
	return out
}

// bounded returns a piece of evidence within its bounds, and how many bytes of its text were
// left out.
func bounded(e *tool.Evidence, most int, now time.Time) (out tool.Evidence, left int) {
	text := shorten.Bytes(e.Text, most)
	left = len(e.Text) - len(text)
	valid := utf8.ValidString(text)
	out = tool.Evidence{
		URI: plain(e.URI, maxURI), Title: plain(e.Title, maxTitle), Media: plain(e.Media, maxMedia),
		Retrieved: e.Retrieved, Text: strings.ToValidUTF8(strings.Clone(text), "\uFFFD"),
	}

	if out.Retrieved.IsZero() || out.Retrieved.After(now) {
		out.Retrieved = now
	}
	if valid { // else offsets are those of another text
		out.Shown = ranges(e.Shown, out.Text)
	}

	for _, name := range slices.Sorted(maps.Keys(e.Metadata)) {
		if len(out.Metadata) == maxMetadata {
			break
		}
		if out.Metadata == nil {
			out.Metadata = make(map[string]string)
		}
		out.Metadata[plain(name, maxValue)] = plain(e.Metadata[name], maxValue)
	}

	return out, left
}

// ranges returns ranges of a text that lie in it, in order, apart, and between characters.
func ranges(in []tool.Range, text string) []tool.Range {
	var out []tool.Range
	sorted := slices.Clone(in[:min(len(in), 1024)])
	slices.SortFunc(sorted, func(a, b tool.Range) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) })

	for _, r := range sorted {
		r.Start, r.End = min(max(r.Start, 0), len(text)), min(max(r.End, 0), len(text))
		for r.Start > 0 && r.Start < len(text) && !utf8.RuneStart(text[r.Start]) {
			r.Start--
		}
		for r.End < len(text) && !utf8.RuneStart(text[r.End]) {
			r.End++
		}

		// Ranges that touch become one.
		if n := len(out); n > 0 && r.Start <= out[n-1].End {
			out[n-1].End = max(out[n-1].End, r.End)
			continue
		}
		if r.Start < r.End {
			out = append(out, r)
		}
	}

	return out
}

// plain returns a text on one line, valid, without control characters, and in at most n bytes.
func plain(text string, n int) string {
	text = strings.ToValidUTF8(shorten.Bytes(text, 4*n), "\uFFFD")
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, text)
	return shorten.MarkedBytes(strings.TrimSpace(text), n)
}

package loop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/worker/agent/model/prompt"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/tool"
)

// show returns the text that the model gets for a call: each evidence between marks that
// name it, and what the tool said besides.
func (c *conversation) show(ctx context.Context, b *brought) (string, error) {
	texts := make([]string, len(b.Shown))
	for i, s := range b.Shown {
		whole, err := c.calls.EvidenceText(ctx, s.Document)
		if err != nil {
			return "", err
		}

		var pieces []string
		for _, r := range s.Ranges {
			if r.Start < 0 || r.End > len(whole) || r.Start >= r.End {
				return "", fmt.Errorf("journal: bytes %d to %d of %s, which has %d", r.Start, r.End, s.Document, len(whole))
			}
			pieces = append(pieces, string(whole[r.Start:r.End]))
		}
		texts[i] = strings.Join(pieces, "\n[…]\n")
	}

	// None of the texts may hold the mark, or it could end its own frame.
	mark := prompt.Mark(append(slices.Clone(texts), b.Text)...)
	var out strings.Builder
	for i, s := range b.Shown {
		writeEvidence(&out, s, texts[i], mark)
	}

	if b.Text != "" {
		fmt.Fprintf(&out, "<result %s>\n%s\n</result %s>\n", mark, b.Text, mark)
	}
	if b.Cut > 0 {
		fmt.Fprintf(&out, "%d more bytes were left out: the result was too large.\n", b.Cut)
	}

	if out.Len() == 0 {
		return "The tool found nothing.\n", nil
	}
	return out.String(), nil
}

// writeEvidence writes a piece of evidence.
func writeEvidence(out *strings.Builder, s shown, text, mark string) {
	fmt.Fprintf(out, "<%s %s> %s", s.Document, mark, shorten.Line(s.URI, maxQuery))
	if s.Title != "" {
		fmt.Fprintf(out, " %q", shorten.Line(s.Title, maxQuery))
	}
	fmt.Fprintf(out, "\n%s\n</%s %s>\n", text, s.Document, mark)

	seen := 0
	for _, r := range s.Ranges {
		seen += r.End - r.Start
	}
	if seen >= s.Bytes {
		return
	}

	next := 0
	if n := len(s.Ranges); n > 0 && s.Ranges[n-1].End < s.Bytes {
		next = s.Ranges[n-1].End
	}
	fmt.Fprintf(out, "These are %d of %d bytes; %s reads on.\n", seen, s.Bytes, rereadCall(s.Document, next))
}

// The tool that every agent has: it reads what the unit has brought already.
const (
	rereadName   = "read_evidence"
	rereadOutput = 16 << 10 // bytes of a call
	rereadSchema = `{"type":"object","properties":{"document":{"type":"string","description":"the id of the text: evidence_…"},` +
		`"offset":{"type":"integer","description":"the byte to begin at; 0 is the beginning"}},"required":["document","offset"],"additionalProperties":false}`
)

// rereadTool describes the tool for models.
func rereadTool() llm.Tool {
	schema, err := llm.NewSchema(rereadName, []byte(rereadSchema))
	if err != nil {
		panic(err) // it is a constant
	}
	return llm.Tool{
		Name: rereadName, Schema: schema,
		Description: "Reads a text again that one of your tools has brought, or reads on in a long one. It costs nothing, and asks nobody.",
	}
}

// rereadCall says how to read evidence from a byte on.
func rereadCall(id mapreduce.DocumentID, offset int) string {
	return fmt.Sprintf(`%s {"document":"%s","offset":%d}`, rereadName, id, offset)
}

// answerReread answers a call of the tool.
func (c *conversation) answerReread(ctx context.Context, input json.RawMessage) (text string, isError bool, err error) {
	var in struct {
		Document mapreduce.DocumentID `json:"document"`
		Offset   json.Number          `json:"offset"`
	}
	d := json.NewDecoder(bytes.NewReader(input))
	if err := d.Decode(&in); err != nil {
		return "The input has to be {\"document\": \"evidence_…\", \"offset\": 0}.", true, nil
	}

	known := c.calls.Evidence()
	i := slices.IndexFunc(known, func(e mapreduce.Evidence) bool { return e.Document == in.Document })
	if i < 0 {
		return fmt.Sprintf("There is no text %.80q: no tool has brought it.", in.Document), true, nil
	}
	if known[i].IsPicture() {
		return fmt.Sprintf("%s is a picture, for people.", in.Document), true, nil
	}

	whole, err := c.calls.EvidenceText(ctx, in.Document)
	switch {
	case errors.Is(err, errs.NotFound):
		return fmt.Sprintf("There is no text %.80q any more.", in.Document), true, nil
	case err != nil:
		return "", false, err
	}

	at, err := in.Offset.Int64()
	if err != nil {
		at = 0
	}

	// Neither end may stand within a character.
	start := int(max(0, min(at, int64(len(whole)))))
	for start > 0 && start < len(whole) && !utf8.RuneStart(whole[start]) {
		start--
	}
	end := start + shorten.Boundary(string(whole[start:min(len(whole), start+rereadOutput+utf8.UTFMax)]), rereadOutput)
	text = string(whole[start:end])

	e := &known[i]
	var out strings.Builder
	s := shown{Document: e.Document, URI: e.URI, Title: e.Title, Bytes: len(whole), Ranges: []tool.Range{{Start: start, End: end}}}
	writeEvidence(&out, s, text, prompt.Mark(text))
	return out.String(), false, nil
}

// roomAfter is how full the context is left when something had to be left out, so that the
// next turn need not leave out more, which would cost what vendors keep of the prefix.
const roomAfter = 0.75

// fit leaves out results of tools, the oldest first, until the context is no fuller than
// most. It reports whether it left out any. The last results go last.
func (c *conversation) fit(most float64) (changed bool) {
	if c.talk.Fill(c.request()) <= most {
		return false
	}

	for m := range c.said {
		for p := range c.said[m].Parts {
			if c.drop(place{m, p}) {
				changed = true
				if c.talk.Fill(c.request()) <= most*roomAfter {
					return true
				}
			}
		}
	}
	return changed
}

// dropHalf leaves out half of what tools brought, the oldest first, where the model says that
// it was given too much. It reports whether it left out any.
func (c *conversation) dropHalf() (changed bool) {
	var left []place
	for m := range c.said {
		for p, part := range c.said[m].Parts {
			if at := (place{m, p}); part.Result != nil && !c.dropped[at] && len(part.Result.Text) >= minDropped {
				left = append(left, at)
			}
		}
	}

	for _, at := range left[:(len(left)+1)/2] {
		changed = c.drop(at) || changed
	}
	return changed
}

// minDropped is the least that is worth leaving out, in bytes.
const minDropped = 400

// drop puts a line in place of what a tool brought, and reports whether it did.
func (c *conversation) drop(at place) bool {
	part := &c.said[at.message].Parts[at.part]
	if part.Result == nil || c.dropped[at] || len(part.Result.Text) < minDropped {
		return false
	}

	call := c.callOf(at)
	line := fmt.Sprintf("[%d bytes that %s brought were left out, to keep the conversation within its limit.", len(part.Result.Text), shorten.Line(part.Result.Name, 80))
	if call != nil {
		line = fmt.Sprintf("[%d bytes that %s %s brought were left out, to keep the conversation within its limit.", len(part.Result.Text), shorten.Line(part.Result.Name, 80), shorten.Line(string(call.Input), maxQuery))
	}

	if ids := evidenceIn(part.Result.Text); len(ids) > 0 {
		line += " They can be read again by"
		for i, id := range ids[:min(len(ids), 8)] {
			if i > 0 {
				line += ","
			}
			line += " " + rereadCall(id, 0)
		}
		line += ".]"
	} else {
		line += " Call it again if you need them.]"
	}

	if len(line) >= len(part.Result.Text) {
		return false
	}

	result := *part.Result
	result.Text = line
	parts := slices.Clone(c.said[at.message].Parts) // requests that were made hold the old ones
	parts[at.part].Result = &result
	c.said[at.message].Parts = parts
	c.dropped[at] = true
	return true
}

// callOf returns the call that a result answers.
func (c *conversation) callOf(at place) *llm.ToolCall {
	result := c.said[at.message].Parts[at.part].Result
	if at.message == 0 {
		return nil
	}
	for _, p := range c.said[at.message-1].Parts {
		if p.Call != nil && p.Call.ID == result.ID {
			return p.Call
		}
	}
	return nil
}

// evidenceIn returns the evidence that a result shows, each once, in order.
func evidenceIn(text string) (ids []mapreduce.DocumentID) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "<evidence_"); ok {
			name, _, _ := strings.Cut(rest, " ")
			if id := mapreduce.DocumentID("evidence_" + name); id.IsEvidence() && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

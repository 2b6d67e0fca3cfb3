package scripted

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/unit"
)

// found is the end of every page: what units cite of it.
const found = "what the script found"

// findEvidence does as an agent does whose tool reads pages: it keeps script.pages of them,
// of script.page_bytes each, and cites each once.
func (r *run) findEvidence(ctx context.Context) ([]output.Citation, error) {
	var all []output.Citation
	for n := range r.script.pages {
		head := fmt.Sprintf("Page %d of %s. ", n, r.task.Unit)
		// The quote stands at the very end, behind the filler.
		text := head + strings.Repeat("x", max(0, r.script.pageBytes-len(head)-len(found)-2)) + ". " + found
		id, err := r.calls.KeepEvidence(ctx, mapreduce.Evidence{
			URI: fmt.Sprintf("script:%s/%d", r.task.Unit, n), Title: strings.TrimSuffix(head, ". "), Tool: "script",
		}, []byte(text))
		if err != nil {
			return nil, err
		}

		e, err := unit.Evidence(ctx, r.calls, id)
		if err != nil {
			return nil, err
		}

		end := utf8.RuneCountInString(text)
		all = append(all, e.Cite(string(r.task.Unit), ground.Span{
			Start: end - len(found), End: end, ByteStart: len(text) - len(found), ByteEnd: len(text), Grade: ground.Exact, Places: 1,
		}))
	}
	return all, nil
}

// choose makes the output of a unit that chooses passages of citations.
func choose(all []output.Citation) (*agent.Result, error) {
	passages := make([]output.Passage, len(all))
	for i, c := range all {
		passages[i] = output.Passage{Citation: c, Size: int64(len(c.Quote)) + output.PassageOverhead}
	}
	out, err := output.ChoosePassages(passages)
	if err != nil {
		return nil, agent.Permanent(err)
	}
	return unit.Valued(out)
}

package scripted

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/refs"
	"github.com/coditect/mapreduce/worker/agent"
)

// The faults of a Reducer: the values of script.reducer, separated by commas.
const (
	// These answer as a bad model does, which Decide has to survive.
	drops    = "drop"    // passes on one reference of several, or no value at all
	invents  = "invent"  // cites a reference that was not issued
	mixes    = "mix"     // cites what is about another field or record
	rewrites = "rewrite" // changes values, and how references are written

	// These make an output as a bad agent does, which has to be refused.
	forgesCitation = "forge_citation" // adds one
	forgesQuote    = "forge_quote"    // changes a quote
	forgesLoss     = "forge_loss"     // drops one without a word
	forgesSource   = "forge_source"   // drops a record with its source
)

// A Reducer runs units as another agent does, and spoils its reduces by script.
type Reducer struct {
	Agent agent.Agent // makes outputs as internal/outcome/output encodes them
}

var _ agent.Agent = (*Reducer)(nil)

// Run implements agent.Agent.
func (r *Reducer) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	res, err := r.Agent.Run(ctx, task, calls)
	how := task.Spec.Vars["script.reducer"]
	if err != nil || how == "" || task.Kind != mapreduce.KindReduce && task.Kind != mapreduce.KindFinal {
		return res, err
	}

	s, err := schema.Shared(task.Spec.Schema)
	if err != nil {
		return nil, agent.PermanentJob(err)
	}
	out, err := output.Decode(res.Output)
	if err != nil {
		return nil, err
	}

	h := &hostile{schema: s, out: out, unit: task.Unit, rand: newRand(int64(len(how)), task.Unit, 0), issued: out.Issue()}
	for doing := range strings.SplitSeq(how, ",") {
		if err := h.runHostile(strings.TrimSpace(doing)); err != nil {
			return nil, agent.PermanentJob(err)
		}
	}

	// Decide removes what no honest reduce may have, and notes it.
	out.Decide(s, string(task.Unit), h.issued, h.decisions)
	if res.Output, err = out.Encode(); err != nil {
		return nil, err
	}

	for _, m := range out.Removed {
		if m.Unit == string(task.Unit) {
			res.Errors = append(res.Errors, fmt.Sprintf("%s: removed %q: %s", m.Field, m.Name, m.Reason))
		}
	}
	return res, nil
}

// A hostile reducer spoils one output.
type hostile struct {
	schema    *schema.Schema
	out       *output.Output
	unit      mapreduce.UnitID
	rand      *rand.Rand
	issued    *output.Issued
	decisions []output.Decision
}

func (h *hostile) runHostile(doing string) error {
	answer := map[string]func(*output.Decision, []string){drops: h.dropRefs, invents: h.inventRefs, mixes: h.mixRefs, rewrites: h.rewriteValue}[doing]
	if answer != nil {
		h.spoilDecisions(answer)
		return nil
	}

	forge := map[string]func(){
		forgesCitation: h.forgeCitation, forgesQuote: h.forgeQuote, forgesLoss: h.forgeLoss, forgesSource: h.forgeSource,
	}[doing]
	if forge == nil {
		return fmt.Errorf("script.reducer: %q is nothing that a reducer does", doing)
	}

	forge()
	return nil
}

// spoilDecisions decides about half of all fields: an honest decision, spoiled.
func (h *hostile) spoilDecisions(spoil func(*output.Decision, []string)) {
	for i, e := range h.out.Entries {
		for _, f := range e.Fields {
			if len(f.Candidates) == 0 || h.rand.IntN(2) == 0 {
				continue
			}

			c := f.Candidates[h.rand.IntN(len(f.Candidates))]
			var names []string
			for _, m := range c.Mentions {
				for _, id := range m.Citations {
					names = append(names, h.issued.Name(id))
				}
			}

			d := output.Decision{Entry: i, Field: f.Path, Value: c.Value, Refs: slices.Clone(names), Said: 1}
			spoil(&d, names)
			h.decisions = append(h.decisions, d)
		}
	}
}

func (h *hostile) dropRefs(d *output.Decision, names []string) {
	if h.rand.IntN(8) == 0 {
		d.Value, d.Refs = nil, nil
		return
	}
	d.Refs = names[:min(1, len(names))]
}

func (h *hostile) inventRefs(d *output.Decision, names []string) {
	d.Refs = append(d.Refs, fmt.Sprintf("REF_%08x", h.rand.Uint32()), "[7]", "REF_", "REF_notathing1")
	if len(names) > 0 { // one digit off
		last := names[0][len(names[0])-1]
		d.Refs = append(d.Refs, names[0][:len(names[0])-1]+string(rune('0'+(last+1)%10)), names[0]+"0", names[0][:8])
	}
	if text, ok := d.Value.(string); ok && h.rand.IntN(2) == 0 {
		d.Value = text + " [REF_deadbeef]"
	}
}

func (h *hostile) mixRefs(d *output.Decision, _ []string) {
	all := h.issued.Names()
	for range min(3, len(all)) {
		d.Refs = append(d.Refs, all[h.rand.IntN(len(all))])
	}
}

func (h *hostile) rewriteValue(d *output.Decision, names []string) {
	switch v := d.Value.(type) {
	case string:
		d.Value = []any{"quite another value", strings.ToUpper(v), v + " (approximately)", "according to " + strings.Join(names, " and ") + ": " + v}[h.rand.IntN(4)]
	case json.Number:
		d.Value = []any{json.Number(v.String() + "1"), "about " + v.String(), v}[h.rand.IntN(3)]
	}

	for i, name := range d.Refs {
		d.Refs[i] = []string{strings.ToUpper(name), "[" + name + "]", " " + name + " "}[h.rand.IntN(3)]
	}
	d.Refs = []string{strings.Join(d.Refs, ", ")}
}

// firstMention returns a mention with citations.
func (h *hostile) firstMention() *merge.Mention {
	for i := range h.out.Entries {
		for _, f := range h.out.Entries[i].Fields {
			for _, c := range f.Candidates {
				for k := range c.Mentions {
					if len(c.Mentions[k].Citations) > 0 {
						return &c.Mentions[k]
					}
				}
			}
		}
	}
	return nil
}

func (h *hostile) forgeCitation() {
	if m := h.firstMention(); m != nil {
		quote := "what no document says"
		m.Citations = append(m.Citations, h.out.Cite(output.Citation{
			ID: refs.New(refs.DocumentHash{}, 0, len(quote), quote), Document: "doc000", Unit: "doc000",
			End: int64(len(quote)), ByteEnd: int64(len(quote)), Quote: quote, Grade: "exact",
		}))
		slices.Sort(m.Citations)
	}
}

func (h *hostile) forgeQuote() {
	if m := h.firstMention(); m != nil {
		c := h.out.Citations[m.Citations[0]]
		c.Quote = strings.Repeat("x", len(c.Quote))
		h.out.Citations[m.Citations[0]] = c
	}
}

func (h *hostile) forgeLoss() {
	if m := h.firstMention(); m != nil {
		m.Citations = nil
	}
}

func (h *hostile) forgeSource() {
	if len(h.out.Entries) > 0 {
		e := &h.out.Entries[0]
		e.Sources = e.Sources[:len(e.Sources)-1]
	}
}

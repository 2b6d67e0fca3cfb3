package check

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
)

// Reduce checks the output of a reduce against all that it was given: that
// each citation is one of theirs, unchanged, and stands for the field and the
// entity that it stood for; that each one that is gone is listed with a reason;
// that records and their sources are neither made up nor lost; and that what
// reduces below have reported is reported still.
func Reduce(inputs []*output.Output, o *output.Output) error {
	if err := checkCounts(o, "a reduce", 0); err != nil {
		return err
	}

	c := &reduceCheck{
		given: make(map[merge.Citation][]output.Citation), entryOf: make(map[output.Member]*output.Entry), dropped: make(map[drop]bool),
		named: make(map[output.Member]bool),
	}

	for _, in := range inputs {
		c.addInput(in)
	}
	// The order matters: the checks of entries and of names use what those before them have
	// collected.
	for _, check := range []func(*output.Output) error{c.checkCitations, c.checkReports, c.checkEntries, c.checkSightings, c.checkReviewed, c.checkNames} {
		if err := check(o); err != nil {
			return err
		}
	}

	if err := c.findUnnamed(inputs); err != nil {
		return err
	}
	return c.findLost()
}

type reduceCheck struct {
	given   map[merge.Citation][]output.Citation
	inputs  []*output.Entry                 // entries of the inputs
	entryOf map[output.Member]*output.Entry // of the inputs
	dropped map[drop]bool                   // by the reduces below, then by this one too
	removed []output.Removed                // by the reduces below
	named   map[output.Member]bool          // by the inputs, without what it says
	decided []output.Decided                // the same
	seen    map[output.Member]bool          // in the output
	passed  map[output.Member]string        // named by the output: its entity
}

// A drop is a citation of a field.
type drop struct {
	field    string
	citation merge.Citation
}

func (c *reduceCheck) addInput(in *output.Output) {
	for id, cite := range in.Citations {
		c.given[id] = append(c.given[id], cite)
	}

	for i := range in.Entries {
		e := &in.Entries[i]
		c.inputs = append(c.inputs, e)
		for _, m := range e.Members {
			c.entryOf[m] = e
		}
	}

	for _, op := range in.Open {
		c.named[op.Member] = true
	}

	// What was reported below has to be reported on.
	for _, d := range in.Dropped {
		c.dropped[drop{d.Field, d.Citation}] = true
	}
	c.removed = append(c.removed, in.Removed...)
	c.decided = append(c.decided, in.Decided...)
}

// checkCitations checks that each is as it was given.
func (c *reduceCheck) checkCitations(o *output.Output) error {
	return c.checkGiven(o, o.UsedCitations())
}

// checkGiven checks that some citations are as they were given.
func (c *reduceCheck) checkGiven(o *output.Output, some map[merge.Citation]bool) error {
	for id := range some {
		cite, ok := o.Citations[id]
		switch {
		case !ok || cite.Key() != id:
			return output.ErrUncited
		case len(c.given[id]) == 0:
			return breachError("a reduce cites %.80q of %s, which it was not given", cite.Quote, cite.Document)
		case !slices.Contains(c.given[id], cite):
			return breachError("a reduce changed the citation of %.80q of %s", c.given[id][0].Quote, c.given[id][0].Document)
		}
	}
	return nil
}

// checkReports checks that what was reported is reported still, with reasons.
func (c *reduceCheck) checkReports(o *output.Output) error {
	now := make(map[drop]bool, len(o.Dropped))
	for _, d := range o.Dropped {
		if strings.TrimSpace(d.Reason) == "" {
			return breachError("%s: a citation was dropped without a reason", d.Field)
		}
		now[drop{d.Field, d.Citation}] = true
	}

	for d := range c.dropped {
		if !now[d] {
			return breachError("%s: a citation that was dropped below is not listed any more", d.field)
		}
	}

	// From here on a citation counts as dropped if this output lists it.
	c.dropped = now

	still := make(map[output.Removed]bool, len(o.Removed))
	for _, r := range o.Removed {
		still[r] = true
	}
	for _, r := range c.removed {
		if !still[r] {
			return breachError("%s: %.80q, which was removed below, is not listed any more", r.Field, r.Name)
		}
	}

	return c.checkDecisions(o)
}

// checkDecisions checks that what was decided below is listed still, and that what was
// decided here is between several values, each cited, with a reason.
func (c *reduceCheck) checkDecisions(o *output.Output) error {
	below := make(map[string]int)
	for i := range c.decided {
		below[identityKey(&c.decided[i])]++
	}

	// A decision that is no input's was made by this reduce.
	for i := range o.Decided {
		d := &o.Decided[i]
		if below[identityKey(d)]--; below[identityKey(d)] >= 0 {
			continue
		}

		if strings.TrimSpace(d.Rationale) == "" || len(d.Candidates) < 2 {
			return breachError("%s: a conflict was decided without a reason, or between fewer than two values", d.Field)
		}
		for _, one := range d.Candidates {
			if len(one.Citations) == 0 {
				return breachError("%s: a value was compared that cites nothing", d.Field)
			}
		}
	}

	for _, d := range c.decided {
		if below[identityKey(&d)] > 0 {
			return breachError("%s: a conflict that was decided below is not listed any more", d.Field)
		}
	}

	return nil
}

// checkEntries checks that each is made of whole entries that were given.
func (c *reduceCheck) checkEntries(o *output.Output) error {
	c.seen = make(map[output.Member]bool)

	for i := range o.Entries {
		e := &o.Entries[i]

		var from []*output.Entry
		for _, m := range e.Members {
			in := c.entryOf[m]
			if in == nil || c.seen[m] {
				return breachError("a reduce has record %d of unit %d twice, or was not given it", m.Record, m.Unit)
			}
			c.seen[m] = true

			// The members of one entry mostly follow each other. An entry that is listed
			// twice does no harm.
			if !slices.Contains(from[max(0, len(from)-1):], in) {
				from = append(from, in)
			}
		}

		if err := c.checkEntry(e, from); err != nil {
			return err
		}
	}
	return nil
}

// checkEntry checks one entry against those that it was made of.
func (c *reduceCheck) checkEntry(e *output.Entry, from []*output.Entry) error {
	had, sources := make(map[drop]bool), make(map[string]bool)
	for _, in := range from {
		for _, s := range in.Sources {
			sources[s.Document] = true
		}
		for field, m := range in.Mentions() {
			for _, id := range m.Citations {
				had[drop{field, id}] = true
			}
		}
	}

	for _, s := range e.Sources {
		if !sources[s.Document] {
			return breachError("a reduce names the source %s, which is none", s.Document)
		}
		delete(sources, s.Document)
	}

	// What is left was in the inputs alone.
	for document := range sources {
		return breachError("a reduce lost the source %s", document)
	}

	has := make(map[drop]bool)
	for field, m := range e.Mentions() {
		for _, id := range m.Citations {
			if !had[drop{field, id}] {
				return breachError("%s cites what is about another field or record", field)
			}
			has[drop{field, id}] = true
		}
	}

	for d := range had {
		if !has[d] && !c.dropped[d] {
			return breachError("%s: a citation is neither passed on nor listed as dropped", d.field)
		}
	}

	return nil
}

// checkNames checks that each record that is named was given, and is not held too.
func (c *reduceCheck) checkNames(o *output.Output) error {
	c.passed = make(map[output.Member]string, len(o.Open))
	for _, op := range o.Open {
		_, twice := c.passed[op.Member]
		if twice || c.seen[op.Member] || !c.named[op.Member] && c.entryOf[op.Member] == nil {
			return breachError("a reduce names record %d of unit %d twice, or was not given it", op.Record, op.Unit)
		}
		c.passed[op.Member] = op.Entity
	}
	return nil
}

// findUnnamed looks for records that a reduce below had no room to merge, and that
// are gone.
func (c *reduceCheck) findUnnamed(inputs []*output.Output) error {
	late := output.Deferred(inputs)
	for _, in := range inputs {
		for _, op := range in.Open {
			if _, ok := c.passed[op.Member]; late[op.Entity] && !ok && !c.seen[op.Member] {
				return breachError("a reduce lost record %d of unit %d, which has yet to be merged", op.Record, op.Unit)
			}
		}
	}
	return nil
}

// findLost looks for entries of the inputs that are in the output in part, or that
// only a reduce held and that are gone. A single record stands in the output of
// its map unit, and so do those of an entity that the output names all of.
func (c *reduceCheck) findLost() error {
	for _, e := range c.inputs {
		held, named := 0, 0
		for _, m := range e.Members {
			if c.seen[m] {
				held++
			}
			if entity, ok := c.passed[m]; ok && entity == c.passed[e.Members[0]] {
				named++
			}
		}

		// None of the records may be there: each then stands in the output of its map unit,
		// unless the entry was merged, and only a reduce has it.
		if n := max(held, named); n < len(e.Members) && (n > 0 || len(e.Members) > 1) {
			return breachError("a reduce lost %d of the %d records of one entity", len(e.Members)-n, len(e.Members))
		}
	}
	return nil
}

// identityKey is the same for equal decisions.
func identityKey(d *output.Decided) string {
	raw, err := json.Marshal(d)
	if err != nil {
		return fmt.Sprintf("%+v", d) // of values that came as JSON there is no error
	}
	return string(raw)
}

// ownCitations returns the citations that none of the inputs has, which a unit may have
// found itself.
func (c *reduceCheck) ownCitations(o *output.Output) (own []output.Citation, rest map[merge.Citation]bool) {
	rest = make(map[merge.Citation]bool)
	for id := range o.UsedCitations() {
		cite, ok := o.Citations[id]
		if ok && cite.Key() == id && !slices.Contains(c.given[id], cite) {
			own = append(own, cite)
			continue
		}

		rest[id] = true
	}
	return own, rest
}

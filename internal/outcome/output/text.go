package output

import (
	"encoding/json"
	"strings"

	"github.com/coditect/mapreduce/internal/text/refs"
)

// Text is what the output says, as far as a reduce has to read it: the values of
// all records with the quotes behind them, the names of records that others may
// yet join, and what reducers said of what they left out.
func (o *Output) Text() string {
	var b strings.Builder
	line := func(parts ...string) {
		for _, p := range parts {
			b.WriteString(p)
		}
		b.WriteByte('\n')
	}

	for i := range o.Entries {
		for _, f := range o.Entries[i].Fields {
			for _, c := range f.Candidates {
				line(f.Path, ": ", Show(c.Value))
				for _, m := range c.Mentions {
					for _, id := range m.Citations {
						line("  ", o.Citations[id].Quote)
					}
				}
			}
			if f.Missing != nil {
				line(f.Path, ": ", f.Missing.Reason)
			}
		}
	}

	if len(o.Value) > 0 {
		// References in full would count for far more than they take in a prompt.
		line(string(Respelled(o.Value, shortName)))
	}

	for _, open := range o.Open {
		line(open.Entity)
	}
	for _, d := range o.Dropped {
		line(d.Field, ": ", d.Reason)
	}
	for _, r := range o.Removed {
		line(r.Field, ": ", r.Reason)
	}

	return b.String()
}

// shortName spells a reference about as long as prompts do.
func shortName(id refs.ID) string { return id.Full()[:len(refs.Mark)+refs.MinDigits] }

// Show writes a value as a prompt would.
func Show(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	data, err := json.Marshal(value)
	if err != nil {
		return "" // it cannot be encoded either, which Encode says
	}
	return string(data)
}

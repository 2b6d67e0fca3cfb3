package merge

import (
	"maps"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema/hint"
)

// A map is merged entry by entry: each is a candidate of its own, an object with one name.
// Entries of different names stand beside each other, and the strategy decides between the
// values of one name.

// entriesOf returns the entries of a map, each as an object, by their names.
func entriesOf(m map[string]any) []any {
	list := make([]any, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, map[string]any{name: m[name]})
	}
	return list
}

// nameOf returns the name of an entry; "" if it is none, as a value that is no map.
func nameOf(v any) string {
	m, _ := v.(map[string]any)
	for name := range m {
		return name
	}
	return ""
}

// splitMaps replaces values that are maps by their entries.
func splitMaps(values []Value) []Value {
	var all []Value
	for _, v := range values {
		m, ok := v.Value.(map[string]any)
		if !ok {
			all = append(all, v)
			continue
		}

		for _, entry := range entriesOf(m) {
			one := v
			one.Value = entry
			all = append(all, one)
		}
	}
	return all
}

// joinEntries makes a map of entries, of which the strategy chose one for each name.
func (c chooser) joinEntries(strategy hint.Merge) decision {
	if strategy == hint.MergeUnion {
		strategy = hint.MergeVote
	}

	byName := map[string][]option{}
	for _, o := range c.all {
		byName[nameOf(o.Value)] = append(byName[nameOf(o.Value)], o)
	}

	joined, chosen := map[string]any{}, []option{}
	var conflicts []string
	var lost string
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		of := chooser{c.property, byName[name]}
		d := of.pickBest(strategy)
		if m, ok := d.value.display.(map[string]any); ok {
			maps.Copy(joined, m)
		}

		// The citations of the value that was chosen for a name count for the map.
		for _, o := range of.all {
			if o.Key == d.value.key {
				chosen = append(chosen, o)
			}
		}

		if d.conflict {
			conflicts, lost = append(conflicts, name+": "+d.rationale), d.lossReason
		}
	}

	d := chooser{c.property, chosen}.joinCitations()
	d.value = chosenValue{c.property.Identity(joined), joined}
	d.conflict, d.rationale, d.lossReason = len(conflicts) > 0, strings.Join(conflicts, "; "), lost
	return d
}

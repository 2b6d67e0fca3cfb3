// Package sections says in which sections and columns a report is read, by what its schema says
// of its properties.
//
// It is pure.
package sections

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/text/derive"
)

// A Section is a property of a report with its title.
type Section struct {
	Name, Title string
	rank        int
	Items       *schema.Property // of a list; nil if the schema says nothing of them
}

// Of returns the sections of a report in the order in which they are read: by what
// the schema says that they are, and otherwise by name.
func Of(source []byte, object map[string]json.RawMessage) []Section {
	hints := make(map[string]*schema.Property)
	if s, err := schema.Shared(source); err == nil {
		for i := range s.Properties {
			hints[s.Properties[i].Name] = &s.Properties[i]
		}
	}

	// The order in which a report is read, by the hints of the schema: "" is a property
	// without one.
	order := []string{"opening", "summary", "evidence", "", "closing", "topics"}
	var all []Section
	for _, name := range slices.Sorted(maps.Keys(object)) {
		one := Section{Name: name, Title: titleOf(name), rank: 3}
		if p := hints[name]; p != nil {
			one.Items = p.Items
			if p.Title != "" {
				one.Title = p.Title
			}
			if at := slices.Index(order, p.Hints.Write); at >= 0 {
				one.rank = at
			}
		}
		all = append(all, one)
	}

	slices.SortStableFunc(all, func(a, b Section) int { return a.rank - b.rank })
	return all
}

// titleOf makes a title of the name of a property.
func titleOf(name string) string {
	words := strings.ReplaceAll(name, "_", " ")
	return strings.ToUpper(words[:min(1, len(words))]) + words[min(1, len(words)):]
}

// DecimalsOf returns a number of a table with the decimals that its schema states, or else those that a quote
// of its row writes it with. The property is nil if the schema does not say what the column is.
func DecimalsOf(p *schema.Property, number string, quotes []string) string {
	n, ok := 0, false
	if p != nil {
		n, ok = derive.DecimalsOf(p)
	}
	for i := 0; i < len(quotes) && !ok; i++ {
		n, ok = derive.DecimalsIn(number, quotes[i])
	}
	return derive.Padded(number, n)
}

// ColumnsOf returns the columns of a table of objects, by the paths of their values: in the
// order of the schema, and without one by name.
func ColumnsOf(items *schema.Property, rows []any) []string {
	var columns []string
	add := func(path string) {
		if !slices.Contains(columns, path) {
			columns = append(columns, path)
		}
	}

	if items != nil {
		addProperties(items.Properties, "", add)
	}
	for _, row := range rows {
		addKeys(row, "", add)
	}
	return columns
}

// HeadsOf returns what people call columns, by the paths of their values: the title that the schema
// gives, or else the name, behind those of the objects that it is in where two are alike.
func HeadsOf(items *schema.Property, paths []string) []string {
	heads := make([]string, len(paths))
	count := make(map[string]int)
	for i, path := range paths {
		heads[i] = titleOf(path[strings.LastIndexByte(path, '.')+1:])
		if p := PropertyAt(items, path); p != nil && p.Title != "" {
			heads[i] = p.Title
		}

		count[heads[i]]++
	}

	// Columns that would have the same head get the names of their objects before their
	// own.
	for i, path := range paths {
		if count[heads[i]] > 1 {
			heads[i] = titleOf(strings.ReplaceAll(path, ".", " "))
		}
	}
	return heads
}

// PropertyAt returns the property at a path of objects, or nil.
func PropertyAt(items *schema.Property, path string) *schema.Property {
	for name := range strings.SplitSeq(path, ".") {
		if items == nil {
			return nil
		}
		i := slices.IndexFunc(items.Properties, func(p schema.Property) bool { return p.Name == name })
		if i < 0 {
			return nil
		}
		items = &items.Properties[i]
	}
	return items
}

func addProperties(properties []schema.Property, path string, add func(string)) {
	for i := range properties {
		if p := &properties[i]; p.Type == schema.Object {
			addProperties(p.Properties, path+p.Name+".", add)
		} else {
			add(path + p.Name)
		}
	}
}

func addKeys(v any, path string, add func(string)) {
	object, ok := v.(map[string]any)
	if !ok {
		return
	}

	for _, key := range slices.Sorted(maps.Keys(object)) {
		switch one := object[key].(type) {
		case map[string]any:
			addKeys(one, path+key+".", add)
		case nil: // which may be an object elsewhere
		default:
			add(path + key)
		}
	}
}

// ValueAt returns a value in an object, or nil.
func ValueAt(v any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		object, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = object[name]
	}
	return v
}

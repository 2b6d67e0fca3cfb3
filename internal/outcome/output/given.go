package output

import (
	"slices"

	"github.com/coditect/mapreduce/internal/outcome/output/jsonvalue"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
	"github.com/coditect/mapreduce/internal/text/refs"
)

// GivenOf returns what is known of the unit of an index that works on an element of a list,
// or on none, and was given the outputs.
func GivenOf(index int64, item []byte, outputs []*Output) jsonvalue.Given {
	g := jsonvalue.Given{Number: index + 1, Item: item}
	for _, o := range outputs {
		for id := range o.Citations {
			g.References = append(g.References, refs.ID([]byte(id)))
		}
		if len(o.Value) > 0 {
			g.Rows = append(g.Rows, o.Value)
		}
	}

	slices.SortFunc(g.References, refs.Compare)
	g.References = slices.Compact(g.References)
	return g
}

// GivenOfDocuments returns what is known of the unit of an index that reads documents, and
// may choose so many of them; 0 is no limit.
func GivenOfDocuments(index int64, docs []payload.Document, most int64) jsonvalue.Given {
	g := jsonvalue.Given{Number: index + 1, Most: most}
	for _, d := range docs {
		g.Documents = append(g.Documents, jsonvalue.Chosen{Document: d.Document, Metadata: d.Metadata})
	}
	return g
}

package result

import (
	"encoding/json"

	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/refs"
	"github.com/coditect/mapreduce/orchestrator/result/sections"
)

// Table returns the columns and the cells that a report shows of a list of objects, which the property "rows"
// of a schema describes. The quotes are those of the references of the report, by their names.
func Table(source, rows string, quotes map[string]string) (columns []string, cells [][]string, err error) {
	r := &reporter{r: &result{}, cited: make(map[string]output.Citation), judged: make(map[judgedClaim]output.Judgement)}
	r.numbering = refs.NewNumbering(r.isCited)
	for name, quote := range quotes {
		r.cited[name] = output.Citation{Quote: quote}
	}

	for _, s := range sections.Of([]byte(source), map[string]json.RawMessage{"rows": []byte(rows)}) {
		if err := r.addData(s, []byte(rows)); err != nil {
			return nil, nil, err
		}
	}
	return r.view.Sections[0].Columns, r.view.Sections[0].Rows, nil
}

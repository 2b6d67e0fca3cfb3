package dashboard

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/dashboard/bench"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/outcome/eval"
	"github.com/coditect/mapreduce/internal/outcome/trial"
	"github.com/coditect/mapreduce/internal/text/rules/infer"
)

// benchTools are what the workbench of the pages works with. Files are parsed here only if this
// process has workers, which parse them as well.
func benchTools(formats *document.Registry, parses bool) bench.Tools {
	return bench.Tools{
		Try: try, Infer: propose,
		Read: func(ctx context.Context, name string, data []byte) (bench.Document, error) {
			return readFile(ctx, formats, parses, name, data)
		},
	}
}

// try runs rules on a sample, and compares what they find with what is true as far as that is
// known.
func try(ctx context.Context, s *schema.Schema, sample *bench.Sample) (*bench.Report, error) {
	t, err := trial.New(s)
	if err != nil {
		return nil, err
	}
	for _, d := range sample.Documents {
		if err := t.Add(trial.Document{Name: d.Name, Text: d.Text}, ctx.Err); err != nil {
			return nil, err
		}
	}

	found, err := t.Report(ctx.Err)
	if err != nil {
		return nil, err
	}
	report := &bench.Report{}
	for _, d := range found.Documents {
		report.Documents = append(report.Documents, benchTried(&d))
	}
	for _, f := range found.Fields {
		report.Fields = append(report.Fields, bench.Count{Field: f.Field, Found: f.Found, Records: f.Records, Reasons: reasons(f.Reasons)})
	}
	if strings.TrimSpace(sample.Truth) != "" {
		report.Score = score(s, found.Results, sample)
	}
	return report, nil
}

func benchTried(d *trial.Tried) bench.Tried {
	one := bench.Tried{Document: d.Document, Skipped: d.Skipped, Reason: d.Reason, Notes: d.LeftOut}
	for _, table := range d.Tables {
		one.Notes = append(one.Notes, fmt.Sprintf("the table in line %d has %d records: %s", table.Line, table.Rows, strings.Join(table.Columns, ", ")))
	}

	for _, found := range d.Records {
		var record bench.Record
		for _, f := range found {
			field := bench.Field{Name: f.Field, Accepted: f.Accepted, Refused: f.Refused, Reason: f.Reason}
			for _, v := range f.Values {
				field.Values = append(field.Values, bench.Value{
					Text: trial.ValueText(v.Value), Quote: v.Quote, Start: v.Start, End: v.End, Basis: cmp.Or(string(v.Basis), "hint"), Rivals: v.Rivals,
				})
			}
			record.Fields = append(record.Fields, field)
		}
		one.Records = append(one.Records, record)
	}
	return one
}

// reasons are why a field was not found, the most frequent first.
func reasons(counts map[string]int) []string {
	all := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	for i, reason := range all {
		all[i] = fmt.Sprintf("%d: %s", counts[reason], reason)
	}
	return all
}

// score compares records with true values.
func score(s *schema.Schema, results []eval.Result, sample *bench.Sample) *bench.Score {
	truth, err := eval.ReadTruth("truth", strings.NewReader(sample.Truth))
	if err != nil {
		return &bench.Score{Failed: err.Error()}
	}
	names := make([]string, len(sample.Documents))
	for i, d := range sample.Documents {
		names[i] = d.Name
	}
	if err := eval.CheckNames(s, results, names, truth); err != nil {
		return &bench.Score{Failed: err.Error()}
	}

	compared := eval.Compare(s, results, truth)
	wrong := make(map[string][]string)
	for _, d := range compared.Errors {
		wrong[d.Field] = append(wrong[d.Field], fmt.Sprintf("%s: %s, not %s", d.Document, shown(d.Found), shown(d.Truth)))
	}

	out := &bench.Score{All: fieldScore("", compared.Micro, nil)}
	for _, f := range s.Fields() {
		if one, judged := compared.Fields[f.Path]; judged {
			out.Fields = append(out.Fields, fieldScore(f.Path, one, wrong[f.Path]))
		}
	}
	return out
}

func fieldScore(field string, s eval.Score, wrong []string) bench.FieldScore {
	return bench.FieldScore{Field: field, Precision: s.Precision, Recall: s.Recall, F1: s.F1, Support: s.Support, Wrong: wrong}
}

// shown is a value for people; none is a dash.
func shown(v any) string {
	if v == nil {
		return "–"
	}
	return trial.ValueText(v)
}

// propose proposes a schema for documents.
func propose(docs []bench.Document) (string, error) {
	var p infer.Proposal
	for _, d := range docs {
		p.Add(d.Text)
	}
	return p.Schema()
}

// readFile returns the text of a file.
func readFile(ctx context.Context, formats *document.Registry, parses bool, name string, data []byte) (bench.Document, error) {
	d := bench.Document{Name: name}
	kind, err := formats.Detect(name, data, "")
	if err != nil {
		return d, plainReason(err)
	}

	format, _ := formats.Format(kind)
	switch {
	case format.Parse == nil:
		return d, errors.New("a file of several documents: unpack it, and choose each of them")
	case !format.Plain && !parses:
		return d, errors.New("this server has no worker that could read it; start a job with it, and try the schema on the documents of the job")
	}

	text, err := formats.Parse(ctx, document.Input{Name: name, Content: bytes.NewReader(data)})
	if err != nil {
		return d, plainReason(err)
	}
	d.Text, d.Notes = text.Text, text.Notes
	return d, nil
}

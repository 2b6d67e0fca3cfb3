package schemafile

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/api/plural"
	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/internal/outcome/trial"
)

func (c *commands) checkCommand() *cobra.Command {
	var on []string
	var flags inputFlags
	var locale string
	cmd := &cobra.Command{
		Use:   "check FILE [DOCUMENTS...]",
		Short: "Check a schema, and show what its hints find in documents",
		Long: `Check reads a schema file and names each of its faults. With documents it also shows, for
each document and field, the value that the provider rules finds and its quote, or the
reason why it finds none. A value that the schema refuses, which a run would put under
_unverified, is shown with the constraint that it breaks. At the end it shows in how many
records each field was found. It stores nothing.`,
		Example: `  coditect mapreduce schema check schema.yaml
  coditect mapreduce schema check schema.yaml --on docs --sample 20
  coditect mapreduce schema check schema.yaml docs/*.txt -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exit.UsageError("the schema file is missing: name it as an argument")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.check(cmd.Context(), args[0], locale, append(on, args[1:]...), &flags)
		},
	}

	f := cmd.Flags()
	f.StringArrayVar(&on, "on", nil, "folder or file of `documents` to try the schema on; may be repeated")
	f.StringVar(&locale, "locale", "", "language and region of the documents, such as `de-DE`, as of a run (default: the locale of the schema)")
	flags.addFlags(f, &c.Runners)
	return cmd
}

// A checked is what check prints.
type checked struct {
	Schema string `json:"schema"`
	trial.Report
}

func (c *commands) check(ctx context.Context, file, locale string, paths []string, flags *inputFlags) error {
	s, err := console.ReadSchemaIn(ctx, locale, file)
	if err != nil {
		return err
	}

	console.PrintWarnings(c.Stderr, s.Warnings)
	tried, err := trial.New(s)
	if err != nil {
		return exit.RefusedError("%s: %w", file, err)
	}
	if len(paths) > 0 {
		if err := c.tryAll(ctx, paths, flags, tried); err != nil {
			return err
		}
	}

	report, err := tried.Report(ctx.Err)
	if err != nil {
		return context.Cause(ctx)
	}
	result := checked{Schema: cmp.Or(s.Title, file), Report: *report}
	return c.PrintData(result, func() { c.printChecked(&result, len(paths) > 0) })
}

// tryAll runs the rules on all documents.
func (c *commands) tryAll(ctx context.Context, paths []string, flags *inputFlags, all *trial.Trial) error {
	texts, err := c.texts(ctx, paths, flags)
	if err != nil {
		return err
	}

	for t, err := range texts {
		if err != nil {
			return err
		}
		if err := all.Add(trial.Document{Name: t.name, Text: t.content, Skip: t.skip}, ctx.Err); err != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// printChecked prints what was found as text.
func (c *commands) printChecked(r *checked, tried bool) {
	if !tried {
		fmt.Fprintf(c.Stdout, "%s: nothing is wrong with it; it has %s. Name documents to see what it finds in them.\n", r.Schema, plural.Count(len(r.Fields), "field"))
		return
	}

	for _, d := range r.Documents {
		c.printTaken(&d)
		switch {
		case d.Skipped != "":
			fmt.Fprintf(c.Stdout, "%s: skipped: %s\n\n", d.Document, d.Skipped)
			continue
		case len(d.Records) == 0:
			fmt.Fprintf(c.Stdout, "%s: %s\n\n", d.Document, d.Reason)
			continue
		}

		for i, record := range d.Records {
			name := d.Document
			if len(d.Records) > 1 {
				name = fmt.Sprintf("%s, record %d", d.Document, i+1)
			}
			fmt.Fprintln(c.Stdout, name)
			c.printRecord(record)
		}
	}

	c.PrintTable("FIELD FOUND RECORDS NOT_FOUND_BECAUSE", func(row func(...any)) {
		for _, f := range r.Fields {
			row(f.Field, f.Found, f.Records, mostFrequent(f.Reasons))
		}
	})
}

// printTaken prints from which tables of a document records were taken, and by what.
func (c *commands) printTaken(d *trial.Tried) {
	for _, t := range d.Tables {
		fmt.Fprintf(c.Stdout, "%s: the table in line %d has %s: %s\n", d.Document, t.Line, plural.Count(t.Rows, "record"), strings.Join(t.Columns, ", "))
	}
	for _, text := range d.LeftOut {
		fmt.Fprintf(c.Stdout, "%s: %s\n", d.Document, text)
	}
}

func (c *commands) printRecord(record trial.Found) {
	c.PrintTable(" FIELD VALUE QUOTE", func(row func(...any)) {
		for _, f := range record {
			if len(f.Values) == 0 {
				row("", f.Field, "-", "("+f.Reason+")")
			}
			for i, v := range f.Values {
				name := f.Field
				// The name of a field stands once.
				if i > 0 {
					name = ""
				}
				row("", name, shorten.Text(trial.ValueText(v.Value), maxCell), `"`+shorten.Text(v.Quote, maxCell)+`"`)
			}
			if f.Refused != "" {
				row("", "", "refused", "("+f.Refused+")")
			}
		}
	})

	fmt.Fprintln(c.Stdout)
}

// mostFrequent returns the reasons, the most frequent first.
func mostFrequent(reasons map[string]int) string {
	list := slices.SortedFunc(maps.Keys(reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(reasons[b], reasons[a]), cmp.Compare(a, b))
	})

	const most = 2
	var parts []string
	for _, reason := range list[:min(len(list), most)] {
		parts = append(parts, fmt.Sprintf("%d: %s", reasons[reason], reason))
	}
	if len(list) > most {
		parts = append(parts, "and "+plural.Count(len(list)-most, "other reason"))
	}

	return strings.Join(parts, "; ")
}

// maxCell bounds a text in a cell, in characters.
const maxCell = 60

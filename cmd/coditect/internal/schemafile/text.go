package schemafile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
	"github.com/coditect/mapreduce/internal/text/layout"
	"github.com/coditect/mapreduce/internal/text/table"
)

// TextCommand returns the command that prints the text of documents.
func TextCommand(p *program.Program) *cobra.Command {
	c := &commands{p}
	var flags inputFlags
	var tables, places bool
	cmd := &cobra.Command{
		Use:   "text FILE...",
		Short: "Print the text that is read of documents",
		Long: `Text prints the text of documents as jobs read it: what stands in it can be found, and every
quote is a part of it. It is the first thing to look at if a value is wrong or missing. With
--tables it prints the tables alone, cell by cell, and with --layout the parts of the text
with the pages and boxes, cells or slides that they come from. It stores nothing.`,
		Example: `  coditect mapreduce text invoice.pdf
  coditect mapreduce text prices.xlsx --tables
  coditect mapreduce text invoice.pdf --layout -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exit.UsageError("name files or folders of documents, or - for standard input")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			texts, err := c.texts(cmd.Context(), args, &flags)
			if err != nil {
				return err
			}

			all := []readText{}
			skipped := 0
			for t, err := range texts {
				if err != nil {
					return err
				}
				if t.skip != "" {
					skipped++
				}
				all = append(all, newReadText(t, tables, places))
			}

			if err := c.PrintData(all, func() { c.printTexts(all, tables, places) }); err != nil {
				return err
			}

			if len(all) > 0 && skipped == len(all) {
				return exit.RefusedError("none of the documents has a text")
			}
			return nil
		},
	}

	f := cmd.Flags()
	f.BoolVar(&tables, "tables", false, "print the tables alone, each cell with its row and column")
	f.BoolVar(&places, "layout", false, "print the parts of the text with their pages and boxes, cells or slides")
	cmd.MarkFlagsMutuallyExclusive("tables", "layout")
	flags.addFlags(f, &c.Runners)
	return cmd
}

// A readText is the text of a document, or why it has none.
type readText struct {
	Document string       `json:"document"`
	Skipped  string       `json:"skipped,omitempty"`
	Text     string       `json:"text,omitempty"`
	Notes    []string     `json:"notes,omitempty"`
	Tables   [][][]string `json:"tables,omitempty"` // by row and column
	Layout   []placed     `json:"layout,omitempty"`
}

// A placed is a part of a text and where a reader would look for it.
type placed struct {
	Start int         `json:"start"` // bytes of the text
	End   int         `json:"end"`
	Text  string      `json:"text"`
	Place string      `json:"place"`
	Box   *[4]float64 `json:"box,omitempty"` // left, top, right and bottom, in points from the page's top left corner
}

func newReadText(t text, tables, places bool) readText {
	r := readText{Document: t.name, Skipped: t.skip, Text: t.content, Notes: t.notes}
	if t.skip != "" {
		r.Text = ""
		return r
	}

	if tables {
		r.Tables = tablesOf(t.content)
	}

	if places {
		for i := range t.layout {
			r.Layout = append(r.Layout, newPlaced(t.content, &t.layout[i]))
		}
	}
	return r
}

func newPlaced(text string, p *layout.Part) placed {
	one := placed{Start: p.Start, End: p.End, Text: text[p.Start:p.End], Place: p.Location.String()}
	if p.Box.Page != 0 {
		one.Box = &[4]float64{p.Box.Left, p.Box.Top, p.Box.Right, p.Box.Bottom}
	}
	return one
}

// tablesOf returns the tables of a text as jobs read them: heads that stand again on later
// pages are no rows.
func tablesOf(text string) [][][]string {
	var tables [][][]string
	for _, t := range table.Read(text) {
		rows := make([][]string, 0, len(t.Heads)+len(t.Rows))
		for _, line := range slices.Concat(t.Heads, t.Rows) {
			var row []string
			for _, cell := range table.Cells(text, line, nil) {
				row = append(row, cell.Text(text))
			}
			rows = append(rows, row)
		}
		tables = append(tables, rows)
	}

	return tables
}

// printTexts prints the texts, under the names of their documents if there are several.
func (c *commands) printTexts(all []readText, tables, places bool) {
	for i := range all {
		r := &all[i]
		if r.Skipped != "" {
			fmt.Fprintf(c.Stderr, "%s: skipped: %s\n", r.Document, console.VisibleText(r.Skipped))
			continue
		}

		// Notes go to standard error, so that standard output has nothing but texts.
		for _, note := range r.Notes {
			fmt.Fprintf(c.Stderr, "%s: note: %s\n", r.Document, console.VisibleText(note))
		}
		if len(all) > 1 {
			fmt.Fprintf(c.Stdout, "==> %s <==\n", r.Document)
		}

		switch {
		case tables:
			c.printTables(r)
		case places:
			c.printLayout(r)
		default:
			fmt.Fprintln(c.Stdout, strings.TrimSuffix(r.Text, "\n"))
		}
	}
}

func (c *commands) printTables(r *readText) {
	if len(r.Tables) == 0 {
		fmt.Fprintf(c.Stderr, "%s: its text has no tables\n", r.Document)
		return
	}

	c.PrintTable("TABLE ROW COLUMN CELL", func(row func(...any)) {
		for n, rows := range r.Tables {
			for y, cells := range rows {
				for x, cell := range cells {
					row(n+1, y+1, x+1, `"`+cell+`"`)
				}
			}
		}
	})
}

func (c *commands) printLayout(r *readText) {
	if len(r.Layout) == 0 {
		fmt.Fprintf(c.Stderr, "%s: documents of its format have no pages, cells or the like\n", r.Document)
		return
	}

	c.PrintTable("BYTES PLACE BOX TEXT", func(row func(...any)) {
		for _, p := range r.Layout {
			box := "-"
			if b := p.Box; b != nil {
				box = fmt.Sprintf("%.1f,%.1f,%.1f,%.1f", b[0], b[1], b[2], b[3])
			}
			row(fmt.Sprintf("%d-%d", p.Start, p.End), p.Place, box, `"`+shorten.Text(strings.Join(strings.Fields(p.Text), " "), maxCell)+`"`)
		}
	})
}

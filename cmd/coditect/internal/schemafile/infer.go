package schemafile

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/internal/text/rules/infer"
)

func (c *commands) inferCommand() *cobra.Command {
	var flags inputFlags
	cmd := &cobra.Command{
		Use:   "infer DOCUMENTS...",
		Short: "Propose a schema for documents",
		Long: `Infer reads documents and prints a schema for them. It has a field for each label that many
documents have: with a colon, or beside its value or above it in a form. Each table has a
list of objects with a property for each column. Dates, durations, addresses and currencies
have a field without a label, too. A comment says how many documents have a field, and gives
an example. The schema is a proposal: review it, and try it with schema check.`,
		Example: `  coditect mapreduce schema infer docs > schema.yaml
  coditect mapreduce schema infer table.csv`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exit.UsageError("name folders or files of documents, or - for standard input")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			texts, err := c.texts(ctx, args, &flags)
			if err != nil {
				return err
			}

			var p infer.Proposal
			for t, err := range texts {
				switch {
				case err != nil:
					return err
				case t.skip != "":
					fmt.Fprintf(c.Stderr, "%s: skipped: %s\n", t.name, console.VisibleText(t.skip))
				default:
					p.Add(t.content)
				}
			}

			schema, err := p.Schema()
			if err != nil {
				return exit.RefusedError("%w", err)
			}

			return c.PrintData(map[string]string{"schema": schema}, func() { fmt.Fprint(c.Stdout, schema) })
		},
	}

	flags.addFlags(cmd.Flags(), &c.Runners)
	return cmd
}

package run

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/cmd/coditect/internal/runners"
)

// A toolList is what tools prints.
type toolList struct {
	Kits []runners.KitView `json:"kits"`
}

func (cmds *commands) toolsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "Show the tools that agents can use, and the flags that offer them",
		Long: `Tools lists the tools that stages of pipelines can use, with their limits and the flags that
offer them. It accepts the flags of run, serve and worker for tools: for the kits that these
flags offer it shows the tools that a worker would have.`,
		Example: `  coditect mapreduce tools
  coditect mapreduce tools --tool-root docs -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmds.listTools(cmd.Context()) },
	}
	cmds.Runners.Tools.AddFlags(cmd.Flags())
	return cmd
}

func (cmds *commands) listTools(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, cmds.Runners.CloseTools()) }()
	kits, err := cmds.Runners.ListTools(ctx)
	if err != nil {
		return err
	}

	return cmds.PrintData(toolList{kits}, func() {
		w := tabwriter.NewWriter(cmds.Stdout, 0, 4, 2, ' ', 0)
		for _, k := range kits {
			offered := "given by " + k.Flags
			if k.Offered {
				offered = "offered"
			}
			fmt.Fprintf(w, "%s\t%s\t\t\t%s\n", k.Kit, offered, k.About)

			for _, t := range k.Tools {
				again := "runs once"
				if t.Idempotent {
					again = "only reads"
				}
				if k.Offered && !t.Offered {
					again = "not offered"
				}
				fmt.Fprintf(w, "  %s\t%s\t%v\t%d KiB\t%s\n", t.Name, again, t.Timeout().Round(time.Second), t.MaxOutput>>10, t.Summary())
			}
		}
		_ = w.Flush() // nobody reads an error about standard output
	})
}

package serve

import (
	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
)

// commands makes the commands of this group.
type commands struct{ *program.Program }

// Commands returns the commands of this group, in the order of help.
func Commands(p *program.Program) []*cobra.Command {
	c := &commands{p}
	return []*cobra.Command{c.serveCommand(), c.workerCommand(), certsCommand(p)}
}

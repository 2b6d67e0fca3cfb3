package run

import (
	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
)

// commands makes the commands of this group.
type commands struct{ *program.Program }

// Commands returns the commands of this group, in the order of help.
func Commands(p *program.Program) []*cobra.Command {
	c := &commands{p}
	return []*cobra.Command{c.runCommand(), c.planCommand(), c.resumeCommand(), c.replayCommand(), c.pipelinesCommand(), c.toolsCommand(), c.searchCommand()}
}

// ResultCommand returns the command that writes the results of a job again. Help shows
// it among the commands that show jobs.
func ResultCommand(p *program.Program) *cobra.Command { return (&commands{p}).resultCommand() }

package run

import (
	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
)

// The groups of the flags of run, plan and resume, in the order of help.
const (
	groupInput  = "Input, and how documents are read"
	groupSchema = "Schema and pipeline"
	groupModel  = "Model"
	groupLimits = "Limits and money"
	groupTree   = "Units and the tree that reduces them"
	groupTools  = "Tools of agents"
	groupOutput = "Output, and what is kept"
)

// groupFlags has the help of a command show its flags by subject, and the dozen that people need
// above them all.
func groupFlags(cmd *cobra.Command) *console.FlagGroups {
	first := []string{"job-id", "input", "schema", "pipeline", "question", "provider", "model", "sample", "budget", "max-cost", "output", "format", "print", "help"}
	return console.GroupFlags(cmd, first, groupInput, groupSchema, groupModel, groupLimits, groupTree, groupTools, groupOutput)
}

package console

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// FlagGroups shows the flags of one command by subject in its help, instead of in one list.
type FlagGroups struct {
	cmd    *cobra.Command
	first  []string // names of the flags that stand at the top, in this order
	groups []flagGroup
}

type flagGroup struct {
	title string
	flags *pflag.FlagSet
}

// GroupFlags has the help of a command show its flags in groups with these titles, in this
// order. The flags named by first stand above them all, and nowhere else. What Add puts into
// no group stands in a last one, so that help leaves out no flag.
func GroupFlags(cmd *cobra.Command, first []string, titles ...string) *FlagGroups {
	g := &FlagGroups{cmd: cmd, first: first}
	for _, title := range titles {
		g.groups = append(g.groups, flagGroup{title, newGroup()})
	}
	cmd.SetUsageFunc(func(*cobra.Command) error { return g.printUsage(cmd.OutOrStderr()) })
	return g
}

// newGroup returns a set that keeps the order in which flags are added.
func newGroup() *pflag.FlagSet {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.SortFlags = false
	return f
}

// Add puts the flags that add gives the command into the group with a title; a new title makes
// a group behind the others.
func (g *FlagGroups) Add(title string, add func()) {
	known := make(map[string]bool)
	g.cmd.Flags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })

	add()

	at := slices.IndexFunc(g.groups, func(group flagGroup) bool { return group.title == title })
	if at < 0 {
		at = len(g.groups)
		g.groups = append(g.groups, flagGroup{title, newGroup()})
	}
	g.cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !known[f.Name] {
			g.groups[at].flags.AddFlag(f)
		}
	})
}

// printUsage prints the usage of the command, as cobra does, but for its own flags.
func (g *FlagGroups) printUsage(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "Usage:\n  %s\n", g.cmd.UseLine())
	if g.cmd.HasExample() {
		fmt.Fprintf(&text, "\nExamples:\n%s\n", g.cmd.Example)
	}

	for _, group := range g.arranged() {
		if group.flags.HasAvailableFlags() {
			fmt.Fprintf(&text, "\n%s:\n%s\n", group.title, strings.TrimRight(group.flags.FlagUsages(), "\n "))
		}
	}

	if g.cmd.HasAvailableInheritedFlags() {
		fmt.Fprintf(&text, "\nGlobal Flags:\n%s\n", strings.TrimRight(g.cmd.InheritedFlags().FlagUsages(), "\n "))
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// arranged returns the groups as help shows them: each flag of the command is in one of them.
func (g *FlagGroups) arranged() []flagGroup {
	shown := make(map[string]bool)
	top := flagGroup{"What is needed most", newGroup()}
	for _, name := range g.first {
		if f := g.cmd.Flags().Lookup(name); f != nil {
			top.flags.AddFlag(f)
			shown[name] = true
		}
	}

	all := []flagGroup{top}
	for _, group := range g.groups {
		rest := flagGroup{group.title, newGroup()}
		group.flags.VisitAll(func(f *pflag.Flag) {
			if !shown[f.Name] {
				rest.flags.AddFlag(f)
				shown[f.Name] = true
			}
		})
		all = append(all, rest)
	}

	other := flagGroup{"Other flags", newGroup()}
	g.cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !shown[f.Name] {
			other.flags.AddFlag(f)
		}
	})
	return append(all, other)
}

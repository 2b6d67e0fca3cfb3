package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/cmd/coditect/internal/apart"
	"github.com/coditect/mapreduce/cmd/coditect/internal/check"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/mcp"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
	"github.com/coditect/mapreduce/cmd/coditect/internal/review"
	"github.com/coditect/mapreduce/cmd/coditect/internal/run"
	"github.com/coditect/mapreduce/cmd/coditect/internal/schemafile"
	"github.com/coditect/mapreduce/cmd/coditect/internal/serve"
	"github.com/coditect/mapreduce/cmd/coditect/internal/show"
	"github.com/coditect/mapreduce/cmd/coditect/internal/steer"
)

// runMain runs a command line and returns the exit code.
func runMain(ctx context.Context, p *program.Program, args []string) int {
	if p.Getenv(apart.Variable) == apart.Pages { // another process of this program has started it, whatever its arguments
		if err := apart.DrawPages(ctx, p.Stdin, p.Stdout); err != nil {
			fmt.Fprintln(p.Stderr, err)
			return exit.CodeOf(err)
		}
		return exit.Complete
	}
	p.Version, p.Runners.Getenv = versionOf(), p.Getenv
	p.Screen = p.Stderr
	p.Raw = p.Stdout
	p.Stdout, p.Stderr = console.NewTerminalWriter(p.Stdout), console.NewTerminalWriter(p.Stderr)
	root := rootCommand(p)

	// Only a shell asks for completions; other commands would hold them in memory for
	// nothing.
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		p.RegisterCompletions(root)
	}

	root.SetArgs(args)
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exit.Complete
	}
	if text := exit.Message(err); text != "" {
		fmt.Fprintf(p.Stderr, "coditect: %s\n", strings.TrimSpace(text))
	}
	if exit.OffersHelp(err) && cmd != nil {
		fmt.Fprintf(p.Stderr, "`%s --help` shows its usage\n", cmd.CommandPath())
	}
	return exit.CodeOf(err)
}

func rootCommand(p *program.Program) *cobra.Command {
	root := &cobra.Command{
		Use:   "coditect",
		Short: "Extract structured data from many documents, with a citation behind every value",
		Example: `  coditect mapreduce run --input docs --schema schema.yaml --output results
  coditect mapreduce list
  coditect serve`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: p.ApplySettings,
		Args:              noCommand,
		RunE:              showHelp,
	}
	root.SetFlagErrorFunc(flagError)

	f := root.PersistentFlags()
	p.Global.AddFlags(f)
	f.VarP(&p.Format, "print", "o", "format of printed data: text or json")
	console.OfferWords(root, "print", "text", "json")

	root.AddCommand(mapreduceCommand(p))
	root.AddCommand(serve.Commands(p)...)
	root.AddCommand(mcp.Commands(p)...)
	root.AddCommand(versionCommand(p))

	// checkArgs goes over all commands, so it comes last.
	checkArgs(root)
	return root
}

func mapreduceCommand(p *program.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mapreduce",
		Short: "Run jobs over documents, and manage them",
		Example: `  coditect mapreduce run --input docs --schema schema.yaml --output results
  coditect mapreduce status --job-id mr_20260101_a1b2c3`,
		Args: noCommand,
		RunE: showHelp,
	}

	cmd.AddGroup(
		&cobra.Group{ID: groupWork, Title: "Run jobs:"},
		&cobra.Group{ID: groupLook, Title: "Show jobs:"},
		&cobra.Group{ID: groupSteer, Title: "Control jobs:"},
		&cobra.Group{ID: groupCheck, Title: "Check:"},
	)

	for _, g := range []struct {
		id       string
		commands []*cobra.Command
	}{
		{groupWork, run.Commands(p)},
		{groupLook, append(show.Commands(p), run.ResultCommand(p))},
		{groupSteer, append(steer.Commands(p), review.Commands(p)...)},
		{groupCheck, append(check.Commands(p), schemaCommand(p), schemafile.TextCommand(p))},
	} {
		for _, c := range g.commands {
			c.GroupID = g.id
			traced(p, c)
			cmd.AddCommand(c)
		}
	}

	return cmd
}

// traced wraps a command so that it is measured and traced, if the environment says where
// to.
func traced(p *program.Program, c *cobra.Command) {
	run := c.RunE
	if run == nil {
		return
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return p.WithTelemetry(cmd.Context(), cmd.CommandPath(), func(ctx context.Context) error {
			cmd.SetContext(ctx)
			return run(cmd, args)
		})
	}
}

// schemaCommand returns the command about schema files.
func schemaCommand(p *program.Program) *cobra.Command {
	cmd := schemafile.Command(p)
	cmd.Args, cmd.RunE = noCommand, showHelp
	return cmd
}

// Groups of the commands that are about jobs.
const (
	groupWork  = "work"
	groupLook  = "look"
	groupSteer = "steer"
	groupCheck = "check"
)

// noCommand is the Args of commands that only hold others: what stands there is a
// command that does not exist.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}

	typed, path := args[0], cmd.CommandPath()+" "
	hint := program.DidYouMean(typed, path, namesOf(cmd))
	for _, c := range cmd.Commands() {
		if hint == "" && c.HasSubCommands() {
			hint = program.DidYouMean(typed, path+c.Name()+" ", namesOf(c))
		}
	}
	return fmt.Errorf("unknown command %q for %q%s", typed, cmd.CommandPath(), hint)
}

// namesOf returns the names of the commands below a command.
func namesOf(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// flagError returns the error for a flag that could not be parsed. Of an unknown flag it
// names the one that was probably meant.
func flagError(cmd *cobra.Command, err error) error {
	if names := cmd.Flags().Args(); cmd.HasSubCommands() && len(names) > 0 { // flags of a command that does not exist
		return exit.UsageError("%w", noCommand(cmd, names))
	}
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return exit.UsageError("--%s: %q: %w", wrong.GetFlag().Name, wrong.GetValue(), program.FlagFault(wrong.GetFlag().Value.Type(), wrong.Unwrap()))
	}

	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || unknown.GetSpecifiedShortnames() != "" {
		return exit.UsageError("%w", err)
	}

	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return exit.UsageError("%w%s", err, program.DidYouMean(unknown.GetSpecifiedName(), "--", names))
}

func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// checkArgs turns the errors of all commands about arguments into usage errors.
func checkArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return exit.UsageError("%w", err)
			}
			return nil
		}
	}

	for _, c := range cmd.Commands() {
		checkArgs(c)
	}
}

package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/cmd/coditect/internal/progress"
)

// globals are the flags that all commands have.
type globals struct {
	server string
	placed placeFlags
	timing timing
	config string
	format format

	place place // what placed says
}

// main runs a command line and returns the exit code.
func (a *app) main(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitComplete
	}
	if text := message(err); text != "" {
		fmt.Fprintf(a.stderr, "coditect: %s\n", strings.TrimSpace(text))
	}
	code := codeOf(err)
	if code == exitUsage && cmd != nil {
		fmt.Fprintf(a.stderr, "`%s --help` says how it is used\n", cmd.CommandPath())
	}
	return code
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "coditect",
		Short: "Extract structured data from many documents, with a citation behind every value",
		Example: `  coditect mapreduce run --input docs --schema schema.yaml --output results
  coditect mapreduce list
  coditect serve`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return a.settle(cmd)
		},
		Args: cobra.NoArgs,
		RunE: help,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("%w", err) })
	f := root.PersistentFlags()
	f.StringVar(&a.global.server, "server", "", "address of a server, `HOST:PORT` or unix:PATH; without one the service runs in this process")
	a.global.placed.add(f)
	a.global.timing.add(f)
	f.StringVar(&a.global.config, "config", "", "YAML `file` of settings, named as the flags with _ for -")
	f.VarP(&a.global.format, "format", "o", "how data is printed: text or json")
	_ = root.RegisterFlagCompletionFunc("format", words("text", "json")) // the flag exists
	root.AddCommand(a.mapreduce(), a.serve(), a.worker(), a.versionCommand())
	checkArgs(root)
	return root
}

func (a *app) mapreduce() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mapreduce",
		Short: "Run jobs over documents, and look after them",
		Example: `  coditect mapreduce run --input docs --schema schema.yaml --output results
  coditect mapreduce status --job-id mr_20260101_a1b2c3`,
		Args: cobra.NoArgs,
		RunE: help,
	}
	cmd.AddGroup(
		&cobra.Group{ID: groupWork, Title: "Run jobs:"},
		&cobra.Group{ID: groupLook, Title: "Look at jobs:"},
		&cobra.Group{ID: groupSteer, Title: "Steer jobs:"},
		&cobra.Group{ID: groupCheck, Title: "Check:"},
	)
	for _, g := range []struct {
		id       string
		commands []*cobra.Command
	}{
		{groupWork, []*cobra.Command{a.run(), a.plan(), a.resume(), a.replay(), a.pipelines()}},
		{groupLook, []*cobra.Command{a.status(), a.watch(), a.list(), a.units(), a.audit(), a.result()}},
		{groupSteer, []*cobra.Command{a.pause(), a.cancel(), a.wake(), a.remove()}},
		{groupCheck, []*cobra.Command{a.doctor(), a.cache(), a.eval()}},
	} {
		for _, c := range g.commands {
			c.GroupID = g.id
			cmd.AddCommand(c)
		}
	}
	return cmd
}

// Groups of the commands that are about jobs.
const (
	groupWork  = "work"
	groupLook  = "look"
	groupSteer = "steer"
	groupCheck = "check"
)

func help(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// checkArgs makes wrong arguments of any command errors of usage.
func checkArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usage("%w", err)
			}
			return nil
		}
	}
	for _, c := range cmd.Commands() {
		checkArgs(c)
	}
}

// words returns a completion that offers them.
func words(list ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
}

// require returns an error if a flag was not set, by whichever means.
func require(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if !cmd.Flags().Changed(name) {
			_, text := pflag.UnquoteUsage(cmd.Flags().Lookup(name))
			return usage("--%s is missing: %s", name, text)
		}
	}
	return nil
}

// meter returns what shows progress.
func (a *app) meter() *progress.Meter {
	return progress.New(progress.Config{Out: a.stderr, Terminal: a.terminal, Width: a.width})
}

// logger returns a logger of warnings; their times are of no interest on a
// terminal.
func logger(m *progress.Meter) *slog.Logger {
	return slog.New(slog.NewTextHandler(m, &slog.HandlerOptions{
		Level: slog.LevelWarn,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

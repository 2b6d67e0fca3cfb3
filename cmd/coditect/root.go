package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/cmd/coditect/internal/progress"
	"github.com/coditect/mapreduce/cmd/coditect/internal/terminal"
)

// globals are the flags that all commands have.
type globals struct {
	server     string
	storeFlags storeFlags
	timing     fleetTiming
	config     string
	format     format

	location storeLocation // set by fillDefaults
}

// runMain runs a command line and returns the exit code.
func (a *app) runMain(ctx context.Context, args []string) int {
	a.screen = a.stderr
	a.stdout, a.stderr = terminal.NewWriter(a.stdout), terminal.NewWriter(a.stderr)
	root := a.rootCommand()
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitComplete
	}
	if text := errorMessage(err); text != "" {
		fmt.Fprintf(a.stderr, "coditect: %s\n", strings.TrimSpace(text))
	}
	code := codeOf(err)
	if code == exitUsage && cmd != nil {
		fmt.Fprintf(a.stderr, "`%s --help` shows its usage\n", cmd.CommandPath())
	}
	return code
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "coditect",
		Short: "Extract structured data from many documents, with a citation behind every value",
		Example: `  coditect mapreduce run --input docs --schema schema.yaml --output results
  coditect mapreduce list
  coditect serve`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return a.applySettings(cmd)
		},
		Args: cobra.NoArgs,
		RunE: showHelp,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError("%w", err) })
	f := root.PersistentFlags()
	f.StringVar(&a.global.server, "server", "", "address of a server, `HOST:PORT` or unix:PATH; without it the service runs in this process")
	a.global.storeFlags.addFlags(f)
	a.global.timing.addFlags(f)
	f.StringVar(&a.global.config, "config", "", "YAML `file` of settings; each is named like its flag, with _ for -")
	f.VarP(&a.global.format, "format", "o", "format of printed data: text or json")
	_ = root.RegisterFlagCompletionFunc("format", completeWords("text", "json")) // the flag exists
	root.AddCommand(a.mapreduceCommand(), a.serveCommand(), a.workerCommand(), a.versionCommand())
	checkArgs(root)
	return root
}

func (a *app) mapreduceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mapreduce",
		Short: "Run jobs over documents, and manage them",
		Example: `  coditect mapreduce run --input docs --schema schema.yaml --output results
  coditect mapreduce status --job-id mr_20260101_a1b2c3`,
		Args: cobra.NoArgs,
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
		{groupWork, []*cobra.Command{a.runCommand(), a.planCommand(), a.resumeCommand(), a.replayCommand(), a.pipelinesCommand()}},
		{groupLook, []*cobra.Command{a.statusCommand(), a.watchCommand(), a.listCommand(), a.unitsCommand(), a.auditCommand(), a.resultCommand()}},
		{groupSteer, []*cobra.Command{a.pauseCommand(), a.cancelCommand(), a.wakeCommand(), a.removeCommand()}},
		{groupCheck, []*cobra.Command{a.doctorCommand(), a.cacheCommand(), a.evalCommand()}},
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

func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// checkArgs turns the errors of all commands about arguments into usage errors.
func checkArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usageError("%w", err)
			}
			return nil
		}
	}
	for _, c := range cmd.Commands() {
		checkArgs(c)
	}
}

// completeWords returns a completion that offers the words of list.
func completeWords(list ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
}

// requireFlags returns an error if one of the flags is not set: neither on the
// command line nor in the environment nor in the configuration file.
func requireFlags(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if !cmd.Flags().Changed(name) {
			_, text := pflag.UnquoteUsage(cmd.Flags().Lookup(name))
			return usageError("--%s is missing: %s", name, text)
		}
	}
	return nil
}

// progressMeter returns a meter that shows progress on standard error.
func (a *app) progressMeter() *progress.Meter {
	return progress.New(progress.Config{Out: a.screen, Terminal: a.terminal, Width: a.width})
}

// newLogger returns a logger of warnings without times, which do not matter on a
// terminal.
func newLogger(m *progress.Meter) *slog.Logger {
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

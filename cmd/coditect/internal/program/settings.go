package program

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/cmd/coditect/internal/apart"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/store/failpoint"
)

// ApplySettings gives the flags that were not on the command line their values from
// the environment, or else from the configuration file.
//
// Arguments that are inputs override those of the environment and the file, as --input
// does.
func (p *Program) ApplySettings(cmd *cobra.Command, args []string) error {
	flags := cmd.Flags()
	whose := p.Getenv(apart.Variable) // set if another process of this program has started it
	if whose == "" {
		p.warnOfVariables(cmd.Root())
	}

	if err := p.fromEnvironment(flags, flags.Lookup("config")); err != nil {
		return err
	}

	file, err := readConfig(cmd.Context(), cmd.Root(), p.Global.Config)
	if err != nil {
		return err
	}

	var errs []error
	here := flags.Changed("data-dir") // overrides a store from the environment or the file
	flags.VisitAll(func(f *pflag.Flag) {
		overridden := f.Name == "input" && len(args) > 0 || f.Name == "store" && here
		if f.Changed || overridden || !isConfigurable(f.Name) {
			return
		}

		if err := p.fromEnvironment(flags, f); err != nil {
			errs = append(errs, err)
			return
		}
		if !f.Changed {
			errs = append(errs, file.applyFlag(flags, f))
		}
	})

	if err := errors.Join(errs...); err != nil {
		return exit.RefusedError("%w", err)
	}

	if err := p.fillDefaults(); err != nil {
		return err
	}

	if whose != "" {
		cmd.RunE = func(cmd *cobra.Command, _ []string) error {
			return apart.Run(cmd.Context(), p.Version, whose, &p.Runners)
		}
	}
	return nil
}

// notConfigured lists the flags that only make sense on the command line.
var notConfigured = [...]string{"help", "config", "job-id", "page-token", "partial", "verify", "detach", "exact"}

func isConfigurable(name string) bool {
	for _, n := range notConfigured {
		if n == name {
			return false
		}
	}
	return true
}

// fillDefaults sets the location of the store, and the folders that tools search.
func (p *Program) fillDefaults() (err error) {
	p.Runners.Remote = p.Global.Server != ""
	if err = p.Runners.Tools.ReadStores(); err != nil {
		return err
	}
	p.Runners.Tools.Indexes = indexFolder(p.Getenv)
	p.Global.Location, err = p.Global.StoreFlags.storeLocation(p.defaultDataDir())
	return err
}

// indexFolder returns the folder of the indexes of folders of documents, by the XDG
// specification, or "" if there is no home folder.
func indexFolder(getenv func(string) string) string {
	base := getenv("XDG_CACHE_HOME")
	if !filepath.IsAbs(base) { // others are to be ignored
		home := getenv("HOME")
		if home == "" {
			return ""
		}
		base = filepath.Join(home, ".cache")
	}
	return filepath.Join(base, "coditect", "search")
}

// defaultDataDir returns the data directory by the XDG specification, or "".
func (p *Program) defaultDataDir() string {
	base := p.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(base) { // others are to be ignored
		home := p.Getenv("HOME")
		if home == "" {
			return ""
		}
		base = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(base, "coditect")
}

// settingName returns the name of a flag in a configuration file.
func settingName(flag string) string { return strings.ReplaceAll(flag, "-", "_") }

// aliases are the names that ADR-028 has for settings, where they differ.
var aliases = map[string]string{"max_concurrent_agents": "parallelism"}

// fromEnvironment sets a flag from its environment variable, if that is set. Commas
// separate the elements of a list.
func (p *Program) fromEnvironment(flags *pflag.FlagSet, f *pflag.Flag) error {
	if f.Changed {
		return nil
	}

	name := variableOf(f.Name)
	value := p.Getenv(name)
	if value == "" {
		return nil
	}

	values := []string{value}
	if _, ok := f.Value.(pflag.SliceValue); ok {
		values = strings.Split(value, ",")
	}

	for _, v := range values {
		if err := flags.Set(f.Name, v); err != nil {
			return exit.UsageError("environment variable %s: %w", name, settingFault(err))
		}
	}
	return nil
}

// A configFile holds the values of a configuration file, by the names of their flags.
type configFile struct {
	name   string
	values map[string]*yaml.Node
}

// readConfig reads a configuration file; without a name the result is empty. A key
// that is no command's flag is an error.
func readConfig(ctx context.Context, root *cobra.Command, name string) (configFile, error) {
	c := configFile{name: name, values: make(map[string]*yaml.Node)}
	if name == "" || name == os.DevNull {
		return c, nil
	}

	data, err := console.ReadBounded(ctx, name, console.MaxConfigFile)
	if err != nil {
		return c, console.UnreadableFlag(ctx, "--config", err)
	}

	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		line, fault := errs.YAMLFault(err)
		return c, c.faultAt(&yaml.Node{Line: line, Column: 1}, "%s", fault)
	}

	if len(doc.Content) == 0 {
		return c, nil
	}

	top := doc.Content[0]
	if top.Kind != yaml.MappingNode {
		return c, c.faultAt(top, "must be a mapping of settings")
	}

	known := settingsOf(root)
	// The content of a mapping is its keys and values in turn.
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		flag, ok := known[key.Value]
		switch {
		case !ok:
			return c, c.faultAt(key, "%s: no such setting%s", key.Value, DidYouMean(key.Value, "", slices.Sorted(maps.Keys(known))))
		case c.values[flag] != nil:
			return c, c.faultAt(key, "%s: is set twice", key.Value)
		}
		c.values[flag] = value
	}

	return c, nil
}

// warnOfVariables warns of environment variables that look like a mistyped setting. Other
// variables of the prefix may belong to others, so they are no error.
func (p *Program) warnOfVariables(root *cobra.Command) {
	var known []string
	for name := range settingsOf(root) {
		known = append(known, variableOf(name))
	}
	slices.Sort(known)
	known = append(known, variableOf("config"))

	for _, v := range p.Environ {
		name, value, _ := strings.Cut(v, "=")
		if value == "" || !strings.HasPrefix(name, variablePrefix) || slices.Contains(known, name) || slices.Contains(otherVariables, name) || slices.Contains(p.Runners.Extra.Variables, name) {
			continue
		}

		if meant := Nearest(strings.TrimPrefix(name, variablePrefix), trimmed(known)); meant != "" {
			fmt.Fprintf(p.Stderr, "warning: the environment variable %s is no setting, and has no effect; did you mean %s%s?\n", name, variablePrefix, meant)
		}
	}
}

// otherVariables are variables of the prefix that no flag stands behind.
var otherVariables = []string{apart.Variable, "CODITECT_LLM_TRACE", failpoint.Variable}

// trimmed returns names of variables without their prefix.
func trimmed(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = strings.TrimPrefix(name, variablePrefix)
	}
	return out
}

// variablePrefix begins the names of the environment variables of settings.
const variablePrefix = "CODITECT_"

// variableOf returns the environment variable of a setting or a flag.
func variableOf(name string) string { return variablePrefix + strings.ToUpper(settingName(name)) }

// settingsOf returns the names of all settings, with the names of their flags.
func settingsOf(cmd *cobra.Command) map[string]string {
	known := make(map[string]string)

	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, set := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
			set.VisitAll(func(f *pflag.Flag) {
				if isConfigurable(f.Name) {
					known[settingName(f.Name)] = f.Name
				}
			})
		}
		for _, c := range cmd.Commands() {
			visit(c)
		}
	}

	visit(cmd)
	maps.Copy(known, aliases)
	return known
}

// faultAt returns the error of a value, whose line is 0 if it is not known.
func (c configFile) faultAt(n *yaml.Node, format string, args ...any) error {
	if n.Line == 0 {
		return exit.RefusedError("--config: %s: %w", c.name, fmt.Errorf(format, args...))
	}
	return exit.RefusedError("--config: %s:%d:%d: %w", c.name, n.Line, n.Column, fmt.Errorf(format, args...))
}

// settingFault says what is wrong with the value of a setting that its flag refused.
func settingFault(err error) error {
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return fmt.Errorf("%q: %w", wrong.GetValue(), FlagFault(wrong.GetFlag().Value.Type(), wrong.Unwrap()))
	}
	return err
}

// FlagFault says what is wrong with the value of a flag of some type, in place of the names of
// functions that parse such values.
func FlagFault(kind string, err error) error {
	number, ok := errors.AsType[*strconv.NumError](err)
	switch {
	case ok && errors.Is(number, strconv.ErrRange):
		return errors.New("is too large or too small a number")
	case strings.HasPrefix(kind, "int"):
		return errors.New("must be a whole number, such as 4")
	case strings.HasPrefix(kind, "uint"):
		return errors.New("must be a whole number from 0 on, such as 4")
	case strings.HasPrefix(kind, "float"):
		return errors.New("must be a number, such as 0.5")
	case kind == "bool":
		return errors.New("must be true or false")
	case kind == "duration":
		return errors.New("must be a time with its unit, such as 90s, 5m or 1h30m")
	}
	return err
}

// applyFlag sets a flag to its value in the file, if there is one.
func (c configFile) applyFlag(flags *pflag.FlagSet, f *pflag.Flag) error {
	n := c.values[f.Name]
	if n == nil {
		return nil
	}

	values, err := c.flagTexts(n, f)
	if err != nil {
		return err
	}

	for _, v := range values {
		if err := flags.Set(f.Name, v); err != nil {
			return c.faultAt(n, "%s: %w", settingName(f.Name), settingFault(err))
		}
	}
	return nil
}

// flagTexts returns the texts that set a flag on the command line to a value: one for
// each element of a list, and KEY=VALUE for each entry of a mapping.
func (c configFile) flagTexts(n *yaml.Node, f *pflag.Flag) ([]string, error) {
	_, several := f.Value.(pflag.SliceValue)
	switch {
	case n.Kind == yaml.ScalarNode:
		return []string{n.Value}, nil
	case n.Kind == yaml.SequenceNode && several:
		var values []string
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode {
				return nil, c.faultAt(item, "%s: must be a list of texts", settingName(f.Name))
			}
			values = append(values, item.Value)
		}
		return values, nil
	case n.Kind == yaml.MappingNode && several:
		var values []string
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i+1].Kind != yaml.ScalarNode {
				return nil, c.faultAt(n.Content[i+1], "%s.%s: must be a text", settingName(f.Name), n.Content[i].Value)
			}
			values = append(values, n.Content[i].Value+"="+n.Content[i+1].Value)
		}
		return values, nil
	}
	return nil, c.faultAt(n, "%s: must be a single value", settingName(f.Name))
}

// RequireFlags returns an error if one of the flags is not set: neither on the
// command line nor in the environment nor in the configuration file.
func RequireFlags(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if !cmd.Flags().Changed(name) {
			_, text := pflag.UnquoteUsage(cmd.Flags().Lookup(name))
			return exit.UsageError("--%s is missing: %s", name, text)
		}
	}
	return nil
}

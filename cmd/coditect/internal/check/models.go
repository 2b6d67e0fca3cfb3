package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/runners"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/probe"
)

// modelFlags say which server is asked.
type modelFlags struct{ provider, baseURL, model string }

func (m *modelFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&m.provider, "provider", "", "provider whose models are meant: "+strings.Join(runners.ModelProviders(), ", "))
	f.StringVar(&m.baseURL, "base-url", "", "`URL` of the provider's API, or of a server with the same API (default the provider's own)")
	console.OfferWords(cmd, "provider", runners.ModelProviders()...)
}

func (cmds *commands) modelsCommand() *cobra.Command {
	var m modelFlags
	cmd := &cobra.Command{
		Use:   "models --provider PROVIDER",
		Short: "List the models that an account or a server has",
		Long: `Models lists the models that an account of a vendor, or a server, has: their context windows and
abilities, as far as the server tells of them, and their prices in US dollars for a million tokens, as far
as the program knows them. It asks for nothing that costs money.`,
		Example: `  coditect mapreduce models --provider gemini
  coditect mapreduce models --provider vllm --base-url http://gpu:8000/v1
  coditect mapreduce models check --provider vllm --model Qwen/Qwen3-8B`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmds.listModels(cmd.Context(), &m) },
	}

	m.add(cmd)
	cmd.AddCommand(cmds.checkModelCommand())
	return cmd
}

// An offerView is what models prints of one.
type offerView struct {
	llm.Offer
	Input  string `json:"input_price,omitempty"`
	Output string `json:"output_price,omitempty"`
}

// listModels prints the models of a server.
func (cmds *commands) listModels(ctx context.Context, m *modelFlags) error {
	p, _, err := cmds.Runners.OpenProvider(m.provider, m.baseURL)
	if err != nil {
		return err
	}
	lister, ok := p.(llm.Lister)
	if !ok {
		return exit.UsageError("--provider %s: it has no list of models that a key can read; its console has one", m.provider)
	}
	offers, err := lister.Offers(ctx)
	if err != nil {
		return fmt.Errorf("the models of %s: %w", m.provider, err)
	}
	prices, err := cmds.Runners.Models.PriceList()
	if err != nil {
		return err
	}

	all := make([]offerView, len(offers))
	for i, o := range offers {
		all[i].Offer = o
		// The list of prices has what the server does not tell.
		if t, known := prices.Tariff(m.provider, o.Model); known {
			all[i].Input, all[i].Output = t.Input.Dollars(), t.Output.Dollars()
			all[i].Window = max(o.Window, 0)
			if o.Window == 0 {
				all[i].Window = t.Window
			}
		}
	}
	return cmds.PrintData(all, func() {
		cmds.PrintTable("MODEL WINDOW ANSWER INPUT OUTPUT ABILITIES", func(row func(cells ...any)) {
			for _, o := range all {
				row(o.Model, orDash(o.Window), orDash(o.MaxAnswer), orDash(o.Input), orDash(o.Output), abilityWords(o.Abilities))
			}
		})
	})
}

// orDash returns a dash for what is not known.
func orDash[T int64 | string](v T) string {
	if v == *new(T) {
		return "-"
	}
	return fmt.Sprint(v)
}

func abilityWords(all []llm.Ability) string {
	words := make([]string, len(all))
	for i, a := range all {
		words[i] = string(a)
	}
	return orDash(strings.Join(words, ","))
}

func (cmds *commands) checkModelCommand() *cobra.Command {
	var m modelFlags
	cmd := &cobra.Command{
		Use:   "check --provider PROVIDER --model MODEL",
		Short: "Ask a model four times, and say what works",
		Long: `Check asks a model four times and says what works: text, answers by a schema, calls of tools, streams,
counts of tokens, and the prompt cache. The calls take some 8,000 tokens in all.`,
		Example: `  coditect mapreduce models check --provider bedrock --model eu.anthropic.claude-haiku-4-5-v1:0`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmds.checkModel(cmd.Context(), &m) },
	}

	m.add(cmd)
	cmd.Flags().StringVar(&m.model, "model", "", "`name` of the model")
	return cmd
}

// A checkView is what check prints.
type checkView struct {
	*probe.Report
	Learned []string `json:"learned"` // what the server does not take
}

// checkModel asks a model, and prints what works. It fails if anything does not that every job needs.
func (cmds *commands) checkModel(ctx context.Context, m *modelFlags) error {
	if m.model == "" {
		return exit.UsageError("--model is missing; `coditect mapreduce models --provider %s` lists names", m.provider)
	}
	p, learned, err := cmds.Runners.OpenProvider(m.provider, m.baseURL)
	if err != nil {
		return err
	}
	report, err := probe.Ask(ctx, p, llm.Model(m.model))
	if err != nil {
		return fmt.Errorf("%s/%s: %w", m.provider, m.model, err)
	}

	// The notes taken while asking show whether answers came as a stream.
	v := checkView{report, learned()}
	whole := slices.ContainsFunc(v.Learned, func(line string) bool { return strings.Contains(line, "does not stream") })
	report.Findings = append(report.Findings, probe.Finding{Name: "stream", Works: !whole})

	err = cmds.PrintData(v, func() {
		fmt.Fprintf(cmds.Stdout, "%s answers as %s; all calls took %s\n", m.model, console.VisibleText(string(report.Model)), report.Usage)
		cmds.PrintTable("ABILITY WORKS DETAIL", func(row func(cells ...any)) {
			for _, f := range report.Findings {
				row(f.Name, map[bool]string{true: "yes", false: "no"}[f.Works], orDash(f.Detail))
			}
		})
		for _, line := range v.Learned {
			fmt.Fprintln(cmds.Stdout, console.VisibleText(line))
		}
	})

	for _, f := range report.Findings {
		if !f.Works && (f.Name == "text" || f.Name == "structured") && err == nil {
			err = fmt.Errorf("%s does not work: %s", f.Name, f.Detail)
		}
	}
	return err
}

package runners

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/runners/asked"
	"github.com/coditect/mapreduce/worker/agent/checked"
	"github.com/coditect/mapreduce/worker/agent/loop"
	"github.com/coditect/mapreduce/worker/agent/model"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
	"github.com/coditect/mapreduce/worker/agent/model/steps"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/decorator"
	"github.com/coditect/mapreduce/worker/llm/manners"
	"github.com/coditect/mapreduce/worker/llm/vendors"
	"github.com/coditect/mapreduce/worker/step"
	"github.com/coditect/mapreduce/worker/tool/toolbox"
)

// modelFlags are the flags by which a process that runs units reaches models.
type modelFlags struct {
	prices    string
	endpoints []string // PROVIDER=URL
	offered   []string // names of providers; of servers and workers

	// Fleet is set for servers and workers. They run the jobs of others, and such
	// a job must not choose the address that a key is sent to.
	Fleet bool
}

// AddFlags adds the flags of a process that runs its user's own jobs.
func (m *modelFlags) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&m.prices, "prices", "", "YAML `file` with prices of models, in dollars for a million tokens, as in \"openai: {my-model: {input: 0.5, output: 1.5}}\"; they are used before those that come with the program")
	f.StringArrayVar(&m.endpoints, "endpoint", nil, "`PROVIDER=URL`: URL of a provider's API; may be repeated")
}

// AddFleet adds the flags of a process that runs the jobs of others.
func (m *modelFlags) AddFleet(f *pflag.FlagSet) {
	m.AddFlags(f)
	f.StringSliceVar(&m.offered, "providers", nil, "`providers` of the units that run here (default all)")
}

// ModelProviders are the providers that ask models, sorted.
func ModelProviders() []string { return slices.Sorted(maps.Keys(asked.KeyVariables)) }

// ProviderWords lists the providers for the help of a flag: rules, and those that ask models.
func ProviderWords() string {
	all := append([]string{RulesProvider}, ModelProviders()...)
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

// An access is how this process reaches providers that have a name in the table of vendors: their keys
// and settings are those of its environment.
type access struct {
	getenv func(string) string
	models *modelFlags
}

func (r *Runners) access() access { return access{r.Getenv, &r.Models} }

func (a access) configOf(name string, endpoints map[string]string) llm.Config {
	return llm.Config{Key: llm.NewKey(a.getenv(asked.KeyVariables[name])), BaseURL: endpoints[name], Getenv: a.getenv}
}

// open returns a provider, for questions that cost nothing; at its own address unless another is given. A
// fault names the flag that it is about.
func (a access) open(name, address, flag string) (llm.Provider, error) {
	endpoints, err := a.models.baseURLs()
	if err != nil {
		return nil, err
	}

	cfg := a.configOf(name, endpoints)
	cfg.BaseURL = cmp.Or(address, cfg.BaseURL)
	p, err := vendors.New(name, cfg)
	if err != nil {
		return nil, exit.UsageError("%s: %w", flag, err)
	}
	return p, nil
}

// OpenProvider returns a provider that asks models, for one command, and a function with what was
// learned of what its server does not take.
func (r *Runners) OpenProvider(name, baseURL string) (llm.Provider, func() []string, error) {
	if asked.KeyVariables[name] == "" {
		return nil, nil, exit.UsageError("--provider: no provider that asks models is named %q; there are %s", name, strings.Join(ModelProviders(), ", "))
	}

	var mu sync.Mutex // guards lines
	var lines []string
	cfg := r.access().configOf(name, nil)
	cfg.BaseURL = baseURL
	cfg.Manners = manners.NewStore(func(line string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, line)
	})

	p, err := vendors.New(name, cfg)
	if err != nil {
		return nil, nil, exit.UsageError("--provider %s: %w", name, err)
	}

	return p, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(lines)
	}, nil
}

// offeredSteps returns the steps of the providers that --providers names.
func (m *modelFlags) offeredSteps(all *step.Registry, extra *Extra) (*step.Registry, error) {
	if len(m.offered) == 0 {
		return all, nil
	}

	for _, name := range m.offered {
		if !slices.Contains(all.Names(), name) {
			return nil, exit.UsageError("--providers: no provider is named %q; the providers are %s", name, extra.shownOf(all))
		}
	}
	return all.Only(m.offered...), nil
}

// modelAgents returns the agents that ask models, by provider. It reads keys from
// the environment; they go nowhere but into requests.
func (r *Runners) modelAgents() (map[string]*model.Agent, error) {
	prices, err := r.Models.PriceList()
	if err != nil {
		return nil, err
	}
	endpoints, err := r.Models.baseURLs()
	if err != nil {
		return nil, err
	}

	note := func(line string) {
		if r.Note != nil {
			r.Note(line)
		}
	}
	doubted := func(model, why string) {
		note(fmt.Sprintf("the usage that %s reports is not believed: %s; for each such call the tokens that were reserved are charged", model, why))
	}

	r.Gates = decorator.NewGates(func(string) decorator.Rates { return decorator.Rates{} })
	learned := newSharedManners(ModelProviders(), note)
	r.Manners = learned

	all := make(map[string]*model.Agent)
	health := decorator.NewHealth(time.Now, note)

	for _, name := range ModelProviders() {
		cfg := r.access().configOf(name, endpoints)
		cfg.Manners, cfg.SendTrace = learned.stores[name], r.Getenv("CODITECT_LLM_TRACE") != "" // traces are for a scripted server
		cfg.Patient = r.Models.Fleet                                                            // its models may start after it
		all[name], err = model.New(model.Config{
			Provider: name, Trusted: !r.Models.Fleet, Prices: prices, Random: rand.Float64, LLM: cfg,
			Limited: func(p llm.Provider, count func(*llm.Request) int64) llm.Provider {
				return &decorator.Limit{Provider: r.Observers.Around(r.Keys.Around(p)), Gates: r.Gates, Count: count}
			},
			Doubted: doubted, Health: health, Others: func(name string) *model.Agent { return all[name] },
		})
		if err != nil {
			return nil, err
		}
	}

	return all, nil
}

// CheckKeys returns an error if there is no key for a provider that --providers names, and
// that cannot be asked without one. Where all providers are offered, it is not known which of
// them will be asked, so none needs a key.
func (r *Runners) CheckKeys() error {
	endpoints, err := r.Models.baseURLs()
	if err != nil {
		return err
	}

	var missing []error
	for _, v := range vendors.All() {
		if !slices.Contains(r.Models.offered, v.Name) {
			continue
		}
		if _, err := vendors.New(v.Name, r.access().configOf(v.Name, endpoints)); err != nil {
			missing = append(missing, err)
		}
	}

	return errors.Join(missing...)
}

// WatchKeys calls told when a vendor begins to refuse the key of this process, with what an
// operator can do about it. It must be called before units run.
func (r *Runners) WatchKeys(told func(error)) {
	r.Keys = decorator.NewKeys(func(provider string, err error) error {
		return fmt.Errorf("%s refuses the key in %s: %w; set it to a valid key, and start this process again", provider, asked.KeyVariables[provider], err)
	}, told)
}

// PriceList returns the prices that come with the program, and those of --prices.
func (m *modelFlags) PriceList() (*llm.Prices, error) {
	prices, err := llm.ListPrices()
	if err != nil || m.prices == "" {
		return prices, err
	}

	data, err := console.ReadBounded(context.Background(), m.prices, console.MaxConfigFile)
	if err != nil {
		return nil, exit.RefusedError("--prices: %w", err)
	}
	if prices, err = prices.With(data); err != nil {
		return nil, exit.RefusedError("--prices: %s: %w", m.prices, err)
	}

	for _, name := range prices.Providers() {
		if asked.KeyVariables[name] == "" {
			return nil, exit.RefusedError("--prices: %s: no provider is named %q; those with prices are %s", m.prices, name, strings.Join(ModelProviders(), ", "))
		}
	}
	return prices, nil
}

// SetPrices stores the prices of the job's models from --prices in the job, so that
// every process that runs or shows the job uses that price.
func (m *modelFlags) SetPrices(spec *mapreduce.JobSpec) error {
	if _, said := spec.Vars[settings.VarPrices]; m.prices == "" || said {
		return nil
	}

	prices, err := m.PriceList()
	if err != nil {
		return err
	}

	file, err := prices.For(step.ModelsOf(spec)...)
	if err == nil && file != nil {
		spec.Vars[settings.VarPrices] = string(file)
	}
	return err
}

// baseURLs reads the endpoints.
func (m *modelFlags) baseURLs() (map[string]string, error) {
	out := make(map[string]string)
	for _, e := range m.endpoints {
		name, url, ok := strings.Cut(e, "=")
		if !ok || asked.KeyVariables[name] == "" || url == "" {
			return nil, exit.UsageError("--endpoint: %q is not PROVIDER=URL, with one of the providers %s", e, strings.Join(ModelProviders(), ", "))
		}
		out[name] = url
	}
	return out, nil
}

// keylessAgent returns an agent for the checks of a job that need no key.
func keylessAgent(provider string) (*model.Agent, error) {
	prices, err := llm.ListPrices()
	if err != nil {
		return nil, err
	}
	return keylessAgentWithPrices(provider, prices)
}

// keylessAgentWithPrices returns such an agent with a list of prices.
func keylessAgentWithPrices(provider string, prices *llm.Prices) (*model.Agent, error) {
	return model.New(model.Config{
		Provider: provider, Trusted: true, Prices: prices, Random: rand.Float64, LLM: llm.Config{Key: llm.NewKey("of-the-workers")},
		Others: func(name string) *model.Agent {
			other, err := keylessAgentWithPrices(name, prices)
			if err != nil || asked.KeyVariables[name] == "" {
				return nil
			}
			return other
		},
	})
}

// withModels adds the steps that ask models to the registry others.
// The tools are those of this process, as soon as they are open.
func withModels(others *step.Registry, askers map[string]*model.Agent, tools func() *toolbox.Box) {
	for name, asker := range askers {
		all := steps.Of(asker)
		all[step.Agent] = loop.New(asker, tools)
		others.Provide(mapreduce.Provider{Name: name, Models: true}, all.With(checked.New))
	}
}

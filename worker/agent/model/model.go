// Package model makes jobs ready for the models of a provider, and asks these: what is said to them, with
// which settings, in which form an answer comes, what stands for a model that is away, and what a call may
// cost. It remembers in the journal of a unit what a model was asked and what it answered. What its
// answers become is in package steps.
//
// Package settings has what a job says of its model, package prompt instructions and the
// marks around documents, package form the form of answers about records, and package found
// what these come to once their quotes were looked for.
package model

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/text/token"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/decorator"
	"github.com/coditect/mapreduce/worker/llm/vendors"
	"github.com/coditect/mapreduce/worker/step"
)

// Config configures the agent of one provider.
type Config struct {
	// Provider is its name in Vendors. It is required.
	Provider string

	// Vendors is the table that has the provider. Defaults to vendors.All.
	Vendors vendors.Table

	// LLM holds its key and how it is reached. Window and ToolMode are the
	// jobs' own.
	LLM llm.Config

	// Trusted lets a job choose the address of the provider. The key is sent to that
	// address, so Trusted is only for a process that runs its user's own jobs.
	// Otherwise a job may use no address but LLM.BaseURL.
	Trusted bool

	// Prices say what calls cost. Defaults to nothing known.
	Prices *llm.Prices

	// Limited puts a provider behind the limits of its models. Defaults to
	// none.
	Limited func(llm.Provider, func(*llm.Request) int64) llm.Provider

	// Random returns numbers in [0,1), for pauses. It is required.
	Random func() float64

	// Others returns the agent of another provider, whose models may stand for those of this one; nil
	// if there is none. Defaults to none.
	Others func(provider string) *Agent

	// FirstElsewhere is how long a response may take to begin where another model could give
	// one; LLM.First bounds it too. Defaults to DefaultFirstElsewhere.
	FirstElsewhere time.Duration

	// Health knows which models answer, where others stand for them. Defaults to one of its own.
	Health *decorator.Health

	// Doubted is called with the reason why the usage that a model's server reports is not
	// believed, once for each model, under the name of its breaker. Defaults to doing
	// nothing.
	Doubted func(model, why string)
}

// DefaultFirstElsewhere is the default of Config.FirstElsewhere.
const DefaultFirstElsewhere = 2 * time.Minute

// An Agent asks a provider's models. Its steps run units. It is safe for concurrent
// use.
type Agent struct {
	cfg     Config
	reach   *connections
	tallies *tallies
	Count   *token.Counter
	Sizes   *TokenCounter // of requests
	doubt   *decorator.Doubter

	mu       sync.Mutex // guards the fields below
	programs map[[sha256.Size]byte]*Program
	jobs     map[[sha256.Size]byte][]*Program // all of a job
}

// New returns an agent.
func New(cfg Config) (*Agent, error) {
	if cfg.Provider == "" || cfg.Random == nil {
		return nil, errors.New("model: Provider and Random are required")
	}

	if cfg.Vendors == nil {
		cfg.Vendors = vendors.All()
	}
	if cfg.Prices == nil {
		cfg.Prices = new(llm.Prices)
	}
	if cfg.Limited == nil {
		cfg.Limited = func(p llm.Provider, _ func(*llm.Request) int64) llm.Provider { return p }
	}
	if cfg.Others == nil {
		cfg.Others = func(string) *Agent { return nil }
	}
	cfg.FirstElsewhere = cmp.Or(cfg.FirstElsewhere, DefaultFirstElsewhere)
	if cfg.Health == nil {
		cfg.Health = decorator.NewHealth(time.Now, func(string) {})
	}

	count := token.New()
	return &Agent{
		cfg: cfg, reach: &connections{cfg: &cfg, vendors: make(map[vendorKey]llm.Provider)},
		tallies: &tallies{of: make(map[mapreduce.JobID]*answerTally)}, Count: count, Sizes: NewTokenCounter(count), doubt: decorator.NewDoubter(cfg.Doubted),
		programs: make(map[[sha256.Size]byte]*Program),
		jobs:     make(map[[sha256.Size]byte][]*Program),
	}, nil
}

// AdviseError adds to an error after which no unit can succeed the provider and the model
// that it is of, and what its reader can do about it.
func AdviseError(p *Program, err error) error {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return err
	}

	do := ""
	switch e.Kind {
	case llm.Auth:
		do = fmt.Sprintf("set %s_API_KEY to a key that this provider takes", strings.ToUpper(p.Provider))
	case llm.Permission:
		do = "use a key that may ask this model, or another --model"
	case llm.Billing:
		do = "pay the provider, or raise the limit that it keeps for this key"
	case llm.NotFound:
		do = "see whether the provider has the --model, and whether --base-url is its address"
	case llm.NotAPI:
		do = "see whether --base-url, or --endpoint of the worker, is the provider's address, and what HTTPS_PROXY says"
	case llm.NotThere:
		do = "start the server there, or set --base-url to the address of one that runs"
	default:
		return err
	}

	return fmt.Errorf("%s, model %s: %w; %s", p.Provider, p.Model, err, do)
}

// Check refuses a job that no worker like this one could run: wrong settings, a
// key that is missing, a schema that the provider cannot express, a context
// window without room for any document.
func (a *Agent) Check(spec *mapreduce.JobSpec) error {
	all, err := a.programsOf(spec)
	for _, p := range all {
		err = cmp.Or(err, p.checkOthers())
	}
	return cmp.Or(err, checkShown(spec))
}

// CheckStage is Check of one stage, with the spec of a job as the units of the stage run with it: for
// one that has a model of its own.
func (a *Agent) CheckStage(spec *mapreduce.JobSpec, name string) error {
	stage, err := step.Specify(spec, name)
	if err != nil {
		return err
	}

	if stage.Output == agent.PassagesChosen && len(stage.Tools) == 0 { // which no model chooses
		return nil
	}

	p, err := a.ProgramOf(spec, stage)
	if err != nil {
		return err
	}
	return p.checkOthers()
}

// Room returns how many tokens of a document fit into a prompt of the job, with
// some to spare as models count differently; 0 if the window is not known.
func (a *Agent) Room(spec *mapreduce.JobSpec) (int64, error) {
	prompt, err := a.Prompt(spec)
	if err != nil {
		return 0, err
	}
	all, err := a.programsOf(spec)
	if err != nil || len(all) == 0 || all[0].Narrowest == 0 {
		return 0, err
	}
	return max((all[0].Narrowest-prompt-all[0].Bound)*4/5, MinDocument/2), nil
}

// Prompt returns how many tokens the longest prompt of the job has without a
// document.
func (a *Agent) Prompt(spec *mapreduce.JobSpec) (most int64, err error) {
	all, err := a.programsOf(spec)
	for _, p := range all {
		most = max(most, p.fixed)
	}
	return most, err
}

// Overhead returns the tokens that a call of the job's reduces, or of its direct unit,
// needs besides its inputs: those of the prompt, and the most of the answer. Both are 0
// if these units ask no model.
func (a *Agent) Overhead(spec *mapreduce.JobSpec) (prompt, answer int64, err error) {
	all, err := a.programsOf(spec)
	for _, p := range all {
		if p.overhead > 0 {
			prompt, answer = max(prompt, p.overhead), max(answer, p.Most)
		}
	}
	return prompt, answer, err
}

// Sees reports whether a model of the job is shown pictures of pages.
func (a *Agent) Sees(spec *mapreduce.JobSpec) bool {
	all, err := a.programsOf(spec)
	return err == nil && slices.ContainsFunc(all, func(p *Program) bool { return p.Sight != nil })
}

// Warms reports whether the prompts of a job's map units begin so long alike that
// the vendor keeps that: the next is cheaper once one has been answered.
func (a *Agent) Warms(spec *mapreduce.JobSpec) (bool, error) {
	all, err := a.programsOf(spec)
	for _, p := range all {
		t, _ := p.prices.Tariff(p.Provider, p.Model)
		if p.batches == nil && t.CacheFrom > 0 && int64(a.Count.Count(p.System)) >= t.CacheFrom {
			return true, nil
		}
	}
	return false, err
}

// Batches returns what makes a batch of an order.
func (a *Agent) Batches(order *protocol.BatchOrder) (batch.Vendor, error) {
	s := settings.Settings{Provider: order.Provider, Model: llm.Model(order.Model)}
	if order.Own {
		s.BaseURL, s.ToolMode = order.Vars[settings.VarBaseURL], order.Vars[settings.VarTools] == "true"
	}
	return a.reach.batchesOf(s)
}

// BatchPrices returns the prices of the models of an order.
func (a *Agent) BatchPrices(order *protocol.BatchOrder) (*llm.Prices, error) {
	return a.cfg.Prices.With([]byte(order.Vars[settings.VarPrices]))
}

// CanBatch reports whether batches of the provider can be made here: it has some, and there is a key.
func (a *Agent) CanBatch() bool {
	_, err := a.reach.batchesOf(settings.Settings{Provider: a.cfg.Provider})
	return err == nil
}

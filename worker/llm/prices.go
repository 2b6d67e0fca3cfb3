package llm

import (
	_ "embed" // of the list of prices
	"fmt"
	"maps"
	"math"
	"math/bits"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/coditect/mapreduce/api/parameters"
)

//go:embed prices.yaml
var pricesFile []byte

// A Price is in millionths of a US dollar for a million tokens, which makes
// every listed price whole.
type Price int64

// priceForm has at most six digits after the point.
var priceForm = regexp.MustCompile(`^(\d{1,6})(?:\.(\d{1,6}))?$`)

// A Percent is a share, in whole hundredths.
type Percent int64

// A Tariff holds the prices of a model.
type Tariff struct {
	Input        Price   `yaml:"input"`
	Output       Price   `yaml:"output"`
	CacheWrite   *Price  `yaml:"cache_write"`    // nil: as input
	CacheWrite1h *Price  `yaml:"cache_write_1h"` // nil: as cache_write
	CacheRead    *Price  `yaml:"cache_read"`     // nil: as input
	Batch        Percent `yaml:"batch"`          // of all these; 0: no batches, so all of it
	BatchCache   Percent `yaml:"batch_cache"`    // of CacheRead in a batch; 0: as Batch
	Flex         Percent `yaml:"flex"`           // likewise, in the tier flex
	Priority     Percent `yaml:"priority"`       // likewise, in the tier priority; 0: not known
	Above        int64   `yaml:"above"`          // tokens of a prompt, beyond which a call costs
	Times        uint16  `yaml:"times"`          // so many times as much
	OutputAbove  *Price  `yaml:"output_above"`   // what the output of such a call costs. nil: as often as the rest
	CacheFrom    int64   `yaml:"cache_from"`     // tokens from which on the beginning of a prompt is cached; 0: not known, or never
	Window       int64   `yaml:"window"`         // tokens of a prompt and its answer together; 0: not known
}

// Prices are the tariffs of models, by provider and model. They are immutable.
type Prices struct {
	tariffs map[string]map[Model]Tariff
}

// ListPrices returns the prices that come with the program, which are read once.
func ListPrices() (*Prices, error) { return listed() }

var listed = sync.OnceValues(func() (*Prices, error) { return (&Prices{}).With(pricesFile) })

// maxTimes bounds Times, so that costs are reckoned in 128 bits.
const maxTimes = 100

// With returns the prices with those of a file in place of or in addition to them. Errors name the
// line.
func (p *Prices) With(file []byte) (*Prices, error) {
	over, err := readTariffs(file)
	if err != nil {
		return nil, err
	}

	out := make(map[string]map[Model]Tariff)
	// The prices of the file come last, so that they stand in place of the others.
	for _, all := range []map[string]map[Model]Tariff{p.tariffs, over} {
		for provider, models := range all {
			if out[provider] == nil {
				out[provider] = make(map[Model]Tariff)
			}
			maps.Copy(out[provider], models)
		}
	}

	return &Prices{out}, nil
}

// Providers returns the providers that have prices, sorted.
func (p *Prices) Providers() []string { return slices.Sorted(maps.Keys(p.tariffs)) }

// Models returns the models of a provider that have prices, sorted, without what stands for all
// others.
func (p *Prices) Models(provider string) []Model {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(p.tariffs[provider])), func(m Model) bool { return m == "*" })
}

// isValid reports whether the fields go together, and are within their bounds.
func (t Tariff) isValid() bool {
	return t.CacheFrom >= 0 && t.Window >= 0 && t.Above >= 0 && t.Times <= maxTimes &&
		(t.Above == 0) == (t.Times == 0) && (t.OutputAbove == nil || t.Above > 0)
}

// For returns the tariffs of models, each "provider/model", as a file of prices, which a job can carry
// along; it is empty if no tariff is known.
func (p *Prices) For(names ...string) ([]byte, error) {
	known := make(map[string]map[Model]Tariff)
	for _, name := range names {
		provider, model, _ := strings.Cut(name, "/")
		t, ok := p.Tariff(provider, Model(model))
		if !ok {
			continue
		}

		if known[provider] == nil {
			known[provider] = make(map[Model]Tariff)
		}
		known[provider][Model(model)] = t
	}

	if len(known) == 0 {
		return nil, nil
	}
	return yaml.Marshal(known)
}

// Dollars returns the price in US dollars, without zeros at its end.
func (p Price) Dollars() string {
	text := fmt.Sprintf("%d.%06d", p/1e6, p%1e6)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// MarshalYAML writes dollars.
func (p Price) MarshalYAML() (any, error) {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: p.Dollars()}, nil
}

// MarshalYAML writes "50%".
func (p Percent) MarshalYAML() (any, error) { return fmt.Sprintf("%d%%", p), nil }

// dated is how vendors name a version of a model.
var dated = regexp.MustCompile(`^(.+?)-(?:\d{8}|\d{4}-\d{2}-\d{2}|latest)$`)

// Tariff returns the prices of a model, if they are known.
func (p *Prices) Tariff(provider string, model Model) (Tariff, bool) {
	models := p.tariffs[provider]
	if t, ok := models[model]; ok {
		return t, true
	}

	if m := dated.FindStringSubmatch(string(model)); m != nil {
		if t, ok := models[Model(m[1])]; ok {
			return t, true
		}
	}

	t, ok := models["*"]
	return t, ok
}

// Batch is the tier of calls that a batch has made.
const Batch = parameters.Batch

// share returns what of the prices is charged in a tier, in hundredths. It is false if that is not
// known: of a cheaper tier all of it is charged then, and of priority nobody knows how much.
func (t Tariff) share(tier string) (share uint64, known bool) {
	switch of := map[string]Percent{Batch: t.Batch, parameters.Flex: t.Flex, parameters.Priority: t.Priority}[tier]; {
	case of > 0:
		return uint64(of), true
	default:
		return 100, tier != parameters.Priority
	}
}

// Share returns what of the prices is charged in a tier, in hundredths; 0 if that is not known.
func (t Tariff) Share(tier string) int64 {
	share, known := t.share(tier)
	if !known {
		return 0
	}
	return int64(share)
}

// Has reports whether a price of a model is known in a tier: that of the standard one is, of each model
// that has a tariff, and none is higher in flex or a batch.
func (t Tariff) Has(tier string) bool {
	_, known := t.share(tier)
	return known
}

// In returns the tariff with the prices of input and output in a tier, rounded up.
func (t Tariff) In(tier string) Tariff {
	share, _ := t.share(tier)
	part := func(p Price) Price { return Price((int64(p)*int64(share) + 99) / 100) }
	t.Input, t.Output = part(t.Input), part(t.Output)
	return t
}

// Cost returns what usage costs in a tier, in millionths of a US dollar, rounded up once at the end, so
// that a sum of calls is never short. It is false for a model whose price is not known.
func (p *Prices) Cost(provider string, model Model, u Usage, tier string) (micros int64, known bool) {
	t, ok := p.Tariff(provider, model)
	if !ok {
		return 0, false
	}

	share, _ := t.share(tier)
	if tier == Batch && t.BatchCache > 0 && t.Batch > 0 {
		// What is read costs so much in a batch that its share of that is what it is to cost.
		read := uint64(orPrice(t.CacheRead, t.Input)) * uint64(t.BatchCache)
		t.CacheRead = new(Price((read + share - 1) / share))
	}

	return t.usageCost(u.clampTo(math.MaxInt64), share), true
}

// Most returns no less than any call can cost that reads and writes no more than so many tokens,
// whatever of them its vendor keeps in a cache or reads from there. A call that is to be cheaper in its
// tier may be answered in the standard one, unless a batch makes it. It is false for a model whose price is not known in the tier.
func (p *Prices) Most(provider string, model Model, in, out int64, tier string) (micros int64, known bool) {
	t, ok := p.Tariff(provider, model)
	share, priced := t.share(tier)
	if !ok || !priced {
		return 0, false
	}

	write := orPrice(t.CacheWrite, t.Input)
	t.Input = max(t.Input, write, orPrice(t.CacheWrite1h, write), orPrice(t.CacheRead, t.Input))
	if t.OutputAbove != nil { // which a list may set below the other
		t.OutputAbove = new(max(*t.OutputAbove, t.Output))
	}
	u := Usage{Input: in, Output: out}
	if tier != Batch { // whose vendor never answers in another
		share = max(share, 100)
	}
	return t.usageCost(u.clampTo(math.MaxInt64), share), true
}

// usageCost multiplies in 128 bits: tokens × price × share has the unit 10⁻⁸ of the
// result's.
func (t Tariff) usageCost(u Usage, share uint64) int64 {
	output, outputShare := t.Output, share
	if t.Above > 0 && u.In() > t.Above {
		share *= uint64(t.Times)
		if t.OutputAbove != nil {
			output = *t.OutputAbove
		} else {
			outputShare = share
		}
	}

	write := orPrice(t.CacheWrite, t.Input)

	var hi, lo uint64
	add := func(tokens int64, price Price, share uint64) {
		h, l := bits.Mul64(uint64(tokens), uint64(price)*share)
		var carry uint64
		lo, carry = bits.Add64(lo, l, 0)
		hi, _ = bits.Add64(hi, h, carry)
	}

	add(u.Input, t.Input, share)
	add(u.CacheWrite, write, share)
	add(u.CacheWrite1h, orPrice(t.CacheWrite1h, write), share)
	add(u.CacheRead, orPrice(t.CacheRead, t.Input), share)
	add(u.Output, output, outputShare)
	const unit = 100_000_000
	// A cost that does not fit into 64 bits is the most that there is.
	if hi >= unit {
		return math.MaxInt64
	}

	n, rest := bits.Div64(hi, lo, unit)
	if rest > 0 {
		n++
	}

	return int64(min(n, math.MaxInt64))
}

func orPrice(p *Price, otherwise Price) Price {
	if p == nil {
		return otherwise
	}
	return *p
}

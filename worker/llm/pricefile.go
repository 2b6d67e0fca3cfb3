package llm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/coditect/mapreduce/api/errs"
)

// tariffKeys are the keys of a model in a file of prices.
func tariffKeys() []string {
	return []string{"input", "output", "cache_write", "cache_write_1h", "cache_read", "batch", "batch_cache", "flex", "priority", "above", "times", "output_above", "cache_from", "window"}
}

// readTariffs reads a file of prices: a mapping of providers to mappings of models to their
// prices. Errors begin with the line, if it is known, and name provider, model and key.
func readTariffs(file []byte) (map[string]map[Model]Tariff, error) {
	var document, more yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(file))
	err := d.Decode(&document)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}

	// A second document would be passed over in silence.
	if err == nil {
		if err = d.Decode(&more); err == nil {
			return nil, faultOfPrices(&more, "", "there is more than one document in the file")
		}
	}
	if !errors.Is(err, io.EOF) {
		line, fault := errs.YAMLFault(err)
		return nil, faultOfPrices(&yaml.Node{Line: line}, "", "%s", fault)
	}

	out := make(map[string]map[Model]Tariff)
	err = eachKey(document.Content[0], "", "providers", func(provider string, models *yaml.Node) error {
		out[provider] = make(map[Model]Tariff)
		return eachKey(models, provider, "models", func(model string, prices *yaml.Node) error {
			t, err := readTariff(provider+"."+model, prices)
			out[provider][Model(model)] = t
			return err
		})
	})
	return out, err
}

// eachKey calls read with the keys and values of the mapping n, which is at a path and holds
// what.
func eachKey(n *yaml.Node, path, what string, read func(key string, value *yaml.Node) error) error {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}

	if n.Kind != yaml.MappingNode {
		return faultOfPrices(n, path, "must be a mapping of %s, as in openai: {my-model: {input: 0.5, output: 1.5}}", what)
	}

	// A key that stands twice is no error where nodes are decoded, so it is looked for
	// here.
	lines := make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if line, twice := lines[key.Value]; twice {
			return faultOfPrices(key, path, "%q stands in line %d already", key.Value, line)
		}

		lines[key.Value] = key.Line
		if err := read(key.Value, n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// readTariff reads the prices of one model.
func readTariff(path string, n *yaml.Node) (t Tariff, err error) {
	given := make(map[string]bool)
	err = eachKey(n, path, "prices", func(key string, value *yaml.Node) error {
		if !slices.Contains(tariffKeys(), key) {
			return faultOfPrices(value, path, "there is no price %q; there are %s", key, strings.Join(tariffKeys(), ", "))
		}
		if value.ShortTag() == "!!null" {
			return nil
		}
		given[key] = true
		return t.setPrice(path+"."+key, key, value)
	})

	switch {
	case err != nil:
	case !given["input"] || !given["output"]:
		err = faultOfPrices(n, path, "needs both input and output, in dollars for a million tokens; 0 is what costs nothing")
	case !t.isValid():
		err = faultOfPrices(n, path, "above and times belong together, output_above needs both, times is at most %d, and no length is negative", maxTimes)
	}
	return t, err
}

// setPrice sets the price of a key.
func (t *Tariff) setPrice(path, key string, n *yaml.Node) error {
	prices := map[string]**Price{"cache_write": &t.CacheWrite, "cache_write_1h": &t.CacheWrite1h, "cache_read": &t.CacheRead, "output_above": &t.OutputAbove}
	lengths := map[string]*int64{"above": &t.Above, "cache_from": &t.CacheFrom, "window": &t.Window}

	switch key {
	case "input":
		return readPrice(path, n, &t.Input)
	case "output":
		return readPrice(path, n, &t.Output)
	case "batch":
		return readPercent(path, n, &t.Batch, 100)
	case "batch_cache":
		return readPercent(path, n, &t.BatchCache, 100)
	case "flex":
		return readPercent(path, n, &t.Flex, 100)
	case "priority":
		return readPercent(path, n, &t.Priority, maxPercent)
	case "times":
		v, err := strconv.ParseUint(n.Value, 10, 16)
		if err != nil {
			return faultOfPrices(n, path, "%q is no whole number up to %d", n.Value, maxTimes)
		}
		t.Times = uint16(v)
		return nil
	}

	if p := prices[key]; p != nil {
		*p = new(Price)
		return readPrice(path, n, *p)
	}

	v, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil {
		return faultOfPrices(n, path, "%q is no whole number of tokens", n.Value)
	}

	*lengths[key] = v
	return nil
}

// readPrice reads dollars, without ever making a fraction of them.
func readPrice(path string, n *yaml.Node, p *Price) error {
	m := priceForm.FindStringSubmatch(n.Value)
	if m == nil {
		return faultOfPrices(n, path, "%q is no price in dollars, such as 3 or 0.25: up to 6 digits, a point and up to 6 more", n.Value)
	}
	v, err := strconv.ParseInt(m[1]+m[2]+strings.Repeat("0", 6-len(m[2])), 10, 64)
	*p = Price(v)
	return err
}

// maxPercent bounds how much more a tier may cost, so that costs are reckoned in 128 bits.
const maxPercent = 1000

// readPercent reads "50%", up to most.
func readPercent(path string, n *yaml.Node, p *Percent, most uint64) error {
	v, err := strconv.ParseUint(strings.TrimSuffix(n.Value, "%"), 10, 16)
	if err != nil || v > most || !strings.HasSuffix(n.Value, "%") {
		return faultOfPrices(n, path, "%q is no share from 0%% to %d%%, such as 50%%", n.Value, most)
	}
	*p = Percent(v)
	return nil
}

// faultOfPrices returns the error of a value of a file of prices.
func faultOfPrices(n *yaml.Node, path, format string, args ...any) error {
	message := fmt.Sprintf(format, args...)
	if path != "" {
		message = path + ": " + message
	}
	if n.Line > 0 {
		message = fmt.Sprintf("line %d: %s", n.Line, message)
	}
	return errors.New(message)
}

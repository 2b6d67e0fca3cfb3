package auth

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// quotaKeys are the keys of quotas, with where each goes.
var quotaKeys = []struct {
	key string
	of  func(*mapreduce.Quota) *int64
}{
	{"jobs", func(q *mapreduce.Quota) *int64 { return &q.Jobs }},
	{"unended_jobs", func(q *mapreduce.Quota) *int64 { return &q.UnendedJobs }},
	{"waiting_units", func(q *mapreduce.Quota) *int64 { return &q.WaitingUnits }},
	{"stored_bytes", func(q *mapreduce.Quota) *int64 { return &q.StoredBytes }},
	{"tokens_per_day", func(q *mapreduce.Quota) *int64 { return &q.TokensPerDay }},
	{"calls", func(q *mapreduce.Quota) *int64 { return &q.Calls }},
	{"requests_per_minute", func(q *mapreduce.Quota) *int64 { return &q.RequestsPerMinute }},
}

// addRules reads what is set for tenants; n may be nil.
func (p *policyParser) addRules(n *yaml.Node) error {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		return p.faultAt(n, "tenants: must be a list")
	}

	for i, item := range n.Content {
		if err := p.addRule(fmt.Sprintf("tenants[%d]", i), item); err != nil {
			return err
		}
	}
	return nil
}

func (p *policyParser) addRule(at string, n *yaml.Node) error {
	fields, err := p.readFields(n, at, "tenant", "quotas", "keep")
	if err != nil {
		return err
	}

	if fields["tenant"] == nil {
		return p.faultAt(n, "%s.tenant: is missing", at)
	}
	t, err := p.readTenant(at+".tenant", fields["tenant"])
	if err != nil {
		return err
	}

	if _, twice := p.policy.rules[t]; twice {
		return p.faultAt(fields["tenant"], "%s.tenant: %q stands above already", at, t)
	}

	var rule mapreduce.TenantRule
	if rule.Keep, err = p.keep(at+".keep", fields["keep"]); err != nil {
		return err
	}
	if err := p.readQuotas(at+".quotas", fields["quotas"], &rule.Quota); err != nil {
		return err
	}

	p.policy.rules[t] = rule
	return nil
}

// leastKeep is the shortest time for which jobs may be kept.
const leastKeep = time.Minute

func (p *policyParser) keep(at string, n *yaml.Node) (time.Duration, error) {
	if n == nil {
		return 0, nil
	}

	text, err := p.text(at, n)
	if err != nil {
		return 0, err
	}

	d, err := time.ParseDuration(text)
	if err != nil || d < leastKeep {
		return 0, p.faultAt(n, "%s: %q is not a time of %v or longer, such as 720h", at, text, leastKeep)
	}
	return d, nil
}

func (p *policyParser) readQuotas(at string, n *yaml.Node, q *mapreduce.Quota) error {
	if n == nil {
		return nil
	}

	known := make([]string, len(quotaKeys))
	for i, k := range quotaKeys {
		known[i] = k.key
	}

	fields, err := p.readFields(n, at, known...)
	if err != nil {
		return err
	}

	for _, k := range quotaKeys {
		if fields[k.key] == nil {
			continue
		}
		if *k.of(q), err = p.readAmount(at+"."+k.key, fields[k.key]); err != nil {
			return err
		}
	}

	return nil
}

// amountUnits are the words behind a number, of which the longer come first.
var amountUnits = []struct {
	suffix string
	factor int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"", 1}}

// readAmount reads a number above 0, which may have a unit of bytes.
func (p *policyParser) readAmount(at string, n *yaml.Node) (int64, error) {
	text, err := p.text(at, n)
	if err != nil {
		return 0, err
	}

	for _, u := range amountUnits {
		digits, found := strings.CutSuffix(text, u.suffix)
		if !found {
			continue
		}
		number, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || number < 1 || number > math.MaxInt64/u.factor {
			break
		}
		return number * u.factor, nil
	}

	return 0, p.faultAt(n, "%s: %q is not a whole number above 0; leave the quota out to set no bound", at, text)
}

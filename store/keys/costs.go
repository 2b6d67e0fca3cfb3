package keys

import (
	"fmt"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/tuple"
)

// A Spent is what is counted of calls of models.
type Spent int64

// What is counted of calls of models.
const (
	SpentCalls    Spent = iota + 1 // that were answered
	SpentIn                        // tokens
	SpentOut                       // tokens
	SpentMicros                    // millionths of a US dollar
	SpentUnpriced                  // tokens whose price is not known
)

// LastSpent is the last of them.
const LastSpent = SpentUnpriced

// CostKeys are the keys of what a tenant's jobs have spent, those that are gone included.
type CostKeys struct {
	space  *Space
	tenant mapreduce.TenantID
}

// Costs returns the keys of what a tenant's jobs have spent.
func (s *Space) Costs(t mapreduce.TenantID) CostKeys { return CostKeys{s, t} }

func (c CostKeys) key(name string) []byte {
	return tuple.AppendString(c.space.nameKey(name), string(c.tenant))
}

// A CostAt names what was spent on a day, of which nothing but the tenant is the same for all. Labels is the
// id of those of the job.
type CostAt struct {
	Day                 int64 // since 1970
	Labels, Model, Tier string
	What                Spent
}

// Spent returns the key of a counter.
func (c CostKeys) Spent(at CostAt) []byte {
	k := tuple.AppendString(tuple.AppendInt(c.key("cost"), at.Day), at.Labels)
	return tuple.AppendInt(tuple.AppendString(tuple.AppendString(k, at.Model), at.Tier), int64(at.What))
}

// Days returns the range of the counters of the days from one up to another, which is left out.
func (c CostKeys) Days(from, to int64) store.Range {
	key := c.key("cost")
	return store.Range{Begin: tuple.AppendInt(key, from), End: tuple.AppendInt(c.key("cost"), to)}
}

// After returns the first key of costs behind those of the tenant.
func (c CostKeys) After() []byte { return c.space.After(c.key("cost")) }

// Labels returns the key of the labels that have an id.
func (c CostKeys) Labels(id string) []byte { return tuple.AppendString(c.key("costlabels"), id) }

// AllLabels returns the range of all labels that the tenant's jobs have had.
func (c CostKeys) AllLabels() store.Range { return childRange(c.key("costlabels")) }

// LabelsAt returns which id a key of CostKeys.Labels is of.
func (c CostKeys) LabelsAt(key []byte) (id string, err error) {
	_, rest, err := c.space.Last(key)
	if err != nil {
		return "", err
	}
	rest.Skip() // the tenant
	id = rest.Text()
	return id, rest.Err()
}

// Gone returns the key that counts what jobs had spent that are gone.
func (c CostKeys) Gone(what Spent) []byte { return tuple.AppendInt(c.key("costgone"), int64(what)) }

// Costs returns the range of what all tenants' jobs have spent.
func (a AllTenants) Costs() store.Range { return a.keys("cost") }

// CostAt returns which counter a key of CostKeys.Spent is.
func (a AllTenants) CostAt(key []byte) (t mapreduce.TenantID, at CostAt, err error) {
	name, rest, err := a.space.Last(key)
	if err != nil {
		return "", at, err
	}

	t = mapreduce.TenantID(rest.Text())
	at = CostAt{Day: rest.Int(), Labels: rest.Text(), Model: rest.Text(), Tier: rest.Text(), What: Spent(rest.Int())}
	if err := rest.Err(); err != nil {
		return "", at, err
	}
	if name != "cost" || at.What < SpentCalls || at.What > LastSpent {
		return "", at, fmt.Errorf("keys: %x is no counter of costs", key)
	}
	return t, at, nil
}

// CostsGone returns the range of what all tenants' jobs had spent that are gone.
func (a AllTenants) CostsGone() store.Range { return a.keys("costgone") }

// CostGoneAt returns what a key of CostKeys.Gone counts.
func (a AllTenants) CostGoneAt(key []byte) (t mapreduce.TenantID, what Spent, err error) {
	_, rest, err := a.space.Last(key)
	if err != nil {
		return "", 0, err
	}
	t, what = mapreduce.TenantID(rest.Text()), Spent(rest.Int())
	return t, what, rest.Err()
}

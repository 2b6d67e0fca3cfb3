package decorator

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/coditect/mapreduce/worker/llm"
)

// Keys notes which vendors refuse the key of this process. A key that is missing shows when
// a process starts; one that is wrong shows when a vendor is asked. A nil one notes nothing.
// Its methods are safe for concurrent use.
type Keys struct {
	describe func(provider string, err error) error
	changed  func(err error)

	mu      sync.Mutex       // guards the variable below
	refused map[string]error // by provider, as describe says it; those whose latest verdict was a refusal
}

// NewKeys returns a Keys for which no vendor has refused a key yet. describe returns what an
// operator has to know of a refusal. changed is called with that, without locks, when a
// vendor begins to refuse.
func NewKeys(describe func(provider string, err error) error, changed func(err error)) *Keys {
	return &Keys{describe: describe, changed: changed, refused: make(map[string]error)}
}

// Around returns a provider that notes for each call whether the vendor accepted its key.
func (k *Keys) Around(p llm.Provider) llm.Provider {
	if k == nil {
		return p
	}
	return &keyed{p, k}
}

// Refused returns what describe said of each vendor that has refused its key and has not
// answered since, in order of their names; nil if there is none.
func (k *Keys) Refused() error {
	k.mu.Lock()
	defer k.mu.Unlock()

	var all []error
	for _, provider := range slices.Sorted(maps.Keys(k.refused)) {
		all = append(all, k.refused[provider])
	}
	return errors.Join(all...)
}

// A keyed provider reports its calls to Keys.
type keyed struct {
	llm.Provider
	keys *Keys
}

// Complete implements llm.Provider.
func (p *keyed) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	res, err := p.Provider.Complete(ctx, req)
	p.keys.note(p.Name(), err)
	return res, err
}

// note takes the outcome of a call. Only an answer shows that the key is accepted: a vendor
// that has too much to do may say so before it looks at the key.
func (k *Keys) note(provider string, err error) {
	if err == nil {
		k.mu.Lock()
		delete(k.refused, provider)
		k.mu.Unlock()
		return
	}

	if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.Auth {
		return
	}

	found := k.describe(provider, err)
	// changed is called behind the lock, since it may ask for what is refused.
	k.mu.Lock()
	_, known := k.refused[provider]
	k.refused[provider] = found
	k.mu.Unlock()

	if !known {
		k.changed(found)
	}
}

package runners

import (
	"strings"

	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

// A sharedManners knows what the servers of all providers refuse, and shares it with the fleet.
type sharedManners struct {
	stores map[string]*manners.Store // by provider; not changed once made
	due    chan struct{}
}

var _ worker.MannersKeeper = (*sharedManners)(nil)

// newSharedManners returns manners that know nothing yet. It calls told with one line for
// each thing that is learned.
func newSharedManners(providers []string, told func(line string)) *sharedManners {
	all := &sharedManners{stores: make(map[string]*manners.Store), due: make(chan struct{}, 1)}
	for _, name := range providers {
		all.stores[name] = manners.NewStore(func(line string) {
			told(line)
			select {
			case all.due <- struct{}{}:
			default: // it is due already
			}
		})
	}
	return all
}

// Learn implements worker.MannersKeeper.
func (s *sharedManners) Learn(all []protocol.ModelManners, pass bool) {
	for _, m := range all {
		provider, model, _ := strings.Cut(m.Name, "/")
		if store := s.stores[provider]; store != nil {
			store.Learn(manners.Known{Server: m.Server, Model: model, Refuses: m.Refuses}, pass)
		}
	}
}

// News implements worker.MannersKeeper.
func (s *sharedManners) News() []protocol.ModelManners { return s.gather((*manners.Store).News) }

// All implements worker.MannersKeeper.
func (s *sharedManners) All() []protocol.ModelManners { return s.gather((*manners.Store).All) }

// Due implements worker.MannersKeeper.
func (s *sharedManners) Due() <-chan struct{} { return s.due }

func (s *sharedManners) gather(some func(*manners.Store) []manners.Known) (all []protocol.ModelManners) {
	for name, store := range s.stores {
		for _, k := range some(store) {
			all = append(all, protocol.ModelManners{Name: name + "/" + k.Model, Server: k.Server, Refuses: k.Refuses})
		}
	}
	return all
}

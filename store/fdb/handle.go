//go:build fdb

package fdb

import (
	"fmt"
	"sync"

	"github.com/apple/foundationdb/bindings/go/src/fdb"
)

// handles are the clusters that this process is connected to. They are global because
// the client is: its network runs once in a process, and the binding shares one
// handle of a cluster file among all callers, in a map without a lock, and closes it
// for all of them. So handles counts the uses.
var handles = handleTable{open: make(map[string]*handle)}

type handleTable struct {
	mu      sync.Mutex // guards the variables below, and the binding's map
	version error      // error of selecting the API version
	chosen  bool
	open    map[string]*handle
}

type handle struct {
	db   fdb.Database
	uses int
}

// acquire returns the handle of a cluster file. The caller must release it once.
func (h *handleTable) acquire(file string) (fdb.Database, error) {
	h.mu.Lock()
	defer h.mu.Unlock()

	// The API version can be selected once in a process.
	if !h.chosen {
		h.version, h.chosen = fdb.APIVersion(APIVersion), true
	}
	if h.version != nil {
		return fdb.Database{}, fmt.Errorf("store/fdb: the client library (libfdb_c) does not speak API version %d, "+
			"that of release 7.3; install FoundationDB's client 7.3: %w", APIVersion, h.version)
	}

	if shared := h.open[file]; shared != nil {
		shared.uses++
		return shared.db, nil
	}

	db, err := fdb.OpenDatabase(file)
	if err != nil {
		return fdb.Database{}, fmt.Errorf("store/fdb: cluster file %s: %w", file, err)
	}

	h.open[file] = &handle{db: db, uses: 1}
	return db, nil
}

// release gives a handle back. The last release closes it.
func (h *handleTable) release(file string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	shared := h.open[file]
	if shared.uses--; shared.uses > 0 {
		return
	}
	delete(h.open, file)
	shared.db.Close()
}

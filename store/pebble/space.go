package pebble

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/coditect/mapreduce/store"
)

// checkSpaceEvery is how long a reading of the free space is believed.
const checkSpaceEvery = 100 * time.Millisecond

// A spaceGuard refuses commits while the disk is nearly full: if a write to
// Pebble's log failed, the process would have to end. Only the committer uses
// it.
type spaceGuard struct {
	free    func() (uint64, error)
	minimum uint64
	logger  *slog.Logger

	checked time.Time
	written uint64 // bytes since checked
	err     error  // what checked came to
}

// check returns an error while there is too little space. It asks again when the
// last reading is old, when much was written since, and always while refusing.
func (g *spaceGuard) check(now time.Time) error {
	fresh := !g.checked.IsZero() && now.Sub(g.checked) < checkSpaceEvery && g.written < g.minimum/8
	if g.err == nil && fresh {
		return nil
	}
	g.checked, g.written = now, 0
	free, err := g.free()
	before := g.err
	switch {
	case err != nil: // a folder whose space is unknown is used like any other
		g.err = nil
		g.logger.Debug("free space unknown", "error", err)
	case free < g.minimum:
		g.err = fmt.Errorf("%w: %d bytes free, %d are kept", store.ErrNoSpace, free, g.minimum)
	default:
		g.err = nil
	}
	if (before == nil) != (g.err == nil) {
		g.logger.Warn("free space", "bytes", free, "minimum", g.minimum, "writable", g.err == nil)
	}
	return g.err
}

func (g *spaceGuard) wrote(bytes int) { g.written += uint64(bytes) }

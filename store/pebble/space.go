package pebble

import (
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/coditect/mapreduce/store"
)

// checkSpaceEvery is how long a measurement of the free space is used.
const checkSpaceEvery = 100 * time.Millisecond

// remindEvery is the least time between two log lines about the same problem.
const remindEvery = time.Minute

// A spaceGuard refuses commits while the disk is nearly full, because the process
// would have to end if a write to Pebble's log failed. Only the committer uses it.
//
// Once it refuses, it continues until the free space is an eighth above the
// minimum. Otherwise Pebble's compactions would make it change its decision many
// times a second.
type spaceGuard struct {
	free    func() (uint64, error)
	folder  string
	minimum uint64
	logger  *slog.Logger

	checked    time.Time
	written    uint64    // bytes since checked
	err        error     // outcome of the last check
	lastLogged time.Time // when it last logged
}

// checkSpace returns an error while there is too little space. It measures again if
// the last measurement is old, if much was written since, and always while
// refusing.
func (g *spaceGuard) checkSpace(now time.Time) error {
	fresh := !g.checked.IsZero() && now.Sub(g.checked) < checkSpaceEvery && g.written < g.minimum/8
	if g.err == nil && fresh {
		return nil
	}

	g.checked, g.written = now, 0
	before := g.err

	free, err := g.free()
	if err != nil { // unknown space counts as enough
		g.logger.Debug("free space unknown", "error", err)
		free = math.MaxUint64
	}

	g.err = g.spaceError(free)
	g.logChange(before != nil, now)
	return g.err
}

func (g *spaceGuard) spaceError(free uint64) error {
	need := g.minimum
	if g.err != nil {
		need += g.minimum / 8
	}
	if free >= need {
		return nil
	}
	return noSpaceError(g.folder, free, need)
}

func noSpaceError(folder string, free, need uint64) error {
	return fmt.Errorf("%w: %d MiB are free for %s, but at least %d MiB must be free", store.ErrNoSpace, free>>20, folder, (need+1<<20-1)>>20)
}

// logChange logs that space has become short, that it still is, or that there is
// enough again.
func (g *spaceGuard) logChange(refused bool, now time.Time) {
	switch {
	case g.err != nil && (!refused || now.Sub(g.lastLogged) >= remindEvery):
		g.logger.Warn("the disk is nearly full: nothing new is stored until there is room, and nothing is lost; free some space", "cause", g.err)
		g.lastLogged = now
	case g.err == nil && refused:
		g.logger.Warn("there is room on the disk again: the store goes on", "folder", g.folder)
	}
}

func (g *spaceGuard) addWritten(bytes int) { g.written += uint64(bytes) }

package pebble

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"

	"github.com/coditect/mapreduce/store/pebble/internal/files"
)

// pebbleOptions returns Pebble's settings for small writes, queues that leave many
// tombstones, and a disk that other programs use too.
func (s *Store) pebbleOptions() *pebbledb.Options {
	fsys := s.config.FS
	if s.mark != nil {
		fsys = files.MarkedFS{FS: fsys, Mark: s.mark, Unmarked: s.warnUnmarked}
	}

	o := &pebbledb.Options{
		FS:                          files.LoggedFS{FS: files.OrderedFS{FS: fsys}, Register: s.register},
		Lock:                        s.lock,
		CacheSize:                   s.config.CacheSize,
		Merger:                      s.sumMerger(),
		FormatMajorVersion:          pebbledb.FormatValueSeparation,
		MemTableSize:                s.config.MemTableSize,
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       2,
		L0StopWritesThreshold:       32,
		LBaseMaxBytes:               64 << 20,
		MaxOpenFiles:                MaxTableFiles(),
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
		FlushDelayDeleteRange:       s.config.FlushDelay,
		Logger:                      logger{s.config.Logger, s.config.Fatal},
		EventListener:               s.eventListener(),
	}

	// A filter saves reads of tables that do not have a key.
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		o.Levels[i].FilterType = pebbledb.TableFilter
	}

	return o
}

// MaxTableFiles returns how many files a store keeps open of its tables: 500, or fewer
// if the process may open few. Logs and a few others come on top.
func MaxTableFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 500
	}
	return max(64, int(min(500, limit.Cur/3)))
}

// eventListener returns a listener that logs important events. Without a listener,
// Pebble ends the process when it finds damage; with one, the read fails. Errors
// are logged as strings, because Pebble's errors carry stack traces.
func (s *Store) eventListener() *pebbledb.EventListener {
	log := s.config.Logger
	var background, damage, stalls logThrottle

	return &pebbledb.EventListener{
		BackgroundError: func(err error) {
			if n, due := background.next(s.config.Now()); due {
				log.Error("tables cannot be written; trying again", "folder", s.folder, "error", err.Error(), "failures", n)
			}
		},
		DataCorruption: func(info pebbledb.DataCorruptionInfo) {
			if n, due := damage.next(s.config.Now()); due {
				log.Error("pebble found damage", "path", info.Path, "error", info.Details.Error(), "times", n)
			}
		},
		WriteStallBegin: func(info pebbledb.WriteStallBeginInfo) {
			if n, due := stalls.next(s.config.Now()); due {
				log.Warn("writes wait until earlier ones are sorted out to disk", "reason", info.Reason, "times", n)
			}
		},
		WALCreated: s.logCreated,
	}
}

// A logThrottle lets one log line a minute of one kind through.
type logThrottle struct {
	mu         sync.Mutex
	lastLogged time.Time // guarded by mu
	suppressed int       // guarded by mu: events since lastLogged
}

// next counts an event. It reports whether a line is due, and for how many events.
func (t *logThrottle) next(now time.Time) (events int, due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.suppressed++
	if !t.lastLogged.IsZero() && now.Sub(t.lastLogged) < remindEvery {
		return 0, false
	}
	events, t.suppressed, t.lastLogged = t.suppressed, 0, now
	return events, true
}

// logCreated registers a new log. Pebble calls it before it writes to the log. If
// the registration fails, nothing is lost except the warning that Open would give
// if the log were removed.
func (s *Store) logCreated(info pebbledb.WALCreateInfo) {
	if info.Err != nil {
		return // Pebble ends the process
	}
	if err := s.register.AddLog(uint64(info.FileNum)); err != nil {
		s.config.Logger.Error("a log is not registered", "path", info.Path, "error", err)
	}
}

// A logger passes Pebble's messages on.
type logger struct {
	log   *slog.Logger
	fatal func(string)
}

func (l logger) Infof(format string, args ...any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug(fmt.Sprintf(format, args...))
	}
}

func (l logger) Errorf(format string, args ...any) { l.log.Error(fmt.Sprintf(format, args...)) }

func (l logger) Fatalf(format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	l.log.Error(message)
	l.fatal(message)
}

package enginetest

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"

	"github.com/coditect/mapreduce/orchestrator"
)

// Logged returns settings whose log is kept.
func Logged(c orchestrator.Config) (orchestrator.Config, *LogBook) {
	log := new(LogBook)
	c.Logger = slog.New(slog.NewTextHandler(log, nil))
	return c, log
}

// A LogBook keeps the lines of a log.
type LogBook struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

// Write implements io.Writer.
func (j *LogBook) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// Lines returns those with part in them.
func (j *LogBook) Lines(part string) (found []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for line := range strings.Lines(j.text.String()) {
		if strings.Contains(line, part) {
			found = append(found, line)
		}
	}
	return found
}

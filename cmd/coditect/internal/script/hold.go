package script

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/step"
)

// A holder stops a job. It lets as many attempts pass as its file says;
// the others wait until the file is gone.
type holder struct {
	step.Runner
	file   string
	pass   int64
	begun  atomic.Int64
	paused time.Duration // between looks at the file
}

// holdRunner returns a itself, or a holder if the file exists.
func holdRunner(a step.Runner, file string) (step.Runner, error) {
	data, err := os.ReadFile(file)
	if file == "" || errors.Is(err, fs.ErrNotExist) {
		return a, nil
	}

	var pass int64
	if err == nil {
		pass, err = strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", holdVariable, err)
	}

	return &holder{Runner: a, file: file, pass: pass, paused: 10 * time.Millisecond}, nil
}

// Run implements step.Runner.
func (h *holder) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	for wait := h.begun.Add(1) > h.pass; wait; {
		if err := clock.Sleep(ctx, h.paused); err != nil {
			return nil, err
		}
		_, err := os.Stat(h.file)
		wait = err == nil
	}
	return h.Runner.Run(ctx, task, calls)
}

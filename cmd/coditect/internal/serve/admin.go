package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/cmd/coditect/internal/embedded"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/worker"
)

func addAdminFlag(f *pflag.FlagSet, address *string) {
	f.StringVar(address, "admin", "", "`address` for operators, [HOST]:PORT; without HOST only this machine can reach it. It serves /healthz, /readyz, /metrics and profiles (default: none)")
}

// openTelemetry sets up what the environment asks for, and metrics for an admin listener if
// there is to be one. It returns the logger of the process, and what ends all of it.
func (cmds *commands) openTelemetry(ctx context.Context, service, admin string) (*slog.Logger, func(), error) {
	plain := slog.NewTextHandler(cmds.Stderr, nil)
	if err := cmds.OpenTelemetry(ctx, service, admin != "", slog.New(plain)); err != nil {
		return nil, nil, err
	}
	return slog.New(cmds.Telemetry.LogHandler(plain)), func() { cmds.CloseTelemetry(ctx, slog.New(plain)) }, nil
}

// listenAdmin begins to serve operators, if there is an address for them, and returns what
// ends that.
func (cmds *commands) listenAdmin(address string, checks []AdminCheck, log *slog.Logger) (func(), error) {
	if address == "" {
		return func() {}, nil
	}

	s, err := ListenAdmin(AdminConfig{Address: address, Checks: checks, Metrics: cmds.Telemetry.Handler(), Logger: log})
	if err != nil {
		return nil, exit.RefusedError("--admin: %w", err)
	}

	log.Info("operators are served", "admin", s.Addr().String())
	return func() {
		if err := s.Close(); err != nil {
			log.Warn("closing the admin listener", "error", err)
		}
	}, nil
}

// readiness is what a process needs to be ready, as far as it has it.
type readiness struct {
	node     atomic.Pointer[embedded.Node] // nil until the store is open
	stopping atomic.Bool
}

// serverChecks are the checks of a server.
func (r *readiness) serverChecks() []AdminCheck {
	return []AdminCheck{
		{Name: "store", Run: func(ctx context.Context) error {
			n := r.node.Load()
			switch {
			case n == nil:
				return errors.New("the store is being opened")
			case r.stopping.Load():
				return errors.New("the server is stopping")
			}
			return n.CheckStoreAnswers(ctx)
		}},
		{Name: "workers", Run: func(context.Context) error {
			if n := r.node.Load(); n == nil || n.CountWorkers() == 0 {
				return errors.New("no worker is connected, so jobs wait; start one with `coditect worker`, or serve with --workers")
			}
			return nil
		}},
	}
}

// workerChecks are the checks of a worker. It may have no key for some providers, which
// shows at once, and refused returns what says that others refuse theirs.
func (*readiness) workerChecks(w *worker.Worker, keyless error, refused func() error) []AdminCheck {
	return []AdminCheck{
		{Name: "stream", Run: func(context.Context) error {
			switch err := w.Trouble(); {
			case w.Connected():
				return nil
			case err != nil:
				return fmt.Errorf("session %s has no stream to a server: %w", w.Session(), err)
			}
			return fmt.Errorf("session %s has no stream to a server yet", w.Session())
		}},
		{Name: "keys", Run: func(context.Context) error { return errors.Join(keyless, refused()) }},
	}
}

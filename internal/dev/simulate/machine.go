package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/coditect/mapreduce/internal/dev/simulation"
)

// A machine runs scenarios one after the other, each from nothing.
type machine struct {
	runtime wazero.Runtime
	guest   wazero.CompiledModule
}

// guest is the package that is run.
const guest = "github.com/coditect/mapreduce/internal/dev/simulation/guest"

// newMachine compiles the guest: to WebAssembly, and that for this processor. Both are kept in a folder
// for the next time.
func newMachine(ctx context.Context, folder string) (*machine, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}

	file := filepath.Join(folder, "guest.wasm")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", file, guest)
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compiling %s: %w\n%s", guest, err, out)
	}
	code, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}

	compiled, err := wazero.NewCompilationCacheWithDir(filepath.Join(folder, "compiled"))
	if err != nil {
		return nil, err
	}
	config := wazero.NewRuntimeConfigCompiler().WithCompilationCache(compiled).WithCloseOnContextDone(true)
	m := &machine{runtime: wazero.NewRuntimeWithConfig(ctx, config)}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, m.runtime); err != nil {
		return nil, err
	}
	if m.guest, err = m.runtime.CompileModule(ctx, code); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *machine) close(ctx context.Context) { _ = m.runtime.Close(ctx) } // nothing runs in it any more

// play runs a scenario. What it prints as a trace goes to standard error.
func (m *machine) play(ctx context.Context, s *simulation.Scenario, traced bool) (*simulation.Report, error) {
	scenario, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}

	// Whatever the guest could have of this machine follows from the seed: time goes on only while
	// everything waits, or a little when somebody looks.
	var out, trouble bytes.Buffer
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], s.Seed)
	binary.LittleEndian.PutUint64(seed[8:], s.Order)
	c := new(watch)
	config := wazero.NewModuleConfig().WithName("").WithArgs("guest", string(scenario)).
		WithStdout(&out).WithStderr(&trouble).WithRandSource(rand.NewChaCha8(seed)).
		WithNanotime(c.nanotime, 1).WithWalltime(c.walltime, 1).WithNanosleep(c.sleep).WithOsyield(c.yield)
	if traced {
		config = config.WithArgs("guest", string(scenario), "traced").WithStderr(os.Stderr)
	}

	module, err := m.runtime.InstantiateModule(ctx, m.guest, config)
	if exit, ok := errors.AsType[*sys.ExitError](err); ok && exit.ExitCode() == 0 {
		err = nil
	}
	if module != nil {
		_ = module.Close(ctx) // it has ended
	}

	// A guest that fails, or in which everybody waits for somebody, is a scenario that fails.
	report := new(simulation.Report)
	if err != nil && context.Cause(ctx) == nil {
		report.Broken = []string{fmt.Sprintf("8: the process ended: %v\n%s", err, trouble.String())}
		return report, nil
	}
	if err != nil {
		return nil, err
	}
	return report, json.Unmarshal(out.Bytes(), report)
}

// A watch is the clock of a guest, in nanoseconds. It begins at the same time in each.
type watch struct{ passed int64 }

// look is how long it takes to look at the watch: who waits in a loop must not wait for ever.
const look = 100

func (w *watch) nanotime() int64 {
	w.passed += look
	return w.passed
}

func (w *watch) walltime() (seconds int64, nanoseconds int32) {
	const begin = 946_684_800 // the year 2000
	w.passed += look
	return begin + w.passed/1e9, int32(w.passed % 1e9)
}

func (w *watch) sleep(ns int64) { w.passed += max(0, ns) }

func (w *watch) yield() { w.passed += look }

package lap

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/coditect/mapreduce/internal/dev/bench/rig"
)

// An order is what a program of a system is to do.
type order struct {
	Measure *Settings    `json:",omitempty"`
	Worker  *workerOrder `json:",omitempty"`
}

// Serve does what the program was started for, and ends it.
func Serve(s System) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ordered, err := rig.RunChild(ctx, os.Stdin, os.Stdout, func(ctx context.Context, o *order, out *json.Encoder) error {
		switch {
		case o.Worker != nil:
			return o.Worker.carryOut(ctx, s, out)
		case o.Measure != nil:
			r, err := measure(ctx, s, *o.Measure)
			if err != nil {
				return err
			}
			return out.Encode(r)
		}
		return errors.New("an order of nothing")
	})
	stop()

	if !ordered {
		err = errors.New("this program is started by rivals, which measures: make bench-rivals")
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", s.Info().Name, err)
		os.Exit(1)
	}
}

// Run has the program of a system measure it once.
func Run(ctx context.Context, program string, set Settings) (*Result, error) {
	r := new(Result)
	if err := rig.AskProgram(ctx, program, order{Measure: &set}, r); err != nil {
		return nil, err
	}
	return r, nil
}

// versionOf returns the version of a module that this program was built with.
func versionOf(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range info.Deps {
		if m.Path == module {
			return m.Version
		}
	}
	return ""
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

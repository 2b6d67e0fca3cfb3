//go:build !fdb

package driver

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/coditect/mapreduce/store"
)

func cluster(testing.TB) (store.Store, bool) { return nil, false }

// Leaks are the goroutines that the driver leaves running, for goleak.
func Leaks() []goleak.Option { return nil }

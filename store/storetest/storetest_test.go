package storetest_test

import (
	"testing"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/storetest"
	"github.com/coditect/mapreduce/store/storetest/memory"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return new(memory.Store) })
}

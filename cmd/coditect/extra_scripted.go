//go:build scripted

package main

import (
	"github.com/coditect/mapreduce/cmd/coditect/internal/runners"
	"github.com/coditect/mapreduce/cmd/coditect/internal/script"
)

// extra returns the provider that this program has beside those of all, for tests.
func extra() runners.Extra { return script.Extra() }

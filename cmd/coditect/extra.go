//go:build !scripted

package main

import "github.com/coditect/mapreduce/cmd/coditect/internal/runners"

// extra returns the provider that this program has beside those of all: none.
func extra() runners.Extra { return runners.Extra{} }

//go:build !linux && !darwin

package pdf

import "context"

// withMemory leaves the memory of instances to Go.
func withMemory(ctx context.Context) context.Context { return ctx }

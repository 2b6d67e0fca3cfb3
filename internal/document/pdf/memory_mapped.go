//go:build linux || darwin

package pdf

import (
	"context"
	"syscall"

	"github.com/tetratelabs/wazero/experimental"
)

// withMemory has instances take their memory from the kernel: room for all that one may have is
// set aside, and what it uses is taken page by page. It grows without being copied, and is given
// back at once when the document is read, not when Go next collects what is free.
func withMemory(ctx context.Context) context.Context {
	return experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(setAside))
}

// A mapped is memory of an instance.
type mapped struct {
	all []byte // that is set aside; nil if there was no room
	own []byte // that Go gives instead
}

// setAside returns memory of most bytes, or one that Go gives if the kernel sets none aside, as
// where the addresses of a process are bounded.
func setAside(_, most uint64) experimental.LinearMemory {
	all, err := syscall.Mmap(-1, 0, int(most), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return new(mapped)
	}
	return &mapped{all: all}
}

// Reallocate returns the first bytes; nil if there are not so many.
func (m *mapped) Reallocate(size uint64) []byte {
	switch {
	case m.all == nil:
		m.own = append(m.own, make([]byte, size-uint64(len(m.own)))...)
		return m.own
	case size > uint64(len(m.all)):
		return nil
	}
	return m.all[:size]
}

// Free gives the memory back.
func (m *mapped) Free() {
	if m.all != nil {
		dropError(syscall.Munmap(m.all))
	}
	m.all, m.own = nil, nil
}

package main_test

import (
	"os/exec"
	"sync"
	"sync/atomic"

	"github.com/coditect/mapreduce/store/failpoint"
)

// A mortal is a server or a worker that is started again each time that it dies, until stop.
type mortal struct {
	h       *house
	args    []string
	address string // at which it serves pages; empty of a worker

	deaths atomic.Int64
	ended  chan struct{}

	mu   sync.Mutex // guards the variables below
	now  *exec.Cmd  // changed by the goroutine that waits for it
	over bool
}

// live starts a server of pages, which dies at the points of each of its lives in turn, and returns when it serves.
func (h *house) live(address string, points []string) *mortal {
	return h.revive([]string{"serve", "--listen", "unix", "--http", address}, address, points)
}

// revive starts a server or a worker, which dies at the points of each of its lives in turn. It returns when a server
// serves pages at the address.
func (h *house) revive(args []string, address string, points []string) *mortal {
	m := &mortal{h: h, args: args, address: address, ended: make(chan struct{})}
	said := m.start(points[0])
	if address != "" {
		said.await(h.t, `msg="HTTP is served" http=(\S+)`)
	}
	go func() {
		defer close(m.ended)
		for {
			_ = m.now.Wait() // it dies of a failpoint, or is killed
			m.deaths.Add(1)
			if m.start(points[int(m.deaths.Load())%len(points)]) == nil {
				return
			}
		}
	}()
	return m
}

// start starts it, to die at a point unless that is empty, if it was not stopped for good.
func (m *mortal) start(point string) *output {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over {
		return nil
	}
	said := &output{more: make(chan struct{})}
	var env []string
	if point != "" {
		env = append(env, failpoint.Variable+"="+point)
	}
	m.now = m.h.command(env, m.args...)
	m.now.Stdout, m.now.Stderr = said, said
	if err := m.now.Start(); err != nil {
		m.h.t.Error(err)
	}
	return said
}

// kill ends the life that it has.
func (m *mortal) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = m.now.Process.Kill() // it may be dead
}

// stop ends it for good, and returns how often it died before.
func (m *mortal) stop() int64 {
	deaths := m.deaths.Load()
	m.mu.Lock()
	m.over = true
	_ = m.now.Process.Kill() // it may be dead
	m.mu.Unlock()
	<-m.ended
	return deaths
}

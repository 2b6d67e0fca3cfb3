package network_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coditect/mapreduce/internal/dev/simulation/network"
)

const latency = 10 * time.Millisecond

// connect returns a network with a connection from a to b.
func connect(t *testing.T) (n *network.Network, near, far net.Conn) {
	t.Helper()
	n = network.New(latency)
	l, err := n.Listen("b")
	if err != nil {
		t.Fatal(err)
	}
	if near, err = n.Dial(t.Context(), "a", "b"); err != nil {
		t.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = near.Close()
		_ = far.Close()
		_ = l.Close()
	})
	return n, near, far
}

func write(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if n, err := io.WriteString(c, text); n != len(text) || err != nil {
		t.Fatalf("wrote %d bytes of %d: %v", n, len(text), err)
	}
}

// wantRead reads a text, and checks how long that takes.
func wantRead(t *testing.T, c net.Conn, text string, takes time.Duration) {
	t.Helper()
	begun := time.Now()
	p := make([]byte, len(text))
	if _, err := io.ReadFull(c, p); err != nil || string(p) != text {
		t.Errorf("read %q, %v; want %q", p, err, text)
	}
	if took := time.Since(begun); took != takes {
		t.Errorf("%q took %v, want %v", text, took, takes)
	}
}

// wantSilence checks that nothing is read for a minute.
func wantSilence(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %d bytes, %v; want none in a minute", n, err)
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func TestBytesArriveInOrderAfterTheLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, near, far := connect(t)
		write(t, near, "one ")
		write(t, near, "two")
		wantRead(t, far, "one two", latency)
		write(t, far, "three")
		wantRead(t, near, "three", latency)
		if err := near.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := far.Read(make([]byte, 1))
		wantError(t, "reading behind the end", err, io.EOF)
	})
}

func TestOneDirectionIsBlockedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, near, far := connect(t)
		n.Block("a", "b")
		write(t, near, "held")
		write(t, far, "through")
		wantRead(t, near, "through", latency)
		wantSilence(t, far)
		n.Mend("a", "b")
		wantRead(t, far, "held", latency)
	})
}

// What is under way when a link is blocked waits, and so does the end of the stream.
func TestABlockedLinkHoldsTheEndToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, near, far := connect(t)
		write(t, near, "last")
		if err := near.Close(); err != nil {
			t.Fatal(err)
		}
		n.Block("a", "b")
		wantSilence(t, far)
		n.MendAll()
		wantRead(t, far, "last", latency)
		_, err := far.Read(make([]byte, 1))
		wantError(t, "reading behind the end", err, io.EOF)
	})
}

func TestASlowLinkTakesLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, near, far := connect(t)
		n.Slow("a", "b", time.Second)
		write(t, near, "slow")
		n.Mend("a", "b")
		write(t, near, " and behind it") // which does not overtake it
		wantRead(t, far, "slow and behind it", latency+time.Second)
	})
}

// A writer waits while as much is under way as may be.
func TestAWriterWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, near, far := connect(t)
		n.Block("a", "b")
		text := strings.Repeat("x", 1<<20)
		var writing sync.WaitGroup
		wrote := false
		writing.Go(func() {
			write(t, near, text)
			wrote = true
		})
		<-time.After(time.Hour)
		if wrote {
			t.Error("a megabyte was written to a link that is blocked")
		}
		n.Mend("a", "b")
		wantAll := make([]byte, len(text))
		if _, err := io.ReadFull(far, wantAll); err != nil || string(wantAll) != text {
			t.Errorf("a megabyte was not read as it was written: %v", err)
		}
		writing.Wait()
	})
}

func TestBrokenConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, near, far := connect(t)
		write(t, near, "lost")
		if broken := n.Break("b", "a", false); broken != 1 {
			t.Errorf("%d connections broke, want 1", broken)
		}
		for _, c := range []net.Conn{near, far} {
			_, err := c.Read(make([]byte, 1))
			wantError(t, "reading", err, syscall.ECONNRESET)
			_, err = c.Write([]byte("x"))
			wantError(t, "writing", err, syscall.ECONNRESET)
		}
	})
}

// Of a connection that is half open one end hears nothing.
func TestHalfOpenConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, near, far := connect(t)
		n.Break("a", "b", true)
		_, err := near.Read(make([]byte, 1))
		wantError(t, "reading at the end that was told", err, syscall.ECONNRESET)
		wantSilence(t, far)
		write(t, far, "to nobody")
	})
}

// Hosts that go away tell it or not, and over a blocked link they cannot.
func TestHostsThatGoDown(t *testing.T) {
	for name, test := range map[string]struct{ told, blocked, hears bool }{
		"a process":              {told: true, hears: true},
		"a machine":              {},
		"a process out of reach": {told: true, blocked: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, near, _ := connect(t)
				if test.blocked {
					n.Block("b", "a")
				}
				n.Down("b", test.told)
				if test.hears {
					_, err := near.Read(make([]byte, 1))
					wantError(t, "reading", err, syscall.ECONNRESET)
				} else {
					wantSilence(t, near)
				}
				n.MendAll()
				_, err := n.Dial(t.Context(), "a", "b")
				wantError(t, "connecting again", err, syscall.ECONNREFUSED)
			})
		})
	}
}

// Whoever connects over a blocked link waits, for as long as it wants.
func TestConnectingWaitsForTheLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _, _ := connect(t)
		n.Block("b", "a") // no answer comes
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := n.Dial(ctx, "a", "b")
		wantError(t, "connecting", err, context.DeadlineExceeded)

		time.AfterFunc(time.Second, func() { n.Mend("b", "a") })
		begun := time.Now()
		c, err := n.Dial(t.Context(), "a", "b")
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != time.Second+latency {
			t.Errorf("connecting took %v, want %v", took, time.Second+latency)
		}
		_ = c.Close()
	})
}

func TestAHostListensOnce(t *testing.T) {
	n := network.New(latency)
	l, err := n.Listen("b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Listen("b"); err == nil {
		t.Error("a host listens twice")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = l.Accept()
	wantError(t, "accepting", err, net.ErrClosed)
	if _, err = n.Listen("b"); err != nil {
		t.Errorf("listening again: %v", err)
	}
}

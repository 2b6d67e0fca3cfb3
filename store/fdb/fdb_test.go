//go:build fdb

package fdb_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	official "github.com/apple/foundationdb/bindings/go/src/fdb"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/fdb"
)

// ours are errors that we try again and the client does not: after them a
// transaction may still commit, which callers are told. Its own loop gives up.
var ours = map[int]bool{1025: true, 1031: true, 1039: true, 1101: true}

// What the client would try again is tried again, and nothing else.
func TestErrorsOfTheClient(t *testing.T) {
	s := open(t)
	defer s.Close()
	db, err := official.OpenDatabase(cluster(t))
	if err != nil {
		t.Fatal(err)
	}
	for code := 1000; code < 2500; code++ {
		if code == 1079 { // of blob granules, which we do not use
			continue
		}
		tx, err := db.CreateTransaction()
		if err != nil {
			t.Fatal(err)
		}
		e := official.Error{Code: code}
		theirs := tx.OnError(e).Get() == nil
		if got := store.Retryable(fdb.Mapped(e)); got != theirs && !ours[code] {
			t.Errorf("%v: retryable %t, and for the client %t", e, got, theirs)
		}
	}
}

// The first of two stores on a cluster that is closed leaves the other its
// connection.
func TestTwoStoresOnAClusterFile(t *testing.T) {
	first, second := open(t), open(t)
	for _, s := range []store.Store{first, second} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if s == second {
			break
		}
		tx, err := second.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ReadVersion(t.Context()); err != nil {
			t.Errorf("after the other was closed: %v", err)
		}
		tx.Discard()
	}
}

func TestMaxTxSize(t *testing.T) {
	s, err := fdb.Open(cluster(t), fdb.Config{MaxTxSize: 1000})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tx, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Discard()
	tx.Set([]byte(prefix(t)), make([]byte, 1000))
	if err := tx.Commit(t.Context()); !errors.Is(err, store.ErrTxTooLarge) {
		t.Errorf("error %v, want that it is too large", err)
	}
}

func TestClusterFilesThatLeadNowhere(t *testing.T) {
	folder := t.TempDir()
	for _, c := range []struct{ name, text, want string }{
		{"missing", "", "no such file"},
		{"empty", "# a comment\n\n", `one line, DESCRIPTION:ID@HOST:PORT,HOST:PORT…, and what it has is ""`},
		{"none", "hello\n", `and what it has is "hello"`},
		{"no port", "a:b@host\n", `and what it has is "a:b@host"`},
		{"no address", "a:b@\n", `and what it has is "a:b@"`},
		{"two lines", "a:b@127.0.0.1:1 # one\nc:d@127.0.0.1:2\n", `and what it has is "a:b@127.0.0.1:1\nc:d@127.0.0.1:2"`},
		{"bytes of another file", "\x7fELF\x1b[2J@\x00", `and what it has is "\x7fELF\x1b[2J@\x00"`},
		{"unreachable", "# one\na:b@127.0.0.1:1,127.0.0.1:2\n", "coordinators are 127.0.0.1:1,127.0.0.1:2: none has led to an answer within 200ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(folder, c.name)
			if c.text != "" {
				if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s, err := fdb.Open(file, fdb.Config{ConnectTimeout: 200 * time.Millisecond})
			if err == nil {
				_ = s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.name) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// A noted context tells when it is first waited for.
type noted struct {
	context.Context
	waited chan struct{}
	once   sync.Once
}

func (n *noted) Done() <-chan struct{} {
	n.once.Do(func() { close(n.waited) })
	return n.Context.Done()
}

// A watch that the cluster does not answer keeps nobody from beginning a
// transaction, and ends with its context and with the store.
func TestWatchOfASilentCluster(t *testing.T) {
	file := filepath.Join(t.TempDir(), "fdb.cluster")
	if err := os.WriteFile(file, []byte("a:b@127.0.0.1:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{"context": context.Canceled, "store": store.ErrClosed} {
		t.Run(name, func(t *testing.T) {
			s, err := fdb.Unanswered(file)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			arming := &noted{Context: ctx, waited: make(chan struct{})}
			armed := make(chan error)
			go func() {
				_, err := s.Watch(arming, []byte("k"))
				armed <- err
			}()
			<-arming.waited
			tx, err := s.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			tx.Discard()
			if name == "context" {
				cancel()
			} else if err := s.Close(); err != nil {
				t.Error(err)
			}
			if err := <-armed; !errors.Is(err, want) {
				t.Errorf("the watch ended with %v, want %v", err, want)
			}
		})
	}
}

// openVariable names a cluster file to a program that another test has started.
const openVariable = "CODITECT_TEST_FDB_OPEN"

// What opening a store says is read by other tests, which make it fail.
func TestOpenForOthers(t *testing.T) {
	file := os.Getenv(openVariable)
	if file == "" {
		t.Skip("no other test asks")
	}
	if _, err := fdb.Open(file, fdb.Config{ConnectTimeout: 100 * time.Millisecond}); err != nil {
		t.Error(err)
	}
}

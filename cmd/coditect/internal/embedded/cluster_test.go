package embedded_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/embedded"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/fdb"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/store/storetest/driver"
	"github.com/coditect/mapreduce/store/tuple"
	"github.com/coditect/mapreduce/worker/step"
)

func TestClusterWithoutTheDriver(t *testing.T) {
	if driver.FDB {
		t.Skip("this program has the driver")
	}
	if _, err := embedded.Open(embedded.Config{Cluster: embedded.Cluster{File: "any"}}); !errors.Is(err, fdb.ErrNotBuilt) {
		t.Errorf("error %v, want that the program was built without it", err)
	}
}

// part returns a part of the cluster that is empty.
func part(t *testing.T) embedded.Cluster {
	t.Helper()
	file, found := driver.Cluster(t)
	if !found {
		t.Skip("FDB_CLUSTER_FILE names no cluster, or this program was built without the tag fdb")
	}
	c := embedded.Cluster{File: file, Prefix: "test-" + rand.Text()}
	t.Cleanup(func() {
		if err := driver.Clear(c.File, c.Prefix); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Looking at a part of a cluster that is empty leaves it so, and it is of the
// installation that first works there.
func TestInstallation(t *testing.T) {
	c := part(t)
	look := func(name string) error {
		c.Installation = name
		n, err := embedded.Open(embedded.Config{Cluster: c})
		if err != nil {
			return err
		}
		if _, err := n.ListJobs(t.Context(), mapreduce.ListJobsQuery{}); err != nil {
			t.Error(err)
		}
		return n.Close()
	}
	for _, name := range []string{"a", "b"} {
		if err := look(name); err != nil {
			t.Errorf("%s looks at an empty part: %v", name, err)
		}
	}
	c.Installation = "b"
	b, err := embedded.Open(embedded.Config{Cluster: c})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Start(t.Context()); err != nil {
		t.Error(err)
	}
	if err := look("a"); !errors.Is(err, store.ErrForeign) {
		t.Errorf("a looks at what is b's: %v", err)
	}
	if err := errors.Join(look("b"), b.Close()); err != nil {
		t.Error(err)
	}
}

// What a newer version of the program keeps is refused, whatever is asked of it,
// and left as it is.
func TestNewerInstallation(t *testing.T) {
	c := part(t)
	n, err := embedded.Open(embedded.Config{Cluster: c})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(n.Start(t.Context()), n.Close()); err != nil {
		t.Fatal(err)
	}
	var before, after []store.KeyValue
	err = driver.Update(c.File, func(tx store.Tx) error {
		key := keys.New(c.Prefix).Format()
		text, err := tx.Get(t.Context(), key)
		tx.Set(key, bytes.Replace(text, []byte("layout 2 "), []byte("layout 3 "), 1))
		if err == nil {
			before, err = contents(t, tx, c.Prefix)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, readOnly := range []bool{true, false} {
		_, err := embedded.Open(embedded.Config{Cluster: c, ReadOnly: readOnly, Adopt: !readOnly})
		if !errors.Is(err, store.ErrNewer) || !strings.Contains(err.Error(), "number 3") || !strings.Contains(err.Error(), "up to 2") {
			t.Errorf("read only %t: error %v, want that a newer version wrote it, and both numbers", readOnly, err)
		}
	}
	err = driver.Update(c.File, func(tx store.Tx) (err error) {
		after, err = contents(t, tx, c.Prefix)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" || len(before) == 0 {
		t.Errorf("the part of the cluster has changed (-before +after):\n%s", diff)
	}
}

// contents returns all that is under a prefix.
func contents(t *testing.T, tx store.Tx, prefix string) ([]store.KeyValue, error) {
	all, _, err := tx.GetRange(t.Context(), store.Prefixed(tuple.AppendString(nil, prefix)), store.RangeOptions{})
	return all, err
}

// Two services on a cluster see each other's jobs, and one ends a job whose
// units the other has no worker for.
func TestTwoNodesOnACluster(t *testing.T) {
	c, open := part(t), make(gate)
	close(open)
	config := embedded.Config{
		Cluster: c, Adopt: true, Steps: step.Serving("gate", open), Drain: 10 * time.Millisecond,
		Lease: 2 * time.Second, Heartbeat: 100 * time.Millisecond,
	}
	var nodes []*embedded.Node
	for range 2 {
		n, err := embedded.Open(config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		})
		if err := errors.Join(n.Start(t.Context()), n.Listen()); err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, n)
	}
	if err := nodes[1].Work(1, 1); err != nil {
		t.Fatal(err)
	}
	job := submit(t, nodes[0])
	for i, n := range nodes {
		if got := ended(t, n, job.ID); got.State != mapreduce.JobComplete {
			t.Errorf("node %d sees the job %v: %s", i, got.State, got.Error)
		}
	}
}

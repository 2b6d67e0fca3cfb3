package enginetest

import (
	"crypto/sha256"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/keys"
)

// Billed is a schema of bills, whose records are merged by their shop.
const Billed = `
title: receipt
type: object
properties:
  shop: {type: string, x-coditect: {labels: [SHOP]}}
  city: {type: string, x-coditect: {labels: [CITY]}}
  total: {type: number, x-coditect: {labels: [TOTAL]}}
x-coditect: {key: [shop]}
`

// Bills are two documents about one shop, and one about another.
func Bills() (map[string]string, []string) {
	return map[string]string{
		"a": "für Köln\nSHOP: Anker\nCITY: Kiel\nTOTAL: 12.50\n", "b": "SHOP: Anker\nCITY: Bonn\nTOTAL: 7.25\n",
		"c": "für Köln\nSHOP: Boje\nCITY: Trier\nTOTAL: 3.75\n",
	}, []string{"a", "b", "c"}
}

// Altered returns an encoded output as lie changes it.
func Altered(data []byte, lie func(*storagev1.Output)) ([]byte, error) {
	m := new(storagev1.Output)
	if err := proto.Unmarshal(data, m); err != nil {
		return nil, err
	}
	lie(m)
	return proto.Marshal(m)
}

// Alter changes the output of a unit where it stands, as one that was stored before
// outputs were checked.
func (n *Node) Alter(t *testing.T, c *Cluster, id mapreduce.JobID, unit mapreduce.UnitID, change func(*storagev1.Result)) {
	t.Helper()
	key := keys.New().Job(id).Unit(unit)
	err := store.NewDB(c.Store, store.Config{}).Update(t.Context(), func(tx store.Tx) error {
		value, err := tx.Get(t.Context(), key)
		if err != nil {
			return err
		}
		u := new(storagev1.Unit)
		if err := proto.Unmarshal(value, u); err != nil {
			return err
		}
		change(u.Result)
		if value, err = proto.Marshal(u); err != nil {
			return err
		}
		tx.Set(key, value)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Says makes a stored output say a lie.
func Says(t *testing.T, lie func(*storagev1.Output)) func(*storagev1.Result) {
	return func(r *storagev1.Result) {
		data, err := Altered(r.Inline, lie)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		r.Inline, r.Length, r.Sha256 = data, int64(len(data)), sum[:]
	}
}

// Findings are what doctor finds wrong.
func (n *Node) Findings() (found []string) {
	n.T.Helper()
	err := n.CheckStore(n.T.Context(), mapreduce.CheckQuery{}, func(f mapreduce.Finding) error {
		if f.Severity > mapreduce.Info {
			found = append(found, f.Message)
		}
		return nil
	})
	if err != nil {
		n.T.Fatal(err)
	}
	return found
}

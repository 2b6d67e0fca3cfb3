package records

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
)

// AppendLog adds an event to the log of a tenant: of what becomes of a job whose own events
// go with it. It names the principal of ctx. Entries of one tenant come one after the
// other.
func (t *Tenants) AppendLog(ctx context.Context, tx store.Tx, tenant mapreduce.TenantID, c *storagev1.Checkpoint) error {
	number, hash, err := t.LogHead(ctx, tx, tenant)
	if err != nil {
		return err
	}

	if number == 0 {
		hash = LogOrigin(tenant)
	}

	nameCaller(ctx, c)
	c.TimestampMicros, c.Node = t.clock.NowMicros(), string(t.node)
	data := Encode(c)
	tx.Set(t.keys.Tenant(tenant).LogEntry(number+1), Encode(&storagev1.LogEntry{Checkpoint: data, Hash: ChainLog(hash, data)}))
	return nil
}

// LogHead returns the number and the hash of the last entry of a tenant's log; 0 and nil if
// there is none.
func (t *Tenants) LogHead(ctx context.Context, r store.Reader, tenant mapreduce.TenantID) (int64, []byte, error) {
	pairs, _, err := r.GetRange(ctx, t.keys.Tenant(tenant).Log(), store.RangeOptions{Limit: 1, Reverse: true})
	if err != nil || len(pairs) == 0 {
		return 0, nil, err
	}
	var last storagev1.LogEntry
	if err := Decode(pairs[0].Key, pairs[0].Value, &last); err != nil {
		return 0, nil, err
	}
	_, number, err := t.keys.AllTenants().LogAt(pairs[0].Key)
	return number, last.Hash, err
}

// LogOrigin is what the chain of a tenant's log begins with, so that the log of one tenant
// never passes as that of another. Logs that earlier versions began lack it.
func LogOrigin(tenant mapreduce.TenantID) []byte {
	return fmt.Appendf(nil, "log chain 2: tenant %q\n", tenant)
}

// ChainLog returns the hash of an entry of a log behind an entry that has a hash.
func ChainLog(before, checkpoint []byte) []byte {
	value := sha256.Sum256(checkpoint)
	sum := sha256.Sum256(append(append([]byte(nil), before...), value[:]...))
	return sum[:]
}

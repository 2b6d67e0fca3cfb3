package client_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/server"
	"github.com/coditect/mapreduce/api/server/servertest"
)

// blobOf is a request for a blob of a unit.
func blobOf(unit mapreduce.UnitID, start, end int64) *protocol.BlobRequest {
	return &protocol.BlobRequest{
		Session: "s1", Held: protocol.Held{Job: someJob, Unit: unit, Attempt: 1},
		Blob: protocol.Blob{Kind: protocol.BlobText, Start: start, End: end},
	}
}

// got returns what a client gets.
func got(ctx context.Context, c protocol.Blobs, q *protocol.BlobRequest) (all []byte, most int, err error) {
	err = c.GetBlob(ctx, q, func(part []byte) error {
		all, most = append(all, part...), max(most, len(part))
		return nil
	})
	return all, most, err
}

// pieces returns what hands out data in pieces of n bytes.
func pieces(data []byte, n int) func() ([]byte, error) {
	next, stop := slices.Chunk(data, n), 0
	var all [][]byte
	for piece := range next {
		all = append(all, piece)
	}
	return func() ([]byte, error) {
		if stop == len(all) {
			return nil, io.EOF
		}
		stop++
		return all[stop-1], nil
	}
}

func TestBlobs(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcde\n"), 100_000)
	put := make(chan []byte, 1000)
	fleet := &servertest.Fleet{Blobs: map[mapreduce.UnitID][]byte{"large": content, "empty": nil}, Put: put}
	overEveryEdge(t, memory, fleet, func(t *testing.T, c *client.Client) {
		stream := begin(t.Context(), t, c)
		for _, tt := range []struct {
			name       string
			unit       mapreduce.UnitID
			start, end int64
			want       []byte
		}{
			{"all", "large", 0, 0, content},
			{"a range", "large", 777, 1_000_777, content[777:1_000_777]},
			{"the rest", "large", 1_500_001, 0, content[1_500_001:]},
			{"nothing", "large", 1_600_000, 0, nil},
			{"empty", "empty", 0, 0, nil},
		} {
			data, most, err := got(t.Context(), stream, blobOf(tt.unit, tt.start, tt.end))
			if err != nil || !bytes.Equal(data, tt.want) || most > protocol.PartSize {
				t.Errorf("%s: %d bytes in parts of up to %d, %v; want %d bytes", tt.name, len(data), most, err, len(tt.want))
			}
		}
		_, _, err := got(t.Context(), stream, blobOf("none", 0, 0))
		wantKind(t, err, errs.NotFound)
		_, _, err = got(t.Context(), stream, blobOf("", 0, 0))
		wantField(t, err, "held.unit_id")

		taken := errors.New("enough")
		err = stream.GetBlob(t.Context(), blobOf("large", 0, 0), func([]byte) error { return taken })
		if !errors.Is(err, taken) {
			t.Errorf("a take that fails gave %v", err)
		}

		q := blobOf("large", 100, 0)
		q.Blob.Kind = protocol.BlobOutput
		stored, err := stream.PutBlob(t.Context(), q, pieces(content[100:], 300_000))
		if err != nil {
			t.Fatal(err)
		}
		var all []byte
		for len(put) > 0 {
			part := <-put
			if len(part) > protocol.PartSize {
				t.Errorf("a part of %d bytes came", len(part))
			}
			all = append(all, part...)
		}
		if sum := sha256.Sum256(content[100:]); !bytes.Equal(all, content[100:]) || stored.Length != int64(len(content)) || !bytes.Equal(stored.SHA256, sum[:]) {
			t.Errorf("%d bytes came of %d; it says that %d are stored", len(all), len(content)-100, stored.Length)
		}
		if stored, err = stream.PutBlob(t.Context(), q, pieces(nil, 1)); err != nil || stored.Length != 100 {
			t.Errorf("nothing was put: %+v, %v", stored, err)
		}
		broken := errors.New("the output is gone")
		if _, err = stream.PutBlob(t.Context(), q, func() ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
			t.Errorf("a next that fails gave %v", err)
		}
	})
}

// A wellspring is a fleet whose blobs have no end. It counts what it hands out.
type wellspring struct {
	servertest.Fleet
	given atomic.Int64 // bytes
	ended atomic.Int64 // transfers
}

func (w *wellspring) GetBlob(_ context.Context, _ *protocol.BlobRequest, take func([]byte) error) error {
	defer w.ended.Add(1)
	part := make([]byte, protocol.PartSize)
	for {
		if err := take(part); err != nil {
			return err
		}
		w.given.Add(int64(len(part)))
	}
}

// A worker that asks for blobs and does not read them makes the server hold no more
// than the windows of the streams, and not for long.
func TestBlobsThatNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const transfers, window = 50, 256 << 10
		fleet := new(wellspring)
		// Without fixed windows a client takes in more, the faster the connection is.
		windows := []grpc.DialOption{grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(transfers * window)}
		c, err := client.NewInProcess(newServer(t, memory(), fleet, server.Config{BlobIdle: time.Minute}), client.Config{Options: windows})
		stream := begin(t.Context(), t, opened(t, c, err))
		stuck := make(chan struct{})
		ended := make(chan error, transfers)
		for range transfers {
			go func() {
				ended <- stream.GetBlob(t.Context(), blobOf("a", 0, 0), func([]byte) error {
					<-stuck
					return nil
				})
			}()
		}
		synctest.Wait()
		if given := fleet.given.Load(); given == 0 || given > transfers*(window+2*protocol.PartSize) {
			t.Errorf("%d KiB were handed out to %d transfers that nobody reads", given>>10, transfers)
		}
		<-time.After(2 * time.Minute)
		synctest.Wait()
		if n := fleet.ended.Load(); n != transfers {
			t.Errorf("%d of %d transfers have ended that nobody reads", n, transfers)
		}
		close(stuck)
		for range transfers {
			wantKind(t, <-ended, errs.Deadline)
		}
	})
}

// A worker that begins to put a blob and sends no more of it is not waited for.
func TestBlobsThatNobodySends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := inProcess(t, newServer(t, memory(), new(servertest.Fleet), server.Config{BlobIdle: time.Minute}))
		stream := begin(t.Context(), t, c)
		first := true
		begun := time.Now()
		_, err := stream.PutBlob(t.Context(), blobOf("a", 0, 0), func() ([]byte, error) {
			if !first {
				<-time.After(time.Hour)
			}
			first = false
			return []byte("abc"), nil
		})
		wantKind(t, err, errs.Deadline)
		if waited := time.Since(begun); waited > 2*time.Hour {
			t.Errorf("it took %v", waited)
		}
	})
}

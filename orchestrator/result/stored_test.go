package result_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/result"
)

// someParts are parts of each kind.
func someParts() []*mapreduce.ResultPart {
	return []*mapreduce.ResultPart{
		{Record: []byte(`{"name":"Anker"}`)},
		{Citation: &mapreduce.Citation{
			Ref: "REF_a7b3c2d1", Document: "a.txt", Unit: "a.txt_chunk_1", Start: 3, End: 8, ByteStart: 4, ByteEnd: 9, Quote: "Anker", Grade: "fuzzy",
			Before: "für ", After: "\n", Outside: true, Others: 2, Coverage: 0.9, Density: 0.8, Via: `{"record":1}`,
			Location: &mapreduce.Location{Place: "page 2", Page: 2, Boxes: []mapreduce.Box{{Page: 2, Left: 1.5, Top: 2, Right: 30.1, Bottom: 40}}},
		}},
		{Conflict: []byte(`{"field":"name"}`)},
		{Dropped: []byte(`{"ref":"REF_a7b3c2d1"}`)},
		{Removed: []byte(`{"name":"REF_00000000"}`)},
		{Source: &mapreduce.Source{Unit: "a.txt_chunk_1"}},
		{Source: &mapreduce.Source{Unit: "b.txt", Errors: []string{"no answer", "none again"}}},
		{Summary: &mapreduce.Summary{
			Single: true, Deduplication: []byte(`{"name":3}`), Statistics: []byte(`{}`),
			Skipped: []mapreduce.SkippedDocument{{Document: "c.bin", Reason: "it is no text"}},
		}},
	}
}

// stored returns parts as they are stored.
func stored(t *testing.T, size int, parts []*mapreduce.ResultPart) []byte {
	t.Helper()
	var data []byte
	w := result.NewWriter(size, func(block []byte) error {
		if len(block) != size {
			return fmt.Errorf("a block of %d bytes, want %d", len(block), size)
		}
		data = append(data, block...)
		return nil
	})
	for _, p := range parts {
		if err := w.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	rest, length, sum := w.Rest()
	data = append(data, rest...)
	if is := sha256.Sum256(data); len(rest) == 0 || length != int64(len(data)) || !bytes.Equal(sum, is[:]) {
		t.Errorf("%d bytes with the hash %x, the last block of %d; want %d with %x", length, sum, len(rest), len(data), is)
	}
	return data
}

func TestPartsAreReadAsTheyWereStored(t *testing.T) {
	want := someParts()
	for _, size := range []int{1, 7, 64, 1 << 20} {
		data := stored(t, size, want)
		for _, cut := range []int{1, 3, 50, len(data)} {
			var got []*mapreduce.ResultPart
			var places []int64
			r := result.NewReader(0, func(p *mapreduce.ResultPart, at int64) error {
				got, places = append(got, p), append(places, at)
				return nil
			})
			for at := 0; at < len(data); at += cut {
				if err := r.Write(data[at:min(at+cut, len(data))]); err != nil {
					t.Fatal(err)
				}
			}
			if n := len(got); n != len(want)-1 {
				t.Errorf("%d parts came before the end, want all but the summary", n)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("blocks of %d, read by %d (-stored +read):\n%s", size, cut, diff)
			}
			fromEachPlace(t, data, want, places)
		}
	}
}

// fromEachPlace wants the rest of the parts, where they are, of a reader that begins at one of them.
func fromEachPlace(t *testing.T, data []byte, parts []*mapreduce.ResultPart, places []int64) {
	t.Helper()
	for i, from := range places {
		var got []*mapreduce.ResultPart
		r := result.NewReader(from, func(p *mapreduce.ResultPart, at int64) error {
			if want := places[i+len(got)]; at != want {
				t.Errorf("part %d is at %d, want %d", i+len(got), at, want)
			}
			got = append(got, p)
			return nil
		})
		err := r.Write(data[from:])
		if err == nil {
			err = r.Close()
		}
		if diff := cmp.Diff(parts[i:], got); err != nil || diff != "" {
			t.Errorf("from part %d, at %d: %v (-stored +read):\n%s", i, from, err, diff)
		}
	}
}

func TestWhatIsNoResultIsRefused(t *testing.T) {
	whole := stored(t, 64, someParts())
	for name, data := range map[string][]byte{
		"nothing":         {},
		"cut":             whole[:len(whole)-1],
		"no summary":      stored(t, 64, someParts()[:3]),
		"a length beyond": bytes.Repeat([]byte{0xff}, 12),
		"no message":      {3, 0xff, 0xff, 0xff},
	} {
		r := result.NewReader(0, func(*mapreduce.ResultPart, int64) error { return nil })
		err := r.Write(data)
		if err == nil {
			err = r.Close()
		}
		if errs.KindOf(err) != errs.DataLoss {
			t.Errorf("%s: %v, want that data is lost", name, err)
		}
	}
}

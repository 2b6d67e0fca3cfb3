package payload_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
)

// blobOf returns inputs as a stream has them.
func blobOf(t interface{ Fatal(...any) }, inputs []protocol.Input, calls bool) (all []byte) {
	for _, in := range inputs {
		sum := sha256.Sum256(in.Data)
		h := payload.InputHeader{
			Unit: in.Unit, First: in.First, End: in.End, Failed: in.Failed, Referred: in.Referred,
			Calls: calls, Length: int64(len(in.Data)), SHA256: sum[:],
		}
		before := len(all)
		var err error
		if all, err = h.Append(all); err != nil {
			t.Fatal(err)
		}
		all = append(all, in.Data...)
		if h.Size() != int64(len(all)-before) {
			t.Fatal("an input has another size than its header says")
		}
	}
	return all
}

// decoded takes a stream that comes in pieces of so many bytes.
func decoded(d *payload.InputDecoder, blob []byte, piece int) ([]protocol.Input, error) {
	for len(blob) > 0 {
		n := min(piece, len(blob))
		if err := d.Add(blob[:n]); err != nil {
			return nil, err
		}
		blob = blob[n:]
	}
	return d.Inputs()
}

// Inputs come out as they went in, however the stream is cut.
func TestInputsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		inputs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) protocol.Input {
			return protocol.Input{
				Unit: mapreduce.UnitID(rapid.String().Draw(t, "unit")), First: rapid.Int64Range(0, 1<<40).Draw(t, "first"),
				End: rapid.Int64Range(0, 1<<40).Draw(t, "end"), Failed: rapid.Bool().Draw(t, "failed"),
				Referred: rapid.Bool().Draw(t, "referred"), Data: rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "data"),
			}
		}), 0, 5).Draw(t, "inputs")
		got, err := decoded(&payload.InputDecoder{Most: 1000}, blobOf(t, inputs, false), rapid.IntRange(1, 200).Draw(t, "piece"))
		if diff := cmp.Diff(inputs, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("%v; inputs (-sent +got):\n%s", err, diff)
		}
	})
}

func TestInputsAreChecked(t *testing.T) {
	one := []protocol.Input{{Unit: "a", Data: []byte("abcdef")}, {Unit: "b", Data: []byte("ghijkl")}}
	good := blobOf(t, one, false)
	for name, tt := range map[string]struct {
		blob []byte
		most int
		want error
	}{
		"cut short in a header":  {good[:3], 100, nil},
		"cut short in data":      {good[:len(good)-1], 100, nil},
		"other data":             {bytes.Replace(good, []byte("abcdef"), []byte("abcdeg"), 1), 100, nil},
		"too large together":     {good, 11, payload.ErrInputsTooLarge},
		"a header without end":   {bytes.Repeat([]byte{0xff}, 20), 100, nil},
		"a header that is large": {append([]byte{0xff, 0xff, 0x7f}, make([]byte, 50_000)...), 100, nil},
		"a header that is none":  {[]byte{3, 0xff, 0xff, 0xff}, 100, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, piece := range []int{1, 7, 1 << 20} {
				got, err := decoded(&payload.InputDecoder{Most: tt.most}, tt.blob, piece)
				if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
					t.Errorf("in pieces of %d: %+v and %v, want it refused", piece, got, err)
				}
			}
		})
	}
}

// Calls of models that the trace has captured come no further.
func TestInputsWithoutCalls(t *testing.T) {
	bare, err := (&output.Output{Reason: "nothing"}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	data, err := payload.WithCalls(bare, []mapreduce.Call{{Name: "m", Prompt: "long"}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := decoded(&payload.InputDecoder{Most: 1000}, blobOf(t, []protocol.Input{{Unit: "a", Data: data}}, true), 10)
	if err != nil || !bytes.Equal(got[0].Data, bare) {
		t.Errorf("%+v and %v, want the data %x", got, err, bare)
	}
}

func TestNamesRecords(t *testing.T) {
	encode := func(o output.Output) []byte {
		data, err := o.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for name, tt := range map[string]struct {
		data []byte
		want bool
	}{
		"none":         {encode(output.Output{Reason: "nothing"}), false},
		"one":          {encode(output.Output{Reason: "some", Open: []output.Open{{Entity: "e"}}}), true},
		"empty":        {nil, false},
		"not encoded":  {[]byte("{}"), false},
		"half a field": {[]byte{0x22, 0x7f, 1}, false},
	} {
		if got := payload.NamesRecords(tt.data); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// FuzzInputs takes any bytes for a stream of inputs: what comes out of it goes in
// again, and is never more than was allowed.
func FuzzInputs(f *testing.F) {
	f.Add(blobOf(f, []protocol.Input{{Unit: "a", End: 1, Data: []byte("abc")}, {Unit: "b", Failed: true}}, false), 3)
	f.Add([]byte{0}, 1)
	f.Fuzz(func(t *testing.T, blob []byte, piece int) {
		const most = 1 << 16
		got, err := decoded(&payload.InputDecoder{Most: most}, blob, max(1, piece))
		if err != nil {
			return
		}
		held := 0
		for _, in := range got {
			held += len(in.Data)
		}
		if held > most {
			t.Fatalf("%d bytes were held, more than %d", held, most)
		}
		again, err := decoded(&payload.InputDecoder{Most: most}, blobOf(t, got, false), 1<<20)
		if diff := cmp.Diff(got, again, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Fatalf("%v; inputs (-first +again):\n%s", err, diff)
		}
	})
}

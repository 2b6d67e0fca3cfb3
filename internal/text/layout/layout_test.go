package layout_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/text/layout"
)

// drawLayout draws a layout, and the length of a text that it fits.
func drawLayout(t *rapid.T) (layout.Layout, int) {
	var l layout.Layout
	chance := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	end := 0
	for range rapid.IntRange(0, 2500).Draw(t, "parts") {
		p := layout.Part{Start: end + chance.IntN(3), Location: &mapreduce.Location{Page: 1 + chance.IntN(3), Sheet: []string{"", "A"}[chance.IntN(2)], Recognised: float64(max(chance.IntN(150)-50, 0)) / 100}}
		p.End = p.Start + 1 + chance.IntN(9)
		if chance.IntN(2) == 0 {
			at := chance.IntN(9000) - 100
			p.Box = mapreduce.Box{Page: p.Location.Page, Left: float64(at) / 10, Top: 20.5, Right: float64(at+70) / 10, Bottom: 30}
		}
		l, end = append(l, p), p.End
	}
	return l, end + 1
}

// TestStored stores layouts and reads them: whole, and a range without the rest.
func TestStored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want, text := drawLayout(t)
		data, err := layout.Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := layout.Decode(data, text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("stored and read (-want +got):\n%s", diff)
		}
		if len(want) > 0 && layout.Check(data, text-2) == nil {
			t.Error("it fits a text that is too short")
		}
		fetch := func(from, to int64) ([]byte, error) { return data[from:to], nil }
		r, err := layout.NewReader(int64(len(data)), text, fetch)
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			start := rapid.IntRange(0, text).Draw(t, "start")
			end := start + rapid.IntRange(0, 40).Draw(t, "length of the range")
			got, err := r.Locate(fetch, start, end)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.Locate(start, end), got); diff != "" {
				t.Fatalf("[%d, %d) (-whole +block by block):\n%s", start, end, diff)
			}
		}
	})
}

// TestReadsOnlyBlocks finds the last word of a long text in two per cent of its layout.
func TestReadsOnlyBlocks(t *testing.T) {
	var l layout.Layout
	page := &mapreduce.Location{Page: 1}
	for i := range 100_000 {
		l = append(l, layout.Part{Start: 6 * i, End: 6*i + 5, Location: page, Box: mapreduce.Box{Page: 1, Left: 1, Right: 2, Bottom: 3}})
	}
	data, err := layout.Encode(l)
	if err != nil {
		t.Fatal(err)
	}
	var read int64
	fetch := func(from, to int64) ([]byte, error) { read += to - from; return data[from:to], nil }
	r, err := layout.NewReader(int64(len(data)), 600_000, fetch)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Locate(fetch, 599_994, 599_999)
	if err != nil || got == nil || len(got.Boxes) != 1 {
		t.Fatalf("got %+v, %v", got, err)
	}
	if read > int64(len(data))/50 || len(data) > 10*len(l) {
		t.Errorf("read %d bytes of %d, for %d parts", read, len(data), len(l))
	}
}

func TestLocate(t *testing.T) {
	page := func(n int) *mapreduce.Location { return &mapreduce.Location{Page: n} }
	cell := func(name string) *mapreduce.Location { return &mapreduce.Location{Sheet: "Sales", Cell: name} }
	box := func(page int, left, top, right, bottom float64) mapreduce.Box {
		return mapreduce.Box{Page: page, Left: left, Top: top, Right: right, Bottom: bottom}
	}
	pages := layout.Layout{
		{Start: 0, End: 5, Location: page(1), Box: box(1, 10, 10, 30, 20)},
		{Start: 6, End: 9, Location: page(1), Box: box(1, 34, 9, 50, 20)},      // on the same line
		{Start: 10, End: 12, Location: page(1), Box: box(1, 10, 22, 20, 32)},   // on the next
		{Start: 12, End: 14, Location: page(1), Box: box(1, 300, 22, 320, 32)}, // in another column
		{Start: 15, End: 20, Location: page(2), Box: box(2, 300, 22, 320, 32)},
	}
	recognised := layout.Layout{
		{Start: 0, End: 4, Location: &mapreduce.Location{Page: 1, Recognised: 0.9}},
		{Start: 5, End: 9, Location: &mapreduce.Location{Page: 1, Recognised: 0.4}},
		{Start: 10, End: 14, Location: page(1)},
	}
	leftwards := layout.Layout{
		{Start: 0, End: 4, Location: page(1), Box: box(1, 70, 10, 90, 20)},
		{Start: 5, End: 9, Location: page(1), Box: box(1, 50, 9, 66, 20)},    // at its left
		{Start: 10, End: 14, Location: page(1), Box: box(1, 10, 10, 20, 20)}, // in another column
	}
	cells := layout.Layout{{Start: 0, End: 2, Location: cell("A1")}, {Start: 3, End: 5, Location: cell("B1")}}
	for _, test := range []struct {
		name       string
		of         layout.Layout
		start, end int
		want       *mapreduce.Location
	}{
		{"a part of a word", pages, 1, 3, &mapreduce.Location{Place: "page 1", Page: 1, Boxes: []mapreduce.Box{box(1, 10, 10, 30, 20)}}},
		{"a line and the next", pages, 0, 11, &mapreduce.Location{Place: "page 1", Page: 1, Boxes: []mapreduce.Box{box(1, 10, 9, 50, 20), box(1, 10, 22, 20, 32)}}},
		{"a line from right to left", leftwards, 0, 14, &mapreduce.Location{Place: "page 1", Page: 1, Boxes: []mapreduce.Box{box(1, 50, 9, 90, 20), box(1, 10, 10, 20, 20)}}},
		{"columns", pages, 11, 13, &mapreduce.Location{Place: "page 1", Page: 1, Boxes: []mapreduce.Box{box(1, 10, 22, 20, 32), box(1, 300, 22, 320, 32)}}},
		{"over the page", pages, 13, 16, &mapreduce.Location{Place: "page 1 to page 2", Page: 1, Boxes: []mapreduce.Box{box(1, 300, 22, 320, 32), box(2, 300, 22, 320, 32)}}},
		{"between words", pages, 5, 6, nil},
		{"behind all", pages, 20, 30, nil},
		{"a cell", cells, 0, 1, &mapreduce.Location{Place: "sheet Sales, cell A1", Sheet: "Sales", Cell: "A1"}},
		{"cells", cells, 0, 5, &mapreduce.Location{Place: "sheet Sales, cells A1:B1", Sheet: "Sales", Cell: "A1:B1"}},
		{"recognised, the least sure of it", recognised, 0, 9, &mapreduce.Location{Place: "page 1", Page: 1, Recognised: 0.4}},
		{"recognised, beside text", recognised, 0, 4, &mapreduce.Location{Place: "page 1", Page: 1, Recognised: 0.9}},
		{"text beside what was recognised", recognised, 10, 14, &mapreduce.Location{Place: "page 1", Page: 1}},
		{"no layout", nil, 0, 5, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.of.Locate(test.start, test.end)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	here := &mapreduce.Location{Page: 1}
	for _, test := range []struct {
		name string
		part layout.Part
		want string
	}{
		{"no location", layout.Part{Start: 1, End: 2}, "no location"},
		{"a location that says nothing", layout.Part{Start: 1, End: 2, Location: &mapreduce.Location{}}, "says nothing"},
		{"a location with boxes", layout.Part{Start: 1, End: 2, Location: &mapreduce.Location{Page: 1, Boxes: make([]mapreduce.Box, 1)}}, "those of its parts"},
		{"overlaps", layout.Part{Start: 0, End: 2, Location: here}, "behind 1"},
		{"empty", layout.Part{Start: 2, End: 2, Location: here}, "[2, 2)"},
		{"beyond the text", layout.Part{Start: 1, End: 11, Location: here}, "of 10 bytes"},
		{"box of another page", layout.Part{Start: 1, End: 2, Location: here, Box: mapreduce.Box{Page: 2}}, "on page 2"},
		{"box of no number", layout.Part{Start: 1, End: 2, Location: here, Box: mapreduce.Box{Page: 1, Left: math.NaN()}}, "NaN"},
		{"long name", layout.Part{Start: 1, End: 2, Location: &mapreduce.Location{Sheet: strings.Repeat("x", 257)}}, "at most 256"},
		{"no text", layout.Part{Start: 1, End: 2, Location: &mapreduce.Location{Sheet: "\xff"}}, "no text"},
		{"page", layout.Part{Start: 1, End: 2, Location: &mapreduce.Location{Page: -1}}, "-1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := layout.Layout{{Start: 0, End: 1, Location: here}, test.part}.Check(10)
			if !errors.Is(err, layout.ErrInvalid) || !strings.Contains(fmt.Sprint(err), test.want) {
				t.Errorf("got %v, want an invalid layout: %s", err, test.want)
			}
		})
	}
}

// FuzzDecode decodes what a worker may send. What is decoded is a layout of the text.
func FuzzDecode(f *testing.F) {
	here := &mapreduce.Location{Page: 1}
	data, err := layout.Encode(layout.Layout{{Start: 0, End: 3, Location: here, Box: mapreduce.Box{Page: 1, Right: 3}}, {Start: 4, End: 5, Location: &mapreduce.Location{Slide: 2}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data, 10)
	f.Add([]byte{0, 0, 0, 1, 9}, 10)
	f.Fuzz(func(t *testing.T, data []byte, text int) {
		l, err := layout.Decode(data, text)
		if err != nil {
			if !errors.Is(err, layout.ErrInvalid) {
				t.Errorf("got %v, want ErrInvalid", err)
			}
			return
		}
		if err := l.Check(text); err != nil {
			t.Error(err)
		}
	})
}

package resultfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/resultfile"
)

// A buffer is a scratch that keeps everything.
type buffer struct{ bytes.Buffer }

func (b *buffer) MoveTo(out io.Writer) error {
	_, err := b.WriteTo(out)
	return err
}

// resultOf returns the parts of a result with n records of some bytes each.
func resultOf(n, size int) []*mapreduce.ResultPart {
	parts := []*mapreduce.ResultPart{{Job: &mapreduce.Job{ID: "mr_20260101_abcdef", State: mapreduce.JobComplete}}}
	for i := range n {
		ref := fmt.Sprintf("REF_%08x", i/2)
		parts = append(parts,
			&mapreduce.ResultPart{Record: fmt.Appendf(nil, `{"n":%d,"text":"<%s:>","_citations":{"n":[%q]}}`, i, strings.Repeat("x", size), ref)},
			&mapreduce.ResultPart{Citation: &mapreduce.Citation{Ref: ref, Document: "d", Quote: strings.Repeat("q", size), Grade: "exact"}})
	}
	return append(parts,
		&mapreduce.ResultPart{Source: &mapreduce.Source{Unit: "d"}},
		&mapreduce.ResultPart{Source: &mapreduce.Source{Unit: "e", Errors: []string{"failed"}}},
		&mapreduce.ResultPart{Conflict: []byte(`{"field":"n"}`)},
		&mapreduce.ResultPart{Dropped: []byte(`{"ref":"REF_1"}`)},
		&mapreduce.ResultPart{Removed: []byte(`{"name":"REF_2"}`)},
		&mapreduce.ResultPart{Report: []byte(`{"question":"why"}`)},
		&mapreduce.ResultPart{Summary: &mapreduce.Summary{Skipped: []mapreduce.SkippedDocument{{Document: "s", Reason: "empty"}}}})
}

func read(parts []*mapreduce.ResultPart, times *int) resultfile.Reader {
	return func(sink func(*mapreduce.ResultPart) error) error {
		*times++
		for _, p := range parts {
			if err := sink(p); err != nil {
				return err
			}
		}
		return nil
	}
}

// What is written without scratch files is what sections that are all kept give, and what
// is large is read again.
func TestWriteKeepsTheBytes(t *testing.T) {
	for _, tt := range []struct{ records, size, times int }{
		{0, 0, 1}, {3, 10, 1}, {300, 2000, 1}, {600, 2000, 1}, {1200, 2000, 2}, {3000, 2000, 3}, {2, 3 << 20, 3},
	} {
		parts, times := resultOf(tt.records, tt.size), 0
		sections, err := resultfile.NewSections(func(string) (resultfile.Scratch, error) { return new(buffer), nil })
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range parts {
			if _, err := sections.AddPart(p); err != nil {
				t.Fatal(err)
			}
		}
		var want, got bytes.Buffer
		if err := sections.WriteFile(&want, parts[0].Job); err != nil {
			t.Fatal(err)
		}
		if err := resultfile.Write(&got, read(parts, &times)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want.Bytes(), got.Bytes()) {
			t.Errorf("%d records of %d bytes: %d bytes are written, want other %d", tt.records, tt.size, got.Len(), want.Len())
		}
		if times != tt.times {
			t.Errorf("%d records of %d bytes: read %d times, want %d", tt.records, tt.size, times, tt.times)
		}
	}
}

func TestWriteRefusesWhatChanges(t *testing.T) {
	times := 0
	err := resultfile.Write(new(bytes.Buffer), func(sink func(*mapreduce.ResultPart) error) error {
		return read(resultOf(3000+times, 1000), &times)(sink)
	})
	if !errors.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), "records") {
		t.Errorf("a result that changes gave %v", err)
	}
}

func TestWriteRefusesHalf(t *testing.T) {
	whole := resultOf(1, 1)
	for _, parts := range [][]*mapreduce.ResultPart{nil, whole[:len(whole)-1], whole[1:]} {
		times := 0
		if err := resultfile.Write(new(bytes.Buffer), read(parts, &times)); !errors.Is(err, resultfile.ErrEndedEarly) {
			t.Errorf("%d parts gave %v", len(parts), err)
		}
	}
}

func TestSectionsTellRepeatedCitations(t *testing.T) {
	sections, err := resultfile.NewSections(func(string) (resultfile.Scratch, error) { return new(buffer), nil })
	if err != nil {
		t.Fatal(err)
	}
	var got []bool
	for _, ref := range []string{"REF_1", "REF_2", "REF_1"} {
		added, err := sections.AddPart(&mapreduce.ResultPart{Citation: &mapreduce.Citation{Ref: ref}})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, added)
	}
	if diff := cmp.Diff([]bool{true, true, false}, got); diff != "" {
		t.Error(diff)
	}
}

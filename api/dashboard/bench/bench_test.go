package bench_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/dashboard/bench"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/schema"
)

// nothing finds nothing.
func nothing(context.Context, *schema.Schema, *bench.Sample) (*bench.Report, error) {
	return &bench.Report{}, nil
}

const small = "type: object\nproperties:\n  total: {type: number}\n"

// Faults of a schema have their lines, and warnings leave it usable.
func TestProblems(t *testing.T) {
	b := bench.New(bench.Tools{Try: nothing})
	for name, tt := range map[string]struct {
		text    string
		line    int
		broken  bool
		warning bool
	}{
		"a wrong type":    {"type: object\nproperties:\n  total: {type: nummer}\n", 3, true, false},
		"a wrong hint":    {"type: object\nproperties:\n  total:\n    type: number\n    x-coditect: {label: [a]}\n", 5, true, false},
		"half a line":     {"type: object\nproperties:\n  total: {type: numb", 2, true, false},
		"a required name": {"required: [x]\n" + small, 1, false, true},
	} {
		out, err := b.Run(t.Context(), &bench.Sample{Schema: tt.text, Documents: []bench.Document{{Name: "a", Text: "Total: 3"}}})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(out.Problems) == 0 || out.Problems[0].Line != tt.line || out.Broken != tt.broken || out.Problems[0].Warning != tt.warning || (out.Report == nil) != tt.broken {
			t.Errorf("%s: got %+v, broken %t", name, out.Problems, out.Broken)
		}
	}
}

// Too much is refused with what is too much.
func TestBounds(t *testing.T) {
	b := bench.New(bench.Tools{Try: nothing})
	for want, s := range map[string]*bench.Sample{
		"schema":    {Schema: strings.Repeat("#", bench.MaxSchema+1)},
		"documents": {Schema: small, Documents: make([]bench.Document, bench.MaxDocuments+1)},
		"truth":     {Schema: small, Truth: strings.Repeat(" ", bench.MaxTruth+1)},
	} {
		_, err := b.Run(t.Context(), s)
		var e *errs.Error
		if !errors.As(err, &e) || e.Kind != errs.Invalid || e.Field != want || !strings.Contains(err.Error(), "at most") {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := b.Run(t.Context(), &bench.Sample{Schema: small, Documents: []bench.Document{{Text: strings.Repeat("a", bench.MaxTexts+1)}}}); errs.KindOf(err) != errs.Invalid {
		t.Errorf("long documents: %v", err)
	}
}

// What takes too long is stopped, others wait for a turn no longer than that, and whoever leaves
// is not waited for.
func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context, _ *schema.Schema, _ *bench.Sample) (*bench.Report, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		b := bench.New(bench.Tools{Try: slow})
		s := &bench.Sample{Schema: small, Documents: []bench.Document{{Name: "a"}}}
		began := time.Now()
		out, err := b.Run(t.Context(), s)
		if err != nil || !strings.Contains(out.Failed, "longer than") || time.Since(began) > 6*time.Second {
			t.Errorf("got %+v and %v after %v", out, err, time.Since(began))
		}

		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() { _, err := b.Run(ctx, s); left <- err }()
		synctest.Wait()
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("whoever has left is told %v", err)
		}
	})
}

// The document is cut at the quotes of its values, also where they overlap, and put together it is
// the document.
func TestShown(t *testing.T) {
	const text = "Total 12.50 EUR of Müller"
	values := func(spans ...[2]int) (fields []bench.Field) {
		for _, s := range spans {
			fields = append(fields, bench.Field{Name: "f", Values: []bench.Value{{Text: "v", Start: s[0], End: s[1]}}})
		}
		return fields
	}
	b := bench.New(bench.Tools{Try: func(context.Context, *schema.Schema, *bench.Sample) (*bench.Report, error) {
		return &bench.Report{Documents: []bench.Tried{{Records: []bench.Record{
			{Fields: values([2]int{6, 15}, [2]int{0, 11})}, {Fields: values([2]int{6, 11}, [2]int{19, 26}, [2]int{3, 3}, [2]int{20, 400})},
		}}}}, nil
	}})
	out, err := b.Run(t.Context(), &bench.Sample{Schema: small, Documents: []bench.Document{{Name: "a", Text: text}}})
	if err != nil {
		t.Fatal(err)
	}

	want := []bench.Piece{{"Total ", 0, []int{1}, "f"}, {"12.50", 6, []int{1, 2, 3}, "f"}, {" EUR", 11, []int{2}, "f"}, {" of ", 15, nil, ""}, {"Müller", 19, []int{4}, "f"}}
	if d := cmp.Diff(want, out.Shown.Pieces); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if len(out.Shown.Found) != 4 || out.Shown.Found[2].Record != 2 {
		t.Errorf("got %+v", out.Shown.Found)
	}
}

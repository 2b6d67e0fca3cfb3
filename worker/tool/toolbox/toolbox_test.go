package toolbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/worker/tool"
	"github.com/coditect/mapreduce/worker/tool/toolbox"
)

// A kit is one whose tools are functions.
type kit struct {
	name  string
	specs []tool.Spec
	call  func(ctx context.Context, name string, input json.RawMessage) (*tool.Result, error)
	open  func(ctx context.Context) error

	opened, closed atomic.Int64
	down           atomic.Bool
}

func (k *kit) Name() string       { return k.name }
func (k *kit) Tools() []tool.Spec { return k.specs }
func (k *kit) Close() error       { k.down.Store(true); return nil }

func (k *kit) Open(ctx context.Context) (tool.Session, error) {
	if k.open != nil {
		if err := k.open(ctx); err != nil {
			return nil, err
		}
	}
	k.opened.Add(1)
	return &session{k}, nil
}

type session struct{ *kit }

func (s *session) Close() error { s.closed.Add(1); return nil }
func (s *session) Call(ctx context.Context, name string, input json.RawMessage) (*tool.Result, error) {
	return s.call(ctx, name, input)
}

func spec(name string) tool.Spec {
	return tool.Spec{Name: name, Description: "does " + name, Input: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"},"n":{"type":"integer"}},"required":["q"]}`), Idempotent: true}
}

// box returns a box of one kit with a tool named look.
func box(t *testing.T, call func(ctx context.Context, name string, input json.RawMessage) (*tool.Result, error)) (*kit, *toolbox.Session) {
	t.Helper()
	k := &kit{name: "eyes", specs: []tool.Spec{spec("look"), spec("peek")}, call: call}
	b, err := toolbox.New(nil, k)
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.Open(t.Context(), []string{"look"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		if err := b.Close(); err != nil || !k.down.Load() {
			t.Errorf("closing: %v", err)
		}
	})
	return k, s
}

var question = json.RawMessage(`{"q":"where"}`)

func text(s string) (*tool.Result, error) { return &tool.Result{Text: s}, nil }

func TestNames(t *testing.T) {
	files := &kit{name: "files", specs: []tool.Spec{spec("grep"), spec("docs_grep")}}
	docs := &kit{name: "mcp:docs", specs: []tool.Spec{spec("fetch"), spec("files")}}
	b, err := toolbox.New(nil, files, docs)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"docs_grep", "files", "files/docs_grep", "files/grep", "grep", "mcp:docs", "mcp:docs/fetch", "mcp:docs/files"}
	if diff := cmp.Diff(want, b.Offers()); diff != "" {
		t.Errorf("offers (-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		names []string
		want  []string
	}{
		{nil, nil},
		{[]string{"files"}, []string{"grep", "docs_grep"}}, // the kit, not what a server calls so
		{[]string{"grep", "mcp:docs/fetch", "files/grep"}, []string{"grep", "fetch"}},
		{[]string{"mcp:docs"}, []string{"fetch", "files"}},
	} {
		specs, err := b.Specs(tt.names)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range specs {
			got = append(got, s.Name)
			if s.Timeout != tool.DefaultTimeout || s.MaxOutput != tool.DefaultOutput {
				t.Errorf("%s has the bounds %v and %d", s.Name, s.Timeout, s.MaxOutput)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%v stand for (-want +got):\n%s", tt.names, diff)
		}
	}
	for _, name := range []string{"fetch", "browser", "mcp:docs/grep", ""} {
		if _, err := b.Specs([]string{name}); !errors.Is(err, toolbox.ErrUnknown) || !strings.Contains(err.Error(), "mcp:docs/fetch") {
			t.Errorf("%q: %v", name, err)
		}
	}
	var none *toolbox.Box
	if _, err := none.Specs([]string{"grep"}); !errors.Is(err, toolbox.ErrUnknown) || none.Offers() != nil || none.Close() != nil {
		t.Errorf("no box has a tool: %v", err)
	}
}

func TestRefusedKits(t *testing.T) {
	with := func(change func(*tool.Spec)) *kit {
		s := spec("look")
		change(&s)
		return &kit{name: "eyes", specs: []tool.Spec{s}}
	}
	for _, tt := range []struct {
		name string
		kits []tool.Kit
		want string
	}{
		{"a name with spaces", []tool.Kit{&kit{name: "my eyes"}}, "no name of"},
		{"two of a name", []tool.Kit{&kit{name: "a"}, &kit{name: "a"}}, "two kits named a"},
		{"a tool of two kits", []tool.Kit{&kit{name: "a", specs: []tool.Spec{spec("x")}}, &kit{name: "b", specs: []tool.Spec{spec("x")}}}, "both a and b have a tool named x"},
		{"no name", []tool.Kit{with(func(s *tool.Spec) { s.Name = "" })}, "eyes: the tool"},
		{"a name that no vendor takes", []tool.Kit{with(func(s *tool.Spec) { s.Name = "lôok" })}, "eyes: the tool"},
		{"the answer's name", []tool.Kit{with(func(s *tool.Spec) { s.Name = "answer" })}, "final answer"},
		{"no schema", []tool.Kit{with(func(s *tool.Spec) { s.Input = nil })}, "no JSON"},
		{"a schema that leads elsewhere", []tool.Kit{with(func(s *tool.Spec) { s.Input = json.RawMessage(`{"$ref":"file:///etc/passwd"}`) })}, "eyes: the tool"},
		{"a huge schema", []tool.Kit{with(func(s *tool.Spec) { s.Input = json.RawMessage(strings.Repeat(" ", 70_000) + "{}") })}, "at most 65536"},
	} {
		if _, err := toolbox.New(nil, tt.kits...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// D7: what the stage does not list is not called, and what does not fit does not arrive.
func TestUncalled(t *testing.T) {
	var calls atomic.Int64
	_, s := box(t, func(_ context.Context, _ string, input json.RawMessage) (*tool.Result, error) {
		calls.Add(1)
		return text(string(input))
	})
	for _, name := range []string{"peek", "format_disk", "", "eyes/look", "answer", strings.Repeat("x", 1<<20)} {
		_, err := s.Call(t.Context(), name, question)
		if refused, ok := errors.AsType[*tool.Refused](err); !ok || !strings.Contains(refused.Why, "allows look") || len(err.Error()) > 1000 {
			t.Errorf("%.40q: %.200v", name, err)
		}
	}
	for _, input := range []string{``, `{`, `[]`, `null`, `{"q":1}`, `{"n":1}`, `{"q":"` + strings.Repeat("x", tool.MaxInput) + `"}`} {
		_, err := s.Call(t.Context(), "look", json.RawMessage(input))
		if bad, ok := errors.AsType[*toolbox.InputError](err); !ok || bad.Tool != "look" {
			t.Errorf("%.40q: %v", input, err)
		}
	}
	if calls.Load() != 0 {
		t.Errorf("the tool was called %d times", calls.Load())
	}
	res, err := s.Call(t.Context(), "look", json.RawMessage(`{"q":"a","n":null}`)) // as strict modes have it
	if err != nil || res.Text != `{"q":"a"}` {
		t.Errorf("the tool got %+v, %v", res, err)
	}
}

// E1: three and six calls of a second each take one second.
func TestAtOnce(t *testing.T) {
	for _, n := range []int{3, 6} {
		synctest.Test(t, func(t *testing.T) {
			k, s := box(t, func(context.Context, string, json.RawMessage) (*tool.Result, error) {
				time.Sleep(time.Second) //nolint:forbidigo // virtual time
				return text("there")
			})
			start := time.Now()
			var all sync.WaitGroup
			for range n {
				all.Go(func() {
					if res, err := s.Call(t.Context(), "look", question); err != nil || res.Text != "there" {
						t.Errorf("%+v, %v", res, err)
					}
				})
			}
			all.Wait()
			if took := time.Since(start); took != time.Second {
				t.Errorf("%d calls took %v", n, took)
			}
			s.Close()
			synctest.Wait()
			if k.opened.Load() != 1 || k.closed.Load() != 1 {
				t.Errorf("the kit was opened %d times, closed %d times", k.opened.Load(), k.closed.Load())
			}
		})
	}
}

func TestBadTools(t *testing.T) {
	forever := make(chan struct{})
	defer close(forever)
	for _, tt := range []struct {
		name string
		call func(ctx context.Context) (*tool.Result, error)
		want string
	}{
		{"panics", func(context.Context) (*tool.Result, error) { panic("at the disco") }, "look broke down: at the disco"},
		{"returns nothing", func(context.Context) (*tool.Result, error) { return nil, nil }, "look returned nothing at all"},
		{"fails", func(context.Context) (*tool.Result, error) { return nil, errors.New("no\x00 \xffsuch\npage") }, "no  \uFFFDsuch page"},
		{"fails at length", func(context.Context) (*tool.Result, error) { return nil, errors.New(strings.Repeat("no ", 1<<20)) }, strings.Repeat("no ", 300)},
		{"refuses", func(context.Context) (*tool.Result, error) {
			return nil, fmt.Errorf("fetch: %w", &tool.Refused{What: "a request to 169.254.169.254", Why: "it is link-local"})
		}, "a request to 169.254.169.254 is refused: it is link-local"},
		{"takes too long", func(ctx context.Context) (*tool.Result, error) { <-ctx.Done(); return nil, ctx.Err() }, "look did not answer within 30s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, s := box(t, func(ctx context.Context, _ string, _ json.RawMessage) (*tool.Result, error) { return tt.call(ctx) })
				_, err := s.Call(t.Context(), "look", question)
				if err == nil || !strings.HasPrefix(err.Error(), tt.want) || len(err.Error()) > 3000 {
					t.Errorf("got %.300v, want %.300s", err, tt.want)
				}
				if _, refused := errors.AsType[*tool.Refused](err); refused != (tt.name == "refuses") {
					t.Errorf("refused: %v", refused)
				}
			})
		})
	}
}

// A tool that never ends is given up, and not called any more when too many hang.
func TestHangingTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		_, s := box(t, func(context.Context, string, json.RawMessage) (*tool.Result, error) {
			<-hang
			return text("late")
		})
		var all sync.WaitGroup
		var given atomic.Int64
		for range 40 {
			all.Go(func() {
				if _, err := s.Call(t.Context(), "look", question); err != nil && strings.Contains(err.Error(), "within 30s") {
					given.Add(1)
				}
			})
		}
		all.Wait()
		if given.Load() != 40 {
			t.Errorf("%d of 40 calls were given up", given.Load())
		}
		if _, err := s.Call(t.Context(), "look", question); err == nil || !strings.Contains(err.Error(), "out of order on this worker: 40 calls") {
			t.Errorf("another call: %v", err)
		}
		close(hang)
		synctest.Wait()
		if res, err := s.Call(t.Context(), "look", question); err != nil || res.Text != "late" {
			t.Errorf("once they have ended: %+v, %v", res, err)
		}
	})
}

// The end of the attempt, or of the session, ends calls whatever their tool does.
func TestCalledOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		defer close(hang)
		_, s := box(t, func(context.Context, string, json.RawMessage) (*tool.Result, error) {
			<-hang
			return text("late")
		})
		why := errors.New("the worker drains")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		if _, err := s.Call(ctx, "look", question); !errors.Is(err, why) {
			t.Errorf("called off: %v", err)
		}
		time.AfterFunc(time.Second, s.Close)
		if _, err := s.Call(t.Context(), "look", question); !errors.Is(err, context.Canceled) {
			t.Errorf("closed: %v", err)
		}
		if _, err := s.Call(t.Context(), "look", question); err == nil {
			t.Error("a session that is closed makes calls")
		}
	})
}

// A kit that cannot be opened is tried again by the next call.
func TestOpening(t *testing.T) {
	k, s := box(t, func(context.Context, string, json.RawMessage) (*tool.Result, error) { return text("open") })
	k.open = func(context.Context) error { return errors.New("Chromium is not installed") }
	for range 2 {
		if _, err := s.Call(t.Context(), "look", question); err == nil || !strings.Contains(err.Error(), "Chromium") {
			t.Errorf("got %v", err)
		}
	}
	k.open = func(context.Context) error { panic("no display") }
	if _, err := s.Call(t.Context(), "look", question); err == nil || err.Error() != "eyes broke down: no display" {
		t.Errorf("got %v", err)
	}
	k.open = nil
	if res, err := s.Call(t.Context(), "look", question); err != nil || res.Text != "open" {
		t.Errorf("got %+v, %v", res, err)
	}
}

// TestPanicsAreLogged: nobody but the log learns where a tool broke down.
func TestPanicsAreLogged(t *testing.T) {
	k := &kit{name: "eyes", specs: []tool.Spec{spec("look")}, call: func(context.Context, string, json.RawMessage) (*tool.Result, error) { panic("at the disco") }}
	b, err := toolbox.New(nil, k)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	b.LogTo(slog.New(slog.NewTextHandler(&log, nil)))
	s, err := b.Open(t.Context(), []string{"look"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Call(t.Context(), "look", question); err == nil {
		t.Error("a call that panics succeeds")
	}
	if got := log.String(); !strings.Contains(got, `panic="at the disco"`) || !strings.Contains(got, "tool=look") || !strings.Contains(got, "stack=") {
		t.Errorf("the log has %q, want the tool, its panic and where it was", got)
	}
	s.Close()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// A gigabyte, and more pieces of evidence than anyone can read.
func TestTooMuch(t *testing.T) {
	piece := strings.Repeat("ä", tool.MaxEvidence)
	_, s := box(t, func(context.Context, string, json.RawMessage) (*tool.Result, error) {
		res := &tool.Result{Text: strings.Repeat("é", 1<<29), Cut: -5}
		for range 10 {
			res.Pictures = append(res.Pictures, tool.Picture{URI: strings.Repeat("u", 1<<20), Data: make([]byte, 100)})
		}
		res.Pictures[1].Data = make([]byte, tool.MaxPicture+1)
		for range 200 {
			res.Evidence = append(res.Evidence, tool.Evidence{URI: strings.Repeat("u", 1<<20), Text: piece})
		}
		return res, nil
	})
	res, err := s.Call(t.Context(), "look", question)
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, e := range res.Evidence {
		if size += len(e.Text); len(e.URI) > 2048 || len(e.Text) > tool.MaxEvidence || !utf8.ValidString(e.Text) {
			t.Errorf("a piece of %d bytes at %d", len(e.Text), len(e.URI))
		}
	}
	if len(res.Text) != tool.DefaultOutput || !utf8.ValidString(res.Text) || size > 16<<20 {
		t.Errorf("%d bytes of text, %d of evidence", len(res.Text), size)
	}
	if len(res.Pictures) != tool.MaxPictures-1 || len(res.Pictures[0].URI) > 2048 || res.Pictures[0].Retrieved.IsZero() {
		t.Errorf("%d pictures", len(res.Pictures))
	}
	if want := int64(1<<30 + 200*len(piece) - len(res.Text) - size + tool.MaxPicture + 1 + 600); res.Cut != want {
		t.Errorf("%d bytes were left out, want %d", res.Cut, want)
	}
}

// Whatever a tool says of its evidence, what comes of it can be shown and stored.
func TestLies(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		bytes := func(label string) string { return string(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(rt, label)) }
		in := tool.Evidence{
			URI: bytes("uri"), Title: bytes("title"), Media: bytes("media"), Text: rapid.StringOf(rapid.SampledFrom([]rune("aß漢 \n"))).Draw(rt, "text") + bytes("tail"),
			Metadata: map[string]string{bytes("name"): bytes("value")},
		}
		for range rapid.IntRange(0, 5).Draw(rt, "ranges") {
			at := rapid.IntRange(-10, 100)
			in.Shown = append(in.Shown, tool.Range{Start: at.Draw(rt, "start"), End: at.Draw(rt, "end")})
		}
		_, s := box(t, func(context.Context, string, json.RawMessage) (*tool.Result, error) {
			return &tool.Result{Text: bytes("result"), Evidence: []tool.Evidence{in}}, nil
		})
		defer s.Close()
		res, err := s.Call(t.Context(), "look", question)
		if err != nil || !utf8.ValidString(res.Text) {
			rt.Fatalf("%+v, %v", res, err)
		}
		for _, e := range res.Evidence {
			for _, text := range []string{e.URI, e.Title, e.Media, e.Text} {
				if !utf8.ValidString(text) {
					rt.Fatalf("%q is no text", text)
				}
			}
			if strings.ContainsAny(e.URI+e.Title+e.Media, "\x00\n") || e.Retrieved.IsZero() {
				rt.Fatalf("evidence %+v", e)
			}
			end := 0
			for _, r := range e.Shown {
				if r.Start < end || r.End <= r.Start || r.End > len(e.Text) || !utf8.ValidString(e.Text[r.Start:r.End]) {
					rt.Fatalf("ranges %v of a text of %d bytes", e.Shown, len(e.Text))
				}
				end = r.End
			}
		}
		if len(in.Text) > 0 && utf8.ValidString(in.Text) && strings.TrimSpace(in.Text) != "" && !slices.ContainsFunc(res.Evidence, func(e tool.Evidence) bool { return e.Text == in.Text }) {
			rt.Fatalf("the text became %+v", res.Evidence)
		}
	})
}

// Tools of servers are listed by the names that the servers give them.
func TestMembers(t *testing.T) {
	a, b := spec("docs_look_1"), spec("docs_find")
	a.Member, b.Member = "look.1", "find"
	box, err := toolbox.New(nil, &kit{name: "mcp:docs", specs: []tool.Spec{a, b}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"mcp:docs", "mcp:docs/find", "mcp:docs/look.1"}, box.Offers()); diff != "" {
		t.Error(diff)
	}
	if specs, err := box.Specs([]string{"mcp:docs/look.1"}); err != nil || len(specs) != 1 || specs[0].Name != "docs_look_1" {
		t.Errorf("got %v, error %v", specs, err)
	}
	b.Member = a.Member
	if _, err := toolbox.New(nil, &kit{name: "mcp:docs", specs: []tool.Spec{a, b}}); err == nil || !strings.Contains(err.Error(), "two tools named mcp:docs/look.1") {
		t.Errorf("two tools of one name: %v", err)
	}
}

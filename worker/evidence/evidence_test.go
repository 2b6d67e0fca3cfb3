package evidence_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/evidence"
)

// A memory stores evidence as an orchestrator does: in order, and no number twice.
type memory struct {
	mu    sync.Mutex
	texts map[mapreduce.DocumentID]string
	puts  []string
	gets  int
	fail  error
}

func (m *memory) Put(number int, e *mapreduce.Evidence, text []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	m.puts = append(m.puts, fmt.Sprintf("%d %s", number, e.URI))
	m.texts[e.Document] = string(text)
	return nil
}

func (m *memory) Get(_ context.Context, e *mapreduce.Evidence) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gets++
	return []byte(m.texts[e.Document]), nil
}

func page(uri, text string) mapreduce.Evidence {
	e := mapreduce.Evidence{URI: uri, Tool: "fetch"}
	e.DescribeText([]byte(text))
	return e
}

// picture begins as a picture does.
const picture = "\x89PNG\r\n\x1a\n..."

func open(t *testing.T, m *memory, own int, items ...mapreduce.Evidence) *evidence.Shelf {
	t.Helper()
	if m.texts == nil {
		m.texts = make(map[mapreduce.DocumentID]string)
	}
	var list []byte
	if len(items) > 0 {
		var err error
		if list, err = json.Marshal(items); err != nil {
			t.Fatal(err)
		}
	}
	s, err := evidence.Open(t.Context(), list, own, m)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Calls of tools run at the same time: each text is put once, under a number of its own.
func TestKeepAtTheSameTime(t *testing.T) {
	m := &memory{}
	s := open(t, m, 0)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			text := fmt.Sprintf("text %d", i%10)
			id, err := s.KeepEvidence(t.Context(), mapreduce.Evidence{URI: text, Tool: "fetch"}, []byte(text))
			if want := page(text, text).Document; err != nil || id != want {
				t.Errorf("kept as %s, want %s: %v", id, want, err)
			}
		})
	}
	all.Wait()
	if len(m.puts) != 10 || len(s.Evidence()) != 10 {
		t.Errorf("put %q", m.puts)
	}
	for n, put := range m.puts {
		if !strings.HasPrefix(put, fmt.Sprintf("%d ", n)) {
			t.Errorf("put %d is %q", n, put)
		}
	}
}

// What earlier attempts kept is there, and what a unit kept that this one repeats becomes
// its own.
func TestOpen(t *testing.T) {
	old, both, own := page("old", "x"), page("both", "y"), page("own", "z")
	m := &memory{texts: map[mapreduce.DocumentID]string{old.Document: "x", both.Document: "y", own.Document: "z"}}
	s := open(t, m, 2, old, both, both, own)
	if diff := cmp.Diff([]string{"2 old"}, m.puts); diff != "" {
		t.Errorf("put (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]mapreduce.Evidence{both, own, old}, s.Evidence()); diff != "" {
		t.Errorf("evidence (-want +got):\n%s", diff)
	}
	if text, err := s.EvidenceText(t.Context(), own.Document); err != nil || string(text) != "z" {
		t.Errorf("text %q: %v", text, err)
	}
	if _, err := s.EvidenceText(t.Context(), page("none", "x").Document); errs.KindOf(err) != errs.NotFound {
		t.Errorf("evidence that there is not: %v", err)
	}
	for name, list := range map[string]string{"no list": "{", "too few": "[]"} {
		if _, err := evidence.Open(t.Context(), []byte(list), 1, m); err == nil {
			t.Errorf("%s is opened", name)
		}
	}
}

// A unit has so much evidence and no more, of texts that can be cited; what is refused
// leaves the shelf as it was.
func TestBounds(t *testing.T) {
	m := &memory{}
	s := open(t, m, 0)
	for name, tt := range map[string]struct {
		e    mapreduce.Evidence
		text string
	}{
		"no place": {mapreduce.Evidence{Tool: "fetch"}, "x"}, "no tool": {mapreduce.Evidence{URI: "u"}, "x"},
		"no text":                   {mapreduce.Evidence{URI: "u", Tool: "fetch"}, ""},
		"not UTF-8":                 {mapreduce.Evidence{URI: "u", Tool: "fetch"}, "\xff"},
		"a picture without a type":  {mapreduce.Evidence{URI: "u", Tool: "fetch"}, picture},
		"a picture of another type": {mapreduce.Evidence{URI: "u", Tool: "fetch", Media: "image/jpeg"}, picture},
		"a picture too large":       {mapreduce.Evidence{URI: "u", Tool: "fetch", Media: "image/png"}, picture + strings.Repeat("x", mapreduce.MaxEvidencePicture)},
		"too long":                  {mapreduce.Evidence{URI: "u", Tool: "fetch"}, strings.Repeat("x", mapreduce.MaxEvidenceText+1)},
	} {
		if _, err := s.KeepEvidence(t.Context(), tt.e, []byte(tt.text)); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	shot := open(t, &memory{}, 0)
	id, err := shot.KeepEvidence(t.Context(), mapreduce.Evidence{URI: "u", Tool: "browser", Media: "image/png"}, []byte(picture))
	if err != nil || !shot.Evidence()[0].IsPicture() || shot.Evidence()[0].Document != id {
		t.Errorf("a picture: %v, %+v", err, shot.Evidence())
	}
	m.fail = errs.New(errs.Precondition, "the attempt is over")
	if _, err := s.KeepEvidence(t.Context(), mapreduce.Evidence{URI: "u", Tool: "fetch"}, []byte("x")); !errors.Is(err, errs.Precondition) || len(s.Evidence()) > 0 {
		t.Errorf("a put that was refused: %v, %v", err, s.Evidence())
	}
	m.fail = nil
	text := strings.Repeat("x", mapreduce.MaxEvidenceText)
	for i := range mapreduce.MaxEvidenceBytes / mapreduce.MaxEvidenceText {
		if _, err := s.KeepEvidence(t.Context(), mapreduce.Evidence{URI: fmt.Sprint(i), Tool: "fetch"}, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.KeepEvidence(t.Context(), mapreduce.Evidence{URI: "u", Tool: "fetch"}, []byte("x")); !errors.Is(err, agent.ErrNoRoom) {
		t.Errorf("one byte more: %v", err)
	}
	if id, err := s.KeepEvidence(t.Context(), mapreduce.Evidence{URI: "0", Tool: "fetch"}, []byte(text)); err != nil || id != s.Evidence()[0].Document {
		t.Errorf("what is there already: %s, %v", id, err)
	}
	before := m.gets
	last := s.Evidence()[len(s.Evidence())-1].Document
	if _, err := s.EvidenceText(t.Context(), last); err != nil || m.gets != before {
		t.Errorf("the last text was fetched: %v", err)
	}
	if _, err := s.EvidenceText(t.Context(), s.Evidence()[0].Document); err != nil || m.gets != before+1 {
		t.Errorf("all texts are held: %v", err)
	}
	full := open(t, &memory{}, 0)
	for i := range mapreduce.MaxEvidenceItems {
		if _, err := full.KeepEvidence(t.Context(), mapreduce.Evidence{URI: fmt.Sprint(i), Tool: "fetch"}, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := full.KeepEvidence(t.Context(), mapreduce.Evidence{URI: "u", Tool: "fetch"}, []byte("x")); !errors.Is(err, agent.ErrNoRoom) {
		t.Errorf("one item more: %v", err)
	}
}

package refs_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/internal/text/refs"
)

// id returns an id that begins with the given hexadecimal digits.
func id(t testing.TB, digits string) refs.ID {
	t.Helper()
	var out refs.ID
	b, err := hex.DecodeString(digits + strings.Repeat("0", 64-len(digits)))
	if err != nil {
		t.Fatal(err)
	}
	copy(out[:], b)
	return out
}

func TestSpelling(t *testing.T) {
	for _, test := range []struct {
		name string
		ids  []string
		want []string
	}{
		{"one", []string{"a7b3c2d1"}, []string{"REF_a7b3c2d1"}},
		{"different", []string{"a7b3c2d1", "b7b3c2d1"}, []string{"REF_a7b3c2d1", "REF_b7b3c2d1"}},
		{"equal in seven digits", []string{"a7b3c2d1", "a7b3c2d2"}, []string{"REF_a7b3c2d1", "REF_a7b3c2d2"}},
		{"equal in eight digits", []string{"a7b3c2d11", "a7b3c2d12"}, []string{"REF_a7b3c2d11", "REF_a7b3c2d12"}},
		{"only those that need it", []string{"00000001", "a7b3c2d1234", "a7b3c2d1235", "a7b3c2d2"}, []string{"REF_00000001", "REF_a7b3c2d1234", "REF_a7b3c2d1235", "REF_a7b3c2d2"}},
		{"equal in fifteen digits", []string{"a7b3c2d1a7b3c2d1", "a7b3c2d1a7b3c2d2"}, []string{"REF_a7b3c2d1a7b3c2d1", "REF_a7b3c2d1a7b3c2d2"}},
		{"equal in 64 bits", []string{"a7b3c2d1a7b3c2d11", "a7b3c2d1a7b3c2d12"}, []string{"REF_a7b3c2d1a7b3c2d11", "REF_a7b3c2d1a7b3c2d12"}},
		{"three equal in 64 bits", []string{"a7b3c2d1a7b3c2d11", "a7b3c2d1a7b3c2d12", "a7b3c2d1a7b3c2d2"}, []string{"REF_a7b3c2d1a7b3c2d11", "REF_a7b3c2d1a7b3c2d12", "REF_a7b3c2d1a7b3c2d2"}},
		{"equal in 64 bits, and another near", []string{"a7b3c2d1a7b3c2d11", "a7b3c2d1a7b3c2d12", "a7b3c2d1a8"}, []string{"REF_a7b3c2d1a7b3c2d11", "REF_a7b3c2d1a7b3c2d12", "REF_a7b3c2d1a8"}},
		{"named twice", []string{"a7b3c2d1", "a7b3c2d1"}, []string{"REF_a7b3c2d1", "REF_a7b3c2d1"}},
		{"last digit of all", []string{strings.Repeat("a", 63) + "b", strings.Repeat("a", 63) + "c"}, []string{"REF_" + strings.Repeat("a", 63) + "b", "REF_" + strings.Repeat("a", 63) + "c"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var ids []refs.ID
			for _, digits := range test.ids {
				ids = append(ids, id(t, digits))
			}
			s := refs.NewSpelling(slices.Values(ids))
			var got []string
			for _, id := range ids {
				got = append(got, s.Spell(id))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("spellings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSpellingProperties draws ids from few digits, so that many are alike.
func TestSpellingProperties(t *testing.T) {
	form := regexp.MustCompile(`^REF_[0-9a-f]{8,64}$`)
	ids := rapid.SliceOf(rapid.Custom(func(t *rapid.T) refs.ID {
		var id refs.ID
		for i := range id {
			id[i] = rapid.SampledFrom([]byte{0, 0, 0, 0, 0, 1, 0x10}).Draw(t, "byte")
		}
		return id
	}))
	rapid.Check(t, func(t *rapid.T) {
		set := ids.Draw(t, "ids")
		s := refs.NewSpelling(slices.Values(set))
		other := refs.NewSpelling(slices.Values(rapid.Permutation(set).Draw(t, "in another order")))
		names := map[string]refs.ID{}
		for _, id := range set {
			name := s.Spell(id)
			if !form.MatchString(name) || !strings.HasPrefix("REF_"+id.String(), name) {
				t.Fatalf("%v is spelled %q", id, name)
			}
			if name != other.Spell(id) {
				t.Fatalf("%v is spelled %q and %q", id, name, other.Spell(id))
			}
			if first, ok := names[name]; ok && first != id {
				t.Fatalf("%v and %v are both spelled %q", first, id, name)
			}
			names[name] = id
		}
		for name := range names {
			for n := range len(name) {
				if _, ok := names[name[:n]]; ok {
					t.Fatalf("%q begins with %q", name, name[:n])
				}
			}
			if digits := name[len("REF_"):]; len(digits) > 8 && !shared(set, names[name], digits[:len(digits)-1]) {
				t.Fatalf("%q is longer than it needs to be", name)
			}
		}
	})
}

// shared reports whether another id than id begins with digits.
func shared(set []refs.ID, id refs.ID, digits string) bool {
	return slices.ContainsFunc(set, func(o refs.ID) bool { return o != id && strings.HasPrefix(o.String(), digits) })
}

func TestNew(t *testing.T) {
	doc := refs.DocumentHash(sha256.Sum256([]byte("document")))
	base := refs.New(doc, 0, 22, "INDAH GIFT & HOME DECO")
	if again := refs.New(doc, 0, 22, "INDAH GIFT & HOME DECO"); again != base {
		t.Errorf("equal citations have the ids %v and %v", base, again)
	}
	for _, test := range []struct {
		name string
		id   refs.ID
	}{
		{"document", refs.New(refs.DocumentHash{}, 0, 22, "INDAH GIFT & HOME DECO")},
		{"start", refs.New(doc, 1, 22, "INDAH GIFT & HOME DECO")},
		{"end", refs.New(doc, 0, 23, "INDAH GIFT & HOME DECO")},
		{"quote", refs.New(doc, 0, 22, "INDAH GIFT & HOME DECO ")},
		{"quote and offset", refs.New(doc, 0, 22<<8, "INDAH GIFT & HOME DECO")},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.id == base {
				t.Error("another citation has the same id")
			}
		})
	}
}

// TestNewIsStable guards the identity itself: stored results hold it.
func TestNewIsStable(t *testing.T) {
	got := refs.New(refs.DocumentHash{}, 1, 2, "quote").String()
	h := sha256.Sum256(slices.Concat([]byte("coditect/mapreduce citation 1\x00"), make([]byte, 32),
		[]byte{0, 0, 0, 0, 0, 0, 0, 1}, []byte{0, 0, 0, 0, 0, 0, 0, 2}, []byte("quote")))
	if want := hex.EncodeToString(h[:]); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAll(t *testing.T) {
	got := refs.All(slices.Values([]refs.ID{id(t, "b7b3c2d1"), id(t, "a7b3c2d12"), id(t, "b7b3c2d1"), id(t, "a7b3c2d11")}))
	want := []refs.Named{
		{ID: id(t, "a7b3c2d11"), Name: "REF_a7b3c2d11"},
		{ID: id(t, "a7b3c2d12"), Name: "REF_a7b3c2d12"},
		{ID: id(t, "b7b3c2d1"), Name: "REF_b7b3c2d1"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("named (-want +got):\n%s", diff)
	}
}

// million yields a million ids without holding them.
func million(yield func(refs.ID) bool) {
	var b [8]byte
	for i := range uint64(1_000_000) {
		binary.BigEndian.PutUint64(b[:], i)
		if !yield(sha256.Sum256(b[:])) {
			return
		}
	}
}

func TestMillionSpellingsDiffer(t *testing.T) {
	s := refs.NewSpelling(million)
	seen := make(map[string]struct{}, 1_000_000)
	longer := 0
	for id := range million {
		name := s.Spell(id)
		seen[name] = struct{}{}
		if len(name) > len("REF_")+8 {
			longer++
		}
	}
	if len(seen) != 1_000_000 {
		t.Errorf("%d spellings for a million ids", len(seen))
	}
	if longer == 0 || longer > 1000 {
		t.Errorf("%d ids are spelled longer, expected about 230", longer)
	}
}

func BenchmarkSpelling(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		s := refs.NewSpelling(million)
		for id := range million {
			s.Spell(id)
		}
	}
}

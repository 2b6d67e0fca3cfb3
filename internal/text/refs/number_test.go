package refs_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/internal/text/refs"
)

// issued are the ids that tests know of.
func issued(names ...string) func(string) bool {
	return func(name string) bool { return slices.Contains(names, name) }
}

func TestC5Ids(t *testing.T) {
	form := regexp.MustCompile(`^REF_[0-9a-f]{8}$`)
	seen := map[string]bool{}
	for i := range 1000 {
		id := refs.New(refs.DocumentHash{}, i, i+1, "quote")
		name := refs.NewSpelling(slices.Values([]refs.ID{id})).Spell(id)
		if !form.MatchString(name) || len(name) != 12 || seen[name] {
			t.Fatalf("id %q is not of the form, or there twice", name)
		}
		seen[name] = true
	}
}

// C5: ids are unique in their job however many there are: among 100,000 some
// share eight digits.
func TestC5NoTwoAreEqual(t *testing.T) {
	ids := make([]refs.ID, 100_000)
	for i := range ids {
		ids[i] = refs.New(refs.DocumentHash{}, i, i+1, "quote")
	}
	s := refs.NewSpelling(slices.Values(ids))
	seen, longer := map[string]bool{}, 0
	for _, id := range ids {
		name := s.Spell(id)
		if seen[name] {
			t.Fatalf("%q is there twice", name)
		}
		seen[name] = true
		if len(name) > 12 {
			longer++
		}
	}
	if longer == 0 {
		t.Error("none of 100,000 ids is longer than eight digits: nothing was tested")
	}
}

func TestConvert(t *testing.T) {
	const a, b, c = "REF_a1b2c3d4", "REF_e5f6g7h8", "REF_0badcafe"
	removed := func(names ...string) (out []refs.Removed) {
		for _, n := range names {
			out = append(out, refs.Removed{Name: n})
		}
		return out
	}
	for _, test := range []struct {
		name, text, want string
		used             []string
		removed          []refs.Removed
	}{
		{"C8 as it stands", "Study [REF_a1b2c3d4] found that [REF_e5f6g7h8] confirmed results.", "Study [1] found that [2] confirmed results.", []string{a, b}, nil},
		{"C8 order is that of appearance", "[REF_e5f6g7h8] [REF_a1b2c3d4]", "[1] [2]", []string{b, a}, nil},
		{"C8 repeated", "[REF_a1b2c3d4] then [REF_e5f6g7h8] then [REF_a1b2c3d4]", "[1] then [2] then [1]", []string{a, b}, nil},
		{"C8 list", "x [REF_a1b2c3d4, REF_e5f6g7h8].", "x [1, 2].", []string{a, b}, nil},
		{"list with semicolons, and without", "[REF_a1b2c3d4;REF_e5f6g7h8] [REF_a1b2c3d4 REF_0badcafe]", "[1, 2] [1, 3]", []string{a, b, c}, nil},
		{"list with and", "[REF_a1b2c3d4, REF_e5f6g7h8, and REF_0badcafe] [REF_a1b2c3d4 and REF_e5f6g7h8]", "[1, 2, 3] [1, 2]", []string{a, b, c}, nil},
		{"list over two lines", "[REF_a1b2c3d4,\n REF_e5f6g7h8]", "[1, 2]", []string{a, b}, nil},
		{"list with one of them twice", "[REF_a1b2c3d4, REF_A1B2C3D4]", "[1]", []string{a}, nil},
		{"C8 adjacent", "[REF_a1b2c3d4][REF_e5f6g7h8]", "[1][2]", []string{a, b}, nil},
		{"C8 upper case", "[REF_A1B2C3D4] [ref_a1b2c3d4]", "[1] [1]", []string{a}, nil},
		{"spaces", "[ REF_a1b2c3d4 ]", "[1]", []string{a}, nil},
		{"without brackets", "as REF_a1b2c3d4 says (REF_e5f6g7h8), REF_0badcafe-based", "as [1] says ([2]), [3]-based", []string{a, b, c}, nil},
		{"emphasis", "_REF_a1b2c3d4_ **[REF_e5f6g7h8]**", "_[1]_ **[2]**", []string{a, b}, nil},
		{"among other words in brackets", "[see REF_a1b2c3d4, p. 4]", "[see [1], p. 4]", []string{a}, nil},
		{"after a script without spaces", "見[REF_a1b2c3d4]及REF_e5f6g7h8。", "見[1]及[2]。", []string{a, b}, nil},
		{"C8 inline code", "`[REF_a1b2c3d4]` and ``x ` REF_a1b2c3d4`` but [REF_e5f6g7h8]", "`[REF_a1b2c3d4]` and ``x ` REF_a1b2c3d4`` but [1]", []string{b}, nil},
		{"C8 fenced code", "a\n```go\n[REF_a1b2c3d4]\n```\n[REF_e5f6g7h8]\n~~~\n[REF_a1b2c3d4]\n~~~", "a\n```go\n[REF_a1b2c3d4]\n```\n[1]\n~~~\n[REF_a1b2c3d4]\n~~~", []string{b}, nil},
		{"a fence that nothing closes", "[REF_e5f6g7h8]\n```\n[REF_a1b2c3d4]", "[1]\n```\n[REF_a1b2c3d4]", []string{b}, nil},
		{"a shorter fence closes nothing", "````\n```\n[REF_a1b2c3d4]\n````\n[REF_e5f6g7h8]", "````\n```\n[REF_a1b2c3d4]\n````\n[1]", []string{b}, nil},
		{"a backtick alone is no code", "5` [REF_a1b2c3d4]\n\n6` x", "5` [1]\n\n6` x", []string{a}, nil},
		{"C8 address", "https://example.org/REF_a1b2c3d4?x=[REF_a1b2c3d4] [REF_e5f6g7h8]", "https://example.org/REF_a1b2c3d4?x=[REF_a1b2c3d4] [1]", []string{b}, nil},
		{"address in brackets", "[https://example.org/a] (www.example.org/REF_a1b2c3d4)[REF_e5f6g7h8]", "[https://example.org/a] (www.example.org/REF_a1b2c3d4)[1]", []string{b}, nil},
		{"where a link leads", "[text](notes/REF_a1b2c3d4.md) [REF_e5f6g7h8](REF_a1b2c3d4)", "[text](notes/REF_a1b2c3d4.md) [1]([2])", []string{b, a}, nil},
		{"many addresses", "http://x/REF_a1b2c3d4 http://y/REF_a1b2c3d4 REF_e5f6g7h8", "http://x/REF_a1b2c3d4 http://y/REF_a1b2c3d4 [1]", []string{b}, nil},
		{"C7 unknown", "[REF_ffffffff] and [REF_a1b2c3d4]", "[?] and [1]", []string{a}, removed("REF_ffffffff")},
		{"C7 unknown in a list", "[REF_a1b2c3d4, REF_FFFFFFFF, REF_e5f6g7h8]", "[1, ?, 2]", []string{a, b}, removed("REF_ffffffff")},
		{"C7 unknown without brackets", "as REF_ffffffff and REF_deadbeef say", "as [?] and [?] say", nil, removed("REF_ffffffff", "REF_deadbeef")},
		{"C7 too short, too long", "[REF_a1b2c3d] [REF_a1b2c3d40] [REF_a1b2c3d4_2] [REF_x]", "[?] [?] [?] [?]", nil, removed("REF_a1b2c3d", "REF_a1b2c3d40", "REF_a1b2c3d4_2", "REF_x")},
		{"C7 a number of a writer who counts from 0", "[REF_a1b2c3d4] [0]", "[1] [?]", []string{a}, removed("[0]")},
		{"C7 a number of the writer's own", "[REF_a1b2c3d4] [2] [1, 3]", "[1] [?] [?]", []string{a}, removed("[2]", "[1]", "[3]")},
		{"what was removed before", "[REF_a1b2c3d4, ?] [?] [?, REF_e5f6g7h8]", "[1, ?] [?] [?, 2]", []string{a, b}, nil},
		{"a year is none", "[2019] [REF_a1b2c3d4] [12 mg]", "[2019] [1] [12 mg]", []string{a}, nil},
		{"a word is none", "the column REF_COUNT, MY_REF_a1b2c3d4, [x]", "the column REF_COUNT, MY_REF_a1b2c3d4, [x]", nil, nil},
		{"nothing", "", "", nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := refs.NewNumbering(issued(a, b, c))
			got := n.Convert(test.text)
			if diff := cmp.Diff(test.want, got.Text); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.used, n.Used(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("bibliography (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.removed, got.Removed, cmpopts.IgnoreFields(refs.Removed{}, "At")); diff != "" {
				t.Errorf("removed (-want +got):\n%s", diff)
			}
			back, err := refs.Restore(got.Text, got.Edits)
			if diff := cmp.Diff(test.text, back); diff != "" || err != nil {
				t.Errorf("restored, %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// C8: several texts of one report share one numbering.
func TestC8NumbersGoOn(t *testing.T) {
	n := refs.NewNumbering(issued("REF_a1b2c3d4", "REF_e5f6g7h8"))
	n.Convert("[REF_e5f6g7h8]")
	if got := n.Convert("[REF_a1b2c3d4] [REF_e5f6g7h8]").Text; got != "[2] [1]" {
		t.Errorf("second text %q", got)
	}
	if n.Number("ref_E5F6G7H8") != 1 || n.Number("REF_ffffffff") != 0 {
		t.Errorf("numbers %d and %d", n.Number("ref_E5F6G7H8"), n.Number("REF_ffffffff"))
	}
}

func TestRespell(t *testing.T) {
	full := map[string]string{"REF_a1b2c3d4": "REF_a1b2c3d4eeee"}
	got := refs.Respell("x [REF_A1B2C3D4, REF_ffffffff] [3]", func(name string) (string, bool) {
		to, ok := full[name]
		return to, ok
	})
	if got.Text != "x [REF_a1b2c3d4eeee, ?] [3]" || len(got.Removed) != 1 {
		t.Errorf("respelled: %+v", got)
	}
}

func TestRestoreRefusesEditsOfAnotherText(t *testing.T) {
	for _, edits := range [][]refs.Edit{{{Start: 2, End: 9}}, {{Start: 1, End: 0}}, {{Start: 0, End: 2}, {Start: 1, End: 2}}, {{Start: -1, End: 1}}} {
		if got, err := refs.Restore("abc", edits); err == nil {
			t.Errorf("%v made %q", edits, got)
		}
	}
}

func TestMentioned(t *testing.T) {
	got := refs.Mentioned("[REF_b1b2c3d4] `[REF_c1b2c3d4]` [REF_a1b2c3d4, REF_B1B2C3D4] [2]", issued())
	if diff := cmp.Diff([]string{"REF_b1b2c3d4", "REF_a1b2c3d4"}, got); diff != "" {
		t.Errorf("mentioned (-want +got):\n%s", diff)
	}
}

// pieces are what texts of properties are drawn from.
var pieces = []string{
	"REF_a1b2c3d4", "REF_e5f6g7h8", "REF_E5F6G7H8", "REF_deadbeef", "REF_", "ref_a1b2c3d4", "[", "]", "[", "]", ", ", "; ", " and ", " ",
	"`", "``", "```", "~~~", "\n", "\n\n", "https://x.org/", "](", ")", "(", "_", "-", "é", "見", "[1]", "[2, 3]", "7", "a", "\xff", "> ",
}

func draw(t *rapid.T) string {
	return strings.Join(rapid.SliceOf(rapid.SampledFrom(pieces)).Draw(t, "pieces"), "")
}

// checkConversion checks what holds for the conversion of any text.
func checkConversion(t interface{ Fatalf(string, ...any) }, text string) {
	known := issued("REF_a1b2c3d4", "REF_e5f6g7h8")
	n := refs.NewNumbering(known)
	c := n.Convert(text)
	if back, err := refs.Restore(c.Text, c.Edits); err != nil || back != text {
		t.Fatalf("%q became %q, and that %q, %v", text, c.Text, back, err)
	}
	for _, name := range n.Used() {
		if !known(name) {
			t.Fatalf("%q: %s has a number", text, name)
		}
	}
	for _, r := range c.Removed {
		if known(r.Name) {
			t.Fatalf("%q: %s was removed", text, r.Name)
		}
	}
	// Every number that was written stands for an id of the bibliography, and
	// the bibliography has no other.
	shown := map[string]bool{}
	for _, e := range c.Edits {
		for d := range strings.SplitSeq(strings.Trim(c.Text[e.Start:e.End], "[]"), ", ") {
			shown[d] = true
		}
	}
	delete(shown, refs.Unknown)
	for i := range n.Used() {
		if !shown[fmt.Sprint(i+1)] {
			t.Fatalf("%q became %q: %d is in the bibliography alone", text, c.Text, i+1)
		}
		delete(shown, fmt.Sprint(i+1))
	}
	if len(shown) > 0 {
		t.Fatalf("%q became %q, bibliography %v", text, c.Text, n.Used())
	}
}

func TestConversionProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkConversion(t, draw(t)) })
}

func FuzzConvert(f *testing.F) {
	f.Add("Study [REF_a1b2c3d4] found that [REF_e5f6g7h8] confirmed results.")
	f.Add(strings.Join(pieces, ""))
	f.Fuzz(func(t *testing.T, text string) { checkConversion(t, text) })
}

func FuzzRestore(f *testing.F) {
	f.Add("[1]", 0, 3, "REF_a1b2c3d4")
	f.Fuzz(func(t *testing.T, text string, start, end int, old string) {
		got, err := refs.Restore(text, []refs.Edit{{Start: start, End: end, Old: old}})
		if err == nil && got != text[:start]+old+text[end:] {
			t.Errorf("%q [%d,%d) %q gave %q", text, start, end, old, got)
		}
	})
}

// BenchmarkConvert shows that work grows with the text, also where every piece
// begins something that never ends.
func BenchmarkConvert(b *testing.B) {
	for _, size := range []int{1 << 16, 1 << 18, 1 << 20} {
		for name, piece := range map[string]string{
			"prose": "Study [REF_a1b2c3d4] found that `x` http://y.org/z holds. ", "ticks": "` `` ", "addresses": "http://x ", "open": "[REF_a1b2c3d4, ",
		} {
			text := strings.Repeat(piece, size/len(piece))
			b.Run(fmt.Sprintf("%s/%dKiB", name, size>>10), func(b *testing.B) {
				b.SetBytes(int64(size))
				for b.Loop() {
					refs.NewNumbering(issued("REF_a1b2c3d4")).Convert(text)
				}
			})
		}
	}
}

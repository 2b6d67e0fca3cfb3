package merge_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/merge"
)

const nearKeys = `
properties:
  name: {type: string}
  since: {type: string, format: date}
  kind: {enum: [ship, shop]}
x-coditect: {key: [name, since, kind], match: near}
`

// entity is the name of the entity with a key.
func entity(s *schema.Schema, parts ...string) string {
	for i, path := range s.Key {
		p := s.Field(path)
		if v, err := p.Normalize(parts[i]); err == nil {
			parts[i] = p.Identity(v)
		}
	}
	b, err := json.Marshal(parts)
	if err != nil {
		panic(err) // texts are always JSON
	}
	return "k:" + string(b)
}

func TestNear(t *testing.T) {
	s := parse(t, nearKeys)
	for _, tt := range []struct{ a, b, want string }{
		{"Müller Handels GmbH", "Muller Handels-GmbH", "same"},
		{"Müller Handels GmbH", "Mueller Handels GmbH", "same"},
		{"Anna Schmidt", "Schmidt, Anna", "same"},
		{"O'Brien & Sons", "OBrien & Sons", "same"},
		{"Interantional Trading", "International Trading", "same"}, // exchanged
		{"Internationl Trading", "International Trading", "same"},  // left out
		{"Grain Store", "Graln Store", "same"},                     // looks alike
		{"Sunshine Trading", "Sun Shine Trading", "same"},
		{"Marin Foods", "Martin Foods", "same"},
		{"Martin Foods", "Marvin Foods", "open"}, // two names that there are
		{"Bank", "Bonk", "open"},
		{"Acme", "Acme Holding", "open"},
		{"Acme Norht Wroks", "Acme North Works", "open"},
		{"Store 12", "Store 21", "different"},
		{"Ship A1", "Ship A2", "different"},
		{"Kiel Trading", "Bonn Trading", "different"},
		{"Ab", "Ac", "different"},
		{"Holding", "Acme", "different"},
	} {
		t.Run(tt.a+" and "+tt.b, func(t *testing.T) {
			a, b := entity(s, tt.a, "2020-01-02", "ship"), entity(s, tt.b, "2020-01-02", "ship")
			same, open := merge.Near(s, []string{b, a, b})
			got := map[[2]int]string{{1, 0}: "same", {0, 1}: "open", {0, 0}: "different"}[[2]int{len(same), len(open)}]
			if got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
			for _, other := range []string{entity(s, tt.b, "2020-01-03", "ship"), entity(s, tt.b, "2020-01-02", "shop"), "d:" + tt.a, "a"} {
				if same, open := merge.Near(s, []string{a, other}); len(same)+len(open) > 0 {
					t.Errorf("%s and %s: %v, %v; dates and choices are equal or not", a, other, same, open)
				}
			}
		})
	}
}

// TestNearDependsOnTheSetAlone: not on the order of names, nor on how often they
// come.
func TestNearDependsOnTheSetAlone(t *testing.T) {
	s := parse(t, nearKeys)
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SampledFrom([]string{"marin", "martin", "marvin", "foods", "fodos", "food", "gmbh", "12", "international", "internatoinal"})
		names := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			return entity(s, strings.Join(rapid.SliceOfN(words, 1, 3).Draw(t, "words"), " "), "2020-01-02", "ship")
		}), 1, 30).Draw(t, "names")
		same, open := merge.Near(s, names)
		again := append(rapid.Permutation(names).Draw(t, "order"), names[0])
		same2, open2 := merge.Near(s, again)
		if diff := cmp.Diff([][]merge.Pair{same, open}, [][]merge.Pair{same2, open2}); diff != "" {
			t.Fatalf("in another order (-want +got):\n%s", diff)
		}
		one := merge.Clusters(same)
		slices.Reverse(same)
		if diff := cmp.Diff(one, merge.Clusters(same)); diff != "" {
			t.Fatalf("clusters of the same pairs in another order (-want +got):\n%s", diff)
		}
		for name, of := range one {
			if one[of] != of || of > name {
				t.Fatalf("%s is in the cluster of %s, which is in that of %s", name, of, one[of])
			}
		}
	})
}

// TestNearOfMany finds the slips among many names that share words: what is
// compared is bounded.
func TestNearOfMany(t *testing.T) {
	s := parse(t, nearKeys)
	r := rand.New(rand.NewPCG(1, 2))
	var names []string
	want := 0
	for range 20_000 {
		name := invented(r) + " trading company"
		names = append(names, entity(s, name, "2020-01-02", "ship"))
		if r.IntN(10) == 0 {
			want++
			names = append(names, entity(s, slipped(r, name), "2020-01-02", "ship"))
		}
	}
	same, _ := merge.Near(s, names)
	t.Logf("%d names with %d slips: %d pairs", len(names), want, len(same))
	if len(same) < want*95/100 {
		t.Errorf("%d pairs were found of %d", len(same), want)
	}
}

// invented is a word of ten to twelve letters.
func invented(r *rand.Rand) string {
	var b strings.Builder
	for range 5 + r.IntN(2) {
		b.WriteByte("bdfgklmnprstvz"[r.IntN(14)])
		b.WriteByte("aeiou"[r.IntN(5)])
	}
	return b.String()
}

// slipped leaves out, doubles or exchanges a letter of the first word.
func slipped(r *rand.Rand, name string) string {
	word, rest, _ := strings.Cut(name, " ")
	i := 1 + r.IntN(len(word)-3)
	for word[i] == word[i+1] {
		i = 1 + r.IntN(len(word)-3)
	}
	switch r.IntN(3) {
	case 0:
		word = word[:i] + word[i+1:]
	case 1:
		word = word[:i] + word[i:i+1] + word[i:]
	default:
		word = word[:i] + word[i+1:i+2] + word[i:i+1] + word[i+2:]
	}
	return word + " " + rest
}

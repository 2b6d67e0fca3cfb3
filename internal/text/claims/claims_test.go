package claims_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/internal/text/claims"
)

const river = "The Elbe carried 450 tonnes of sand to the sea in 2019. Its flow increased after heavy rain in Bohemia. " +
	"Fish were not found below the weir, and Dr. Novak of the Water Board warned of low oxygen."

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name, claim string
		want        claims.Grade
		why         string
	}{
		{"as it stands", "The Elbe carried 450 tonnes of sand to the sea in 2019.", claims.Supported, ""},
		{"other words", "In 2019 the river Elbe transported 450 tonnes of sand into the sea.", claims.Supported, ""},
		{"references count for nothing", "The Elbe carried 450 tonnes of sand to the sea in 2019 [REF_0badcafe, 3].", claims.Supported, ""},
		{"another number", "The Elbe carried 540 tonnes of sand to the sea in 2019.", claims.Contradicted, "540"},
		{"another year", "The Elbe carried 450 tonnes of sand to the sea in 2018.", claims.Contradicted, "2018"},
		{"another name", "The Danube carried 450 tonnes of sand to the sea in 2019.", claims.Contradicted, "danube"},
		{"denied", "The Elbe did not carry 450 tonnes of sand to the sea in 2019.", claims.Contradicted, "denied"},
		{"not denied any more", "Fish were found below the weir.", claims.Contradicted, "denied"},
		{"the opposite", "The flow of the Elbe decreased after heavy rain in Bohemia.", claims.Contradicted, "decreased"},
		{"only half", "The flow increased after heavy rain in Bohemia, and farmers sold their cattle at markets abroad.", claims.Partial, "this part"},
		{"a number that is nowhere", "Dr. Novak of the Water Board warned of low oxygen in 12 villages.", claims.Partial, "12"},
		{"something else", "Solar panels convert light into electric current.", claims.Unsupported, "not said"},
		{"nothing", "It was.", claims.Unsupported, "claims nothing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := claims.Check(tt.claim, river)
			if v.Grade != tt.want || !strings.Contains(strings.Join(v.Reasons, "; "), tt.why) {
				t.Errorf("%s; want %s with %q", v, tt.want, tt.why)
			}
		})
	}
}

// TestClearedByTheSame: a sentence that says what the claim says clears it of what others deny, unless the
// claim has a number or a name more.
func TestClearedByTheSame(t *testing.T) {
	const caches = "Caches aren't required to reuse stored responses, generally. That is, as caches store many responses, caches need a way " +
		"to find stored responses for reuse by the value of No-Vary-Search, without reading all cached responses."
	const dams = "The dam near Melnik was closed in spring for repairs. The dam near Melnik was not closed in spring of 2018 for repairs."
	for _, tt := range []struct {
		claim, passage string
		want           claims.Grade
	}{
		{"In sum, caches aren't required to reuse stored responses, generally.", caches, claims.Supported},
		{"In sum, caches are required to reuse stored responses, generally.", caches, claims.Contradicted},
		{"In sum, the dam near Melnik was closed in spring for repairs.", dams, claims.Supported},
		{"The dam near Melnik was closed in spring of 2018 for repairs.", dams, claims.Contradicted},
	} {
		if v := claims.Check(tt.claim, tt.passage); v.Grade != tt.want {
			t.Errorf("%q: %s, want %s", tt.claim, v, tt.want)
		}
	}
}

// TestScale: an amount may be written in another scale than in the passage, and not with
// another one.
func TestScale(t *testing.T) {
	const table = "Consolidated balance sheet (in millions). Net property, plant and equipment of the company: 8,738 in 2018."
	for _, tt := range []struct {
		claim, passage string
		want           claims.Grade
	}{
		{"Net property, plant and equipment of the company was $8,738 million in 2018.", table, claims.Supported},
		{"Net property, plant and equipment of the company was $8.738 billion in 2018.", table, claims.Supported},
		{"Net property, plant and equipment of the company was $8,738 billion in 2018.", table, claims.Partial},
		{"Net property, plant and equipment of the company was $8.738 million in 2018.", table, claims.Contradicted},
		{"The bridge over the Elbe cost 2.5 million euros.", "The bridge over the Elbe cost 2,500,000 euros.", claims.Supported},
		{"The bridge over the Elbe cost 2.5 million euros.", "The bridge over the Elbe cost 2.5 billion euros.", claims.Contradicted},
		{"The bridge over the Elbe cost 0.5 million euros.", "The bridge over the Elbe cost 500 thousand euros.", claims.Supported},
	} {
		if v := claims.Check(tt.claim, tt.passage); v.Grade != tt.want {
			t.Errorf("%q by %q: %s, want %s", tt.claim, tt.passage, v, tt.want)
		}
	}
}

// TestAbout: a claim may name what is known of a source, which contradicts no claim.
func TestAbout(t *testing.T) {
	source := claims.Source{Passage: "Fish were not found below the weir after the heavy rain.", About: "Oxygen in the Moldau. Karel Dvorak, Jana Mala, 2015."}
	for claim, want := range map[string]claims.Grade{
		"Dvorak and Mala (2015) found no fish below the weir after heavy rain.": claims.Supported,
		"Dvorak and Mala (2016) found no fish below the weir after heavy rain.": claims.Partial,
		"Dvorak and Mala (2015) found fish below the weir after heavy rain.":    claims.Contradicted,
		"There is no oxygen in the Elbe.":                                       claims.Partial, // the title is of another river, and says nothing against it
	} {
		if v := claims.CheckSources(claim, source); v.Grade != want {
			t.Errorf("%s %s, want %s", claim, v, want)
		}
	}
	source.About = ""
	const named = "Dvorak and Mala (2015) found no fish below the weir after heavy rain."
	if v := claims.CheckSources(named, source); v.Grade == claims.Supported {
		t.Errorf("%s %s, and nothing is known of the source", named, v)
	}
}

// TestListNumber: the number of a list is no number of the sentence behind it.
func TestListNumber(t *testing.T) {
	for _, claim := range []string{
		"(3) The Elbe carried 450 tonnes of sand to the sea in 2019.", "3. The Elbe carried 450 tonnes of sand to the sea in 2019.",
		"- 12) The Elbe carried 450 tonnes of sand to the sea in 2019.",
	} {
		if v := claims.Check(claim, river); v.Grade != claims.Supported {
			t.Errorf("%s %s", claim, v)
		}
	}
}

// TestTogether: what one passage says in part, two may say together.
func TestTogether(t *testing.T) {
	const claim = "The reactor was shut down in March, and its operator paid a fine of 20,000 euros."
	a, b := "In March the reactor was shut down for repairs.", "The operator of the plant had to pay a fine of 20,000 euros."
	if v := claims.Check(claim, a, b); v.Grade != claims.Supported {
		t.Errorf("both: %s", v)
	}
	for _, one := range []string{a, b} {
		if v := claims.Check(claim, one); v.Grade == claims.Supported {
			t.Errorf("%q alone: %s", one, v)
		}
	}
}

func TestJoin(t *testing.T) {
	for _, tt := range []struct{ computed, model, want claims.Grade }{
		{claims.Partial, claims.Supported, claims.Supported},
		{claims.Supported, claims.Unsupported, claims.Unsupported},
		{claims.Contradicted, claims.Supported, claims.Contradicted},
		{claims.Partial, "certainly", claims.Partial},
	} {
		if got := claims.Join(claims.Verdict{Grade: tt.computed}, tt.model); got != tt.want {
			t.Errorf("%s and %s of a model: %s, want %s", tt.computed, tt.model, got, tt.want)
		}
	}
}

func TestClaims(t *testing.T) {
	for sentence, want := range map[string]bool{
		"# Rivers of Europe today": false, "What do rivers carry to the sea?": false, "As follows:": false, "[1]": false,
		"Rivers carry sand to the sea [1].": true, "In 2019 it rained.": false, "": false,
	} {
		if got := claims.Claims(sentence); got != want {
			t.Errorf("%q: %t", sentence, got)
		}
	}
}

// TestAnyTexts: whatever the texts are, there is a grade, the score is a share, and a
// sentence that claims something is supported by itself.
func TestAnyTexts(t *testing.T) {
	words := rapid.SampledFrom(strings.Fields("not no 12 1,5 REF_0badcafe [1] River rivers Carry carries sand and of . ; é 雨 never increases 50% U.S. fail"))
	rapid.Check(t, func(t *rapid.T) {
		claim := strings.Join(rapid.SliceOfN(words, 0, 12).Draw(t, "claim"), " ")
		v := claims.Check(claim, strings.Join(rapid.SliceOfN(words, 0, 30).Draw(t, "passage"), " "))
		if v.Score < 0 || v.Score > 1 || v.Grade == "" || v.Grade != claims.Supported && len(v.Reasons) == 0 && v.Score >= 1 {
			t.Fatalf("%q: %s", claim, v)
		}
	})
}

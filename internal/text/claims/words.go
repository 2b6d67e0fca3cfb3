package claims

import (
	"strings"

	"github.com/coditect/mapreduce/internal/text/prose"
)

// weak are words that say little of what a claim is about, whatever it is about.
var weak = wordSet(`can use used using uses based various several important significant significantly role known include includes including included
	provide provides provided make makes made different due new way key major main potential possible related associated involve involved involves
	effect effects result results resulted resulting lead leads leading help helps number example many much well high common system systems
	approach approaches method methods process processes specific certain type types work works take taken given become
	currently recently recent currently typical additional crucial essential ability able`)

func wordSet(list string) map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(list) {
		m[w] = true
	}
	return m
}

// synonyms are, by the stem of a word, the stems of words that mean about the same.
var synonyms = func() map[string][]string {
	m := make(map[string][]string)
	for line := range strings.SplitSeq(`increase rise grow raise boost enhance elevate improve
decrease fall drop decline reduce lower lessen diminish
begin start commence launch initiate
end finish conclude stop cease terminate
show demonstrate reveal display exhibit
kill die fatality slay
attack strike assault raid bombing
country nation state
company firm business
big large huge great major substantial considerable
small little minor tiny
quick fast rapid swift
aid help assist support assistance
important crucial essential vital significant key critical
cause trigger induce produce provoke
use utilize employ apply
obtain get acquire gain receive
buy purchase acquire
sell vend
allow permit enable let
prevent stop avoid inhibit block hinder suppress
protect guard defend shield
danger risk threat hazard
method technique approach procedure strategy
problem issue challenge difficulty
doctor physician
child kid youth
car vehicle automobile
home house residence
job work employment
choose select pick
build construct erect
destroy demolish ruin wreck
injure wound hurt harm
soldier troop force military
talk discuss speak negotiate
agree accord consent
announce declare state proclaim
help assist aid
change alter modify vary
contain include comprise hold
create make form generate produce
effective efficient
benefit advantage
drawback disadvantage limitation
quantity amount number
area region zone territory
city town
part portion component section
money fund cash finance
study research investigation investigate
test examine assess evaluate
model simulate
remove eliminate delete
combine merge integrate mix
need require demand
main primary principal chief
improve enhance ameliorate better
complex complicated intricate
accurate precise exact
cheap inexpensive affordable
expensive costly
illness disease disorder
drug medicine medication pharmaceutical
tumor cancer carcinoma
cell cellular
patient subject participant
heart cardiac
brain neural cerebral
stable steady
link connect associate relate correlate
predict forecast
detect identify discover recognize
location position place site
answer respond reply response
error mistake fault
train learn
deliver carry transport
bind attach adhere adsorb interact
reside live dwell
seize capture take
fighter militant combatant
leader chief commander head
meet gather convene`, "\n") {
		var stems []string
		for w := range strings.FieldsSeq(line) {
			stems = append(stems, prose.Stem(w))
		}
		for _, a := range stems {
			for _, b := range stems {
				if a != b {
					m[a] = append(m[a], b)
				}
			}
		}
	}
	return m
}()

// opposites are, by the stem of a word, the stems of words that mean the opposite.
var opposites = func() map[string][]string {
	m := make(map[string][]string)
	for line := range strings.SplitSeq(`increase rise grow raise boost enhance elevate / decrease fall drop decline reduce lower lessen diminish
higher high / lower low
more / less fewer
most / least
before / after
above / below
improve / worsen deteriorate impair
begin start / end stop cease
accept approve / reject refuse deny
support endorse back / oppose resist
win victory / lose defeat
allow permit / forbid prohibit ban
gain / lose loss
include / exclude
success succeed successful / failure fail unsuccessful
positive / negative
hot warm / cold cool
safe / dangerous unsafe toxic
strong / weak
fast / slow
large big / small little
longer long / shorter short
early earlier / late later
rich / poor
true / false
legal lawful / illegal unlawful
stable / unstable
open / close closed
enter arrive / leave depart
attack / defend
friend ally / enemy foe
north northern / south southern
east eastern / west western
maximum / minimum
expand / shrink contract
inhibit suppress block / promote activate stimulate induce
presence present / absence absent
majority / minority
effective / ineffective
guilty / innocent
profit / loss
upregulate / downregulate
acidic / basic alkaline
hydrophilic / hydrophobic
known / unknown
all every / none
always / never
first / last
possible / impossible
able / unable
likely / unlikely
condemn / praise
deepen strengthen reinforce / weaken undermine
deploy / withdraw
build construct / destroy demolish
release free / detain arrest
confirm / deny`, "\n") {
		left, right, _ := strings.Cut(line, " / ")
		for a := range strings.FieldsSeq(left) {
			for b := range strings.FieldsSeq(right) {
				a, b := oppositeForm(a), oppositeForm(b)
				m[a], m[b] = append(m[a], b), append(m[b], a)
			}
		}
	}
	return m
}()

// oppositeForm is how words are compared that may be opposites: comparatives as they
// stand, and others by their stems.
func oppositeForm(lower string) string {
	if prose.IsCommon(lower) {
		return lower
	}
	return prose.Stem(lower)
}

// isNegation reports whether a word, in small letters, turns what a sentence says.
func isNegation(lower string) bool {
	switch lower {
	case "not", "no", "never", "neither", "none", "cannot", "nobody", "nothing", "without", "nor", "hardly", "scarcely", "nicht", "kein", "keine", "pas", "jamais", "nunca":
		return true
	}
	return strings.HasSuffix(lower, "n't")
}

// turning are stems of words that turn what they stand beside as a negation does.
var turning = stemSet(`fail failed fails failing lack lacks lacked lacking deny denies denied refuse refused refuses reject rejected unable
	impossible absent absence false prevent prevented`)

func stemSet(list string) map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(list) {
		m[prose.Stem(w)] = true
	}
	return m
}

package ground_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coditect/mapreduce/internal/text/ground"
)

// TestVectors runs the vectors F1 to F7, F10 and F11 of docs/requirements.md.
func TestVectors(t *testing.T) {
	noise := strings.Repeat("of ", 10)
	for _, test := range []struct {
		name  string
		text  string
		quote string
		want  string
	}{
		{"F1", "a a b", "a b", "exact: a b"},
		{"F2", "a b c a b c", "a b c", "exact: a b c"},
		{"F3", "a", "a a", ""},
		{"F4 span of nine", "suppliers of of of deliver of of of equipment", "suppliers deliver equipment", "fuzzy: suppliers of of of deliver of of of equipment"},
		{"F4 span of ten", "suppliers of of of deliver of of of of equipment", "suppliers deliver equipment", ""},
		{"F5 three of four", "big green parrots", "big green of parrots", "fuzzy: big green parrots"},
		{"F5 two of three", "parliamentary elections", "parliamentary the elections", ""},
		{"F6", "the " + noise + "beta gamma delta", "the beta gamma delta", "fuzzy: beta gamma delta"},
		{"F7 plural in the quote", "they saw one big parrot there", "saw one big parrots", "fuzzy: saw one big parrot"},
		{"F7 plural in the text", "they saw big cities there", "they saw big city", "fuzzy: they saw big cities"},
		{"F10", "The Supplier shall deliver the goods to the buyer within ten days.", "The buyer was convicted of fraud in 1999 and paid a penalty of nine million dollars", ""},
		{"F10 characters", "每份合同一式两份,双方各执一份", "每份报告必须由董事会批准并且在三十天之内提交给监管机构以及所有股东", ""},
		{"F11", "the Supplier shall deliver", "the SUPPLIER shall deliver", "normalised: the Supplier shall deliver"},
	} {
		t.Run(test.name, func(t *testing.T) {
			span, _ := ground.New(test.text).Find(test.quote, -1)
			if got := found(test.text, span); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestVectorF1Offsets(t *testing.T) {
	got, _ := ground.New("a a b").Find("a b", -1)
	want := ground.Span{Start: 2, End: 5, ByteStart: 2, ByteEnd: 5}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(ground.Span{}, "Grade", "Coverage", "Density", "Places")); diff != "" {
		t.Errorf("span (-want +got):\n%s", diff)
	}
}

func TestVectorF8(t *testing.T) {
	const text = "suppliers deliver equipments..."
	got, ok := ground.New(text).Find("suppliers deliver equipment", -1)
	if !ok || got.Start != 0 || got.End != 28 {
		t.Fatalf("span %+v", got)
	}
	if got = got.Shift(10, 100); got.Start != 10 || got.End != 38 || got.ByteStart != 100 || got.ByteEnd != 128 {
		t.Errorf("shifted span %+v", got)
	}
}

func TestVectorF9(t *testing.T) {
	for name, c := range map[string]ground.Config{
		"coverage above 1": {Coverage: 1.1}, "coverage below 0": {Coverage: -0.1},
		"density above 1": {Density: 1.1}, "density below 0": {Density: -0.1},
		"length": {MinWords: -1},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := c.New("text"); err == nil {
				t.Error("no error")
			}
			c.Off = true
			text, err := c.New("they saw one big parrot there")
			if err != nil {
				t.Fatalf("with the grade off: %v", err)
			}
			if s, ok := text.Find("they saw one big parrots", -1); ok {
				t.Errorf("found %+v though the grade is off", s)
			}
		})
	}
}

func TestGates(t *testing.T) {
	const text, quote = "they saw of the big green parrot", "they saw big green parrot"
	for _, test := range []struct {
		name   string
		config ground.Config
		want   bool
	}{
		{"defaults", ground.Config{}, true},
		{"density", ground.Config{Density: 0.8}, false},
		{"density reached", ground.Config{Density: 5.0 / 7}, true},
		{"length", ground.Config{MinWords: 6, MinCharacters: 22}, false},
		{"enough characters", ground.Config{MinWords: 6, MinCharacters: 21}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, err := test.config.New(text)
			if err != nil {
				t.Fatal(err)
			}
			if s, _ := g.Find(quote, -1); s.Verified() != test.want {
				t.Errorf("verified is %v, want %v", s.Verified(), test.want)
			}
		})
	}
}

// TestScores tells coverage and density.
func TestScores(t *testing.T) {
	got, _ := ground.New("they saw the big parrots of Ghana there").Find("saw a big parrot Ghana there", -1)
	want := ground.Span{Start: 5, End: 39, ByteStart: 5, ByteEnd: 39, Grade: ground.Fuzzy, Coverage: 5.0 / 6, Density: 5.0 / 7, Places: 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("span (-want +got):\n%s", diff)
	}
}

// TestSaysTheSame holds quotes that do not change what the text says.
func TestSaysTheSame(t *testing.T) {
	for _, test := range []struct{ name, text, quote, want string }{
		{"article left out", "The court fined the firm heavily.", "court fined firm heavily", "court fined the firm heavily"},
		{"article put in", "The court fined firm X heavily.", "the court fined the firm X heavily", "The court fined firm X heavily"},
		{"another article", "They hired a lawyer in Paris.", "they hired the lawyer in Paris", "They hired a lawyer in Paris"},
		{"plain word left out", "The firm made extraordinary progress in Iraq.", "the firm made progress in Iraq", "The firm made extraordinary progress in Iraq"},
		{"link beside a number", "They hit vehicles and two trucks in June", "they hit vehicles two trucks in June", "They hit vehicles and two trucks in June"},
		{"behind another sentence's negation", "He did not stop. The firm made extraordinary progress.", "the firm made progress", "The firm made extraordinary progress"},
		{"before another part's negation", "The firm made extraordinary progress; others did not.", "the firm made progress", "The firm made extraordinary progress"},
		{"punctuation", "In Syria, however, it (the army) won.", "in Syria however it the army won", "In Syria, however, it (the army) won"},
		{"markup", "the total amount is due now", "the **total amount** is due now", "the total amount is due now"},
		{"possessive", "Iraq's army won the battle", "Iraq army won the battle", "Iraq's army won the battle"},
		{"plural of a name that is a word", "Security Forces won. Other forces fled to the hills.", "the Security Force won", "Security Forces won"},
		{"plural in ies", "Two countries signed the treaty then", "two country signed the treaty", "Two countries signed the treaty"},
		{"men", "three policemen stood at the gate", "three policeman stood at the gate", "three policemen stood at the gate"},
		{"between line-end hyphens", "The well-\nknown firm made great progress.", "well-known firm made the great progress", "well-\nknown firm made great progress"},
		{"characters", "公司必须在三十天之内提交报告。", "公司必须在三十天之内,提交报告", "公司必须在三十天之内提交报告"},
		{"particle", "公司的报告必须在三十天内提交", "公司报告必须在三十天内提交", "公司的报告必须在三十天内提交"},
		{"ellipsis", "The firm, which is old, paid a large fine.", "The firm … paid a large fine", "The firm, which is old, paid a large fine"},
		{"ellipsis in brackets", "The firm, which is old, paid a large fine.", "the firm, [...] a large fine", "The firm, which is old, paid a large fine"},
		{"three parts", "The firm, which is old, paid a large fine to us in June.", "The firm (...) paid a ... in June", "The firm, which is old, paid a large fine to us in June"},
		{"ellipsis at the ends", "The firm paid a large fine.", "...firm paid a large...", "firm paid a large"},
		{"nearest parts", "The firm paid. The firm then paid a fine.", "The firm ... paid a fine", "The firm then paid a fine"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, _ := ground.New(test.text).Find(test.quote, -1)
			if got := found(test.text, s); got != "fuzzy: "+test.want || !s.Verified() {
				t.Errorf("got %q (cut %v), want %q", got, s.Cut, test.want)
			}
		})
	}
}

// TestSaysAnother holds quotes that say what the text does not, though they
// share nearly all words with it.
func TestSaysAnother(t *testing.T) {
	for _, test := range []struct{ name, text, quote string }{
		{"negation left out", "The firm did not pay the fine in June.", "The firm did pay the fine in June"},
		{"negation put in", "The firm did pay the fine in June.", "The firm did not pay the fine in June"},
		{"short negation", "The firm didn’t pay the fine in June.", "The firm did pay the fine in June"},
		{"short negation at the end", "In June the firm said that it can't.", "In June the firm said that it can"},
		{"without", "They left without paying the fine in June.", "They left paying the fine in June"},
		{"unable", "It was unable to pay the fine.", "able to pay the fine"},
		{"illegal", "The sale was illegal in all parts", "legal in all parts"},
		{"non-", "a record of non-compliance with the rules", "compliance with the rules"},
		{"parted un-", "it was un-\nable to pay the fine", "able to pay the fine"},
		{"digit", "The firm paid 1,500 dollars in June.", "The firm paid 1,600 dollars in June"},
		{"first digit cut off", "The firm paid 15 million dollars in June.", "5 million dollars in June"},
		{"decimals cut off", "The rate went up to 1.5", "The rate went up to 1"},
		{"decimal point", "The firm paid 1.5 million dollars in June.", "5 million dollars in June"},
		{"decimal point first", "an area of .5 million square miles", "5 million square miles"},
		{"power", "an area of 10² square miles", "an area of 102 square miles"},
		{"power cut off", "the fourth power of ten is 10⁴", "the fourth power of ten is 10"},
		{"fraction", "it took 1½ hours to finish", "it took 11⁄2 hours to finish"},
		{"sign", "It was -5 degrees that day", "5 degrees that day"},
		{"sign left out", "It was about -5 degrees that day", "It was about 5 degrees that day"},
		{"minus", "It was −5 degrees that day", "5 degrees that day"},
		{"range", "It took 3-5 days to finish", "It took 3 5 days to finish"},
		{"ratio", "They won it by 3:5 in Rome", "They won it by 3.5 in Rome"},
		{"per cent", "Prices rose by 5% in June", "Prices rose by 5 in June"},
		{"currency", "The firm paid $5 in June", "The firm paid €5 in June"},
		{"unit", "The firm paid 5 million dollars in June", "The firm paid 5 billion dollars in June"},
		{"unit left out", "The firm paid 5 million dollars in June", "The firm paid 5 dollars in June"},
		{"measure left out", "an area of 5 square miles in Iraq", "an area of 5 miles in Iraq"},
		{"number of some", "five of ten firms paid the fine", "five firms paid the fine"},
		{"number left out", "The firm paid 3 of the 4 fines in June", "The firm paid the 4 fines in June"},
		{"greater", "patients of age > 65 were excluded", "patients of age < 65 were excluded"},
		{"name", "The firm paid Alice in June", "The firm paid Bob in June"},
		{"name left out", "Alice said Bob stole the money", "Alice said stole the money"},
		{"part of a name", "He went to New York in June", "He went to York in June of"},
		{"initial", "They elected George W Bush in November", "They elected George Bush in November"},
		{"name that looks like a plural", "They paid John Roberts in June", "They paid John Robert in June"},
		{"name with another ending", "They paid John Adam in June", "They paid John Adams in June"},
		{"numeral", "It began after World War I in Rome", "It began after World War II in Rome"},
		{"letter", "It is shown in Section A of it", "It is shown in Section B of it"},
		{"letter that is an article", "the effects of Vitamin A on them", "the effects of Vitamin on them"},
		{"subject and object", "The dog bit the man in June", "The man bit the dog in June"},
		{"hedge", "The alleged thief fled in June", "The thief fled in June"},
		{"hedge behind another article", "An alleged thief fled in June", "The thief fled in June"},
		{"negation at the end", "In June they found no evidence of", "In June they found the"},
		{"condition", "They agreed to pay if asked in June", "They agreed to pay asked in June"},
		{"former", "The former president was fined in June", "The president was fined in June"},
		{"nearly", "The man nearly died in Rome", "The man died in Rome"},
		{"attempted", "He was tried for attempted murder in Rome", "He was tried for murder in Rome"},
		{"link between numbers", "It has one and a half dozen cars here", "It has one a half dozen cars here"},
		{"behind no", "There is no credible evidence of fraud in June", "There is no evidence of fraud in June"},
		{"behind no, an abbreviation and a name", "No U.S. military forces came in June", "No U.S. forces came in June"},
		{"behind not", "They did not pay the full fine in June", "They did not pay the fine in June"},
		{"before not", "The full fine was not paid in June", "The fine was not paid in June"},
		{"behind never", "He has never fully paid it in Rome", "He has never paid it in Rome"},
		{"behind without", "They left without due process in June", "They left without process in June"},
		{"behind all", "All the foreign fighters fled in June", "All the fighters fled in June"},
		{"behind all of", "In June all of the foreign fighters fled", "In June all of the fighters fled"},
		{"behind only", "Only firms that paid large fines left Rome", "Only firms that paid fines left Rome"},
		{"behind if", "They pay if great harm is done", "They pay if harm is done"},
		{"behind few", "Few of the old firms paid in June", "Few of the firms paid in June"},
		{"behind most", "Most of the old firms paid in June", "Most of the firms paid in June"},
		{"passive", "The firm was paid in Rome in June", "The firm paid in Rome in June"},
		{"aim", "They shot at the man in Rome", "They shot the man in Rome"},
		{"search", "They searched for the man in Rome", "They searched the man in Rome"},
		{"currency behind a name", "They gave 5 billion US dollars in aid", "They gave 5 billion US in aid"},
		{"measure behind another word", "They sold 5 metric tons of it here", "They sold 5 metric of it here"},
		{"noun of a number", "Some 60 nations paid it in June", "Some 60 paid it in June"},
		{"up to", "They paid up to 60 firms in June", "They paid to 60 firms in June"},
		{"up to, both", "They paid up to 60 firms in June", "They paid 60 firms in June"},
		{"number of a compound", "The 60-plus nation group met in June", "The nation group met in June"},
		{"roughly", "They paid roughly 60 firms in June", "They paid 60 firms in June"},
		{"potential", "It is a potential breach of the law", "It is a breach of the law"},
		{"hope", "They hoped to win the war in June", "They to win the war in June"},
		{"counterfeit", "They paid in counterfeit money in June", "They paid in money in June"},
		{"opposite", "The price of oil increased in June", "The price of oil decreased in June"},
		{"from and to", "He sent it from Rome in June", "He sent it to Rome in June"},
		{"by", "He was killed by police in Rome", "He was killed police in Rome"},
		{"and and or", "the buyer and seller pay the tax", "the buyer or seller pay the tax"},
		{"tense", "The firm will pay the fine in June", "The firm did pay the fine in June"},
		{"first half of a compound", "The counter-terrorism police came to Rome", "The terrorism police came Rome"},
		{"middle left out", "The firm made a profit while its rival was fined heavily", "The firm was fined heavily"},
		{"words left out all over", "big old green birds often quickly eat very ripe red fruit", "big green birds quickly eat ripe fruit"},
		{"only the beginning", "The firm paid the fine in June", "The firm paid the fine because it had been caught"},
		{"only the end", "The firm paid the fine in June", "A rival of the firm paid the fine in June"},
		{"shuffled", "The firm paid the fine in June", "in June the fine paid The firm"},
		{"too short", "he saw it", "he saw its"},
		{"characters negated", "公司不必在三十天之内提交报告", "公司必在三十天之内提交报告"},
		{"characters with a number", "公司必须在三十天之内提交报告", "公司必须在四十天之内提交报告"},
		{"characters left out", "公司必须在三十天之内提交报告", "公司必须在之内提交报告"},
		{"ellipsis over a negation", "The firm was certainly not convicted of fraud.", "The firm was ... convicted of fraud"},
		{"ellipsis in the wrong order", "The firm, which is old, paid a large fine.", "paid a large fine ... the firm"},
		{"ellipsis around one word", "The firm, which is old, paid a large fine.", "The firm ... fine"},
		{"ellipsis too far", "The firm is old. " + strings.Repeat("It is so. ", 150) + "They paid a fine.", "The firm is ... paid a fine"},
		{"ellipsis with an invention", "The firm, which is old, paid a large fine.", "The firm ... paid a small fine"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, _ := ground.New(test.text).Find(test.quote, -1)
			if s.Verified() {
				t.Errorf("%q was verified as %q", test.quote, found(test.text, s))
			}
			if s = ground.New(test.text).FindAll([]string{test.quote})[0]; s.Verified() {
				t.Errorf("FindAll verified %q as %q", test.quote, found(test.text, s))
			}
		})
	}
}

// TestCut finds what cuts words only where nothing else is, and says so.
func TestCut(t *testing.T) {
	for _, test := range []struct {
		name, text, quote string
		near              int
		want              string
		cut               bool
	}{
		{"in a word", "the campaign to", "the camp", -1, "exact: the camp", true},
		{"two words", "fight against ISIL", "st ISIL", -1, "exact: st ISIL", true},
		{"three words", "fight against ISIL in Iraq", "st ISIL in", -1, "exact: st ISIL in", true},
		{"in a number", "it is 1999", "99", -1, "exact: 99", true},
		{"in another case", "fight AGAINST ISIL", "st isil", -1, "normalised: ST ISIL", true},
		{"a word elsewhere in another case", "unable or Able", "able", -1, "normalised: Able", false},
		{"named", "it is 1999", "99", 8, "exact: 99", false},
		{"letter and digit", "RM9.00 paid", "9.00", -1, "exact: 9.00", false},
		{"possessive", "in Iraq's army", "Iraq", -1, "exact: Iraq", false},
		{"behind a hyphen", "counter-Daesh coalition", "Daesh", -1, "exact: Daesh", false},
		{"a mark", "e\u0301", "e", -1, "exact: e", true},
		{"list", "- 5 apples", "5 apples", -1, "exact: 5 apples", false},
		{"end of a sentence", "It cost 5. Then", "5", -1, "exact: 5", false},
		{"half of a parted word", "an exam-\nple of it", "an exam", -1, "exact: an exam", true},
		{"half at a soft hyphen", "an exam\u00adple of it", "ple of it", -1, "exact: ple of it", true},
		{"non", "a non-event", "event", -1, "exact: event", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, _ := ground.New(test.text).Find(test.quote, test.near)
			if got := found(test.text, s); got != test.want || s.Cut != test.cut {
				t.Errorf("got %q, cut %v; want %q, %v", got, s.Cut, test.want, test.cut)
			}
		})
	}
}

func TestPlaces(t *testing.T) {
	for _, test := range []struct {
		name, text, quote string
		want              int
	}{
		{"one", "a b c", "b", 1},
		{"two", "a b c b", "b", 2},
		{"not parts of words", "cat catalogue", "cat", 1},
		{"normalised", "One two ONE", "one", 2},
		{"many", strings.Repeat("a b ", 5000), "a", 1000},
		{"fuzzy", "they saw a big bird. They saw a big bird.", "they saw the big birds", 2},
		{"absent", "a b", "c", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := ground.New(test.text)
			s, _ := g.Find(test.quote, -1)
			if all := g.FindAll([]string{test.quote})[0]; s.Places != test.want || all.Places != test.want {
				t.Errorf("Find counts %d, FindAll %d; want %d", s.Places, all.Places, test.want)
			}
		})
	}
}

func TestFindAllFuzzy(t *testing.T) {
	const text = "They saw a big bird in June. They saw a big bird in May. Then it flew away."
	got := ground.New(text).FindAll([]string{"they saw the big birds", "they saw the big birds", "Then it flew"})
	for i, want := range []int{0, 29, 57} {
		if got[i].ByteStart != want || !got[i].Found() {
			t.Errorf("quote %d is at %d, want %d", i, got[i].ByteStart, want)
		}
	}
}

package passage_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/worker/tool/search/passage"
)

func TestCut(t *testing.T) {
	long := strings.Repeat("word ", 30) + "end"
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"sentences", "Rain fell today. It was cold. The heron stood still.", []string{"Rain fell today. It was cold.", "The heron stood still."}},
		{"paragraphs", "Rain fell on us all day.\n\nIt was.", []string{"Rain fell on us all day.", "It was."}},
		{"short paragraphs", "Rain.\n\nIt was.", []string{"Rain.\n\nIt was."}},
		{"a long sentence", long, []string{"word word word word word word", "word word word word word word", "word word word word word word", "word word word word word word", "word word word word word word", "end"}},
		{"no space at all", strings.Repeat("x", 70), []string{strings.Repeat("x", 30), strings.Repeat("x", 30), strings.Repeat("x", 10)}},
		{"scripts without spaces are denser", "東京都は日本の首都であり世界最大の都市です", []string{"東京都は日本の首都で", "あり世界最大の都市で", "す"}},
		{"nothing said", "---\n\n***\n\n…", nil},
		{"empty", "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, s := range passage.Cut(tt.text, 30) {
				got = append(got, s.In(tt.text))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestNothingIsLost: passages are in order, overlap nowhere, are not longer than asked for, and
// what is between them says nothing.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("abcZ. !?\n-#[]1\"”’。é東京ーก\u0301\U0001F600"))).Draw(t, "text")
		length := rapid.IntRange(4, 40).Draw(t, "length")
		at := 0
		for _, s := range passage.Cut(text, length) {
			between, quote := text[at:s.Start], s.In(text)
			if s.Start < at || strings.ContainsFunc(between, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
				t.Fatalf("between passages, before [%d,%d): %q", s.Start, s.End, between)
			}
			if !utf8.ValidString(quote) || quote != strings.TrimSpace(quote) || quote == "" {
				t.Fatalf("the passage %q", quote)
			}
			at = s.End
		}
		if strings.ContainsFunc(text[at:], func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			t.Fatalf("behind the last: %q", text[at:])
		}
	})
}

// TestHugeTexts: hostile texts are cut in a time that grows with their length, as do their
// terms.
func TestHugeTexts(t *testing.T) {
	for name, text := range map[string]string{
		"dots":           strings.Repeat(".", 4<<20) + "x",
		"dots and words": strings.Repeat("a.", 1<<17),
		"marks":          strings.Repeat("e\u0301\u0301", 1<<16),
		"no space":       strings.Repeat("x", 4<<20),
		"lines":          strings.Repeat("\n", 4<<20) + "x",
		"references":     strings.Repeat("x.[1]", 1<<16),
	} {
		t.Run(name, func(t *testing.T) {
			for _, s := range passage.Cut(text, passage.DefaultLength) {
				passage.TermsOf(s.In(text))
			}
			if got := passage.QueryOf(text).Words; len(got) > 1<<19 {
				t.Errorf("%d words", len(got))
			}
		})
	}
}

func TestTerms(t *testing.T) {
	for _, tt := range []struct {
		text string
		want string
	}{
		{"The herons stood in rivers, and they were standing.", "ethe eheron estood ein eriver eand ethey ewere estand"},
		{"Company's don't Smith’s O'Brien", "ecompani edon esmith eo ebrien"},
		{"ÜBER Straße Café ﬁne Ⅷ", "xuber xstrasse xcafe xfine xviii"},
		{"Die Häuser der Stadt und das Rathaus sind nicht running", "xdie xhauser xder xstadt xund xdas xrathaus xsind xnicht xrunning"},
		{"12,500.75 CVE-2024-1 snake_case x2", "x12 x500 x75 ecve x2024 x1 esnake ecase xx2"},
		{"東京都 茶 カード", "x東京 x京都 x茶 xカー xード"},
		{"서울에서 я Ёлка и май ΑΘΉΝΑΣ", "x서울 x울에 x에서 xя xёлка xи xмай xαθηνασ"},
		{"", ""},
	} {
		if got := strings.Join(passage.TermsOf(tt.text).Words, " "); got != tt.want {
			t.Errorf("%q has the terms %q, want %q", tt.text, got, tt.want)
		}
	}
}

// ranked returns the numbers of the passages that a question finds among some, best first.
func ranked(question string, texts ...string) []int {
	var s passage.Scan
	for _, text := range texts {
		s.Add(passage.TermsOf(text))
	}
	var got []int
	for _, r := range s.Search(passage.QueryOf(question), 10) {
		got = append(got, r.Number)
	}
	return got
}

// TestLanguages: words of English are found in other forms, words of other languages are not
// taken for forms of each other, and scripts without spaces are searched by parts of words.
func TestLanguages(t *testing.T) {
	for _, tt := range []struct {
		name, question string
		texts          []string
		want           []int
	}{
		{"English forms", "who regulates a banking company", []string{"The regulation of banks and of companies.", "Nothing."}, []int{0}},
		{"a question of small words alone", "who is it", []string{"It is who we are.", "Nothing."}, []int{0}},
		{
			"German words that English rules would make one", "Organe", // organ: both organ and organe have the English stem "organ"
			[]string{"Das Organ ist nicht mit den Nerven verbunden.", "Die Organe sind nicht mit den Nerven verbunden."},
			[]int{1},
		},
		{
			"Spanish", "casas",
			[]string{"Las casas de la ciudad son blancas y muy altas.", "Una casada de la ciudad y su casa en las montañas."},
			[]int{0},
		},
		{"French with marks left out", "eleve francais", []string{"Les élèves et l'élève français sont dans la rue.", "Le chat est dans la rue avec une élite."}, []int{0}},
		{"English words in a German text", "meeting", []string{"Das Meeting ist nicht mit dem Chef und der Firma.", "Die Sitzung ist nicht mit dem Chef."}, []int{0}},
		{"Chinese", "北京大学", []string{"他在北京大学学习。", "他在南京学习。", "大学生在北京。"}, []int{0, 2}},
		{"one character", "茶", []string{"我喜欢喝茶。", "我喜欢咖啡。"}, []int{0}},
		{"Japanese in half width", "ｶｰﾄﾞ", []string{"クレジットカードで払う。", "現金で払う。"}, []int{0}},
		{"Korean with what is joined to a word", "서울", []string{"서울에서 만났다.", "부산에서 만났다."}, []int{0}},
		{"Thai", "ภาษาไทย", []string{"ฉันพูดภาษาไทยได้", "abc"}, []int{0}},
		{"Arabic with and without vowels", "كتاب", []string{"قرأت كِتَابٌ جديد", "ذهبت"}, []int{0}},
		{"Russian letters keep their marks", "май", []string{"В мае и май", "маи"}, []int{0}},
		{"capitals", "HERON", []string{"a heron", "an egret"}, []int{0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, ranked(tt.question, tt.texts...)); diff != "" {
				t.Errorf("passages (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBM25 checks scores that were computed by hand from the published formula.
func TestBM25(t *testing.T) {
	var s passage.Scan
	for _, text := range []string{"heron", "heron heron river", "river", "lake water"} {
		s.Add(passage.TermsOf(text))
	}
	// Four passages of 7 words: the mean length is 1.75, and a word that is in two of them
	// has the weight ln(1 + 2.5/2.5).
	want := []passage.Ranked{{Number: 1, Score: 0.6931471805599453 * 2 * 2.2 / (2 + 1.2*(0.25+0.75*3/1.75))}, {Number: 0, Score: 0.6931471805599453 * 2.2 / (1 + 1.2*(0.25+0.75/1.75))}}
	got := s.Search(passage.QueryOf("herons"), 10)
	slices.SortFunc(want, func(a, b passage.Ranked) int {
		if a.Score > b.Score {
			return -1
		}
		return 1
	})
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return a-b < 1e-12 && b-a < 1e-12 })); diff != "" {
		t.Error(diff)
	}
}

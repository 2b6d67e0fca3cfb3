package answer

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// A Candidate is a JSON value that a text holds.
type Candidate struct {
	Value      any
	Repairs    []Repair
	Unfinished bool // the text ends, or leaves something out, where more was to come
	size       int  // of the text that it was read from, in bytes
}

// Bounds of the work on one text.
const (
	maxCandidates = 64
	stepsPerByte  = 24
	leastSteps    = 10_000
)

// Find returns the JSON values that the text of an answer holds, in order. Thinking is left
// out: what a model considered is not what it answered.
func Find(text string) []Candidate {
	text = strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' || r == '\u200b' })

	rest, thought := cutThinking(text)
	f := &finder{text: rest, steps: leastSteps + stepsPerByte*len(rest)}
	if thought {
		f.common = append(f.common, Repair{Kind: Thinking})
	}

	// A whole answer may be a JSON text that itself holds JSON.
	var inner string
	if quoted := trimFence(rest); strings.HasPrefix(quoted, `"`) && json.Unmarshal([]byte(quoted), &inner) == nil {
		f.text = inner
		f.common = append(f.common, Repair{Kind: Text})
	}

	f.scan()
	if len(f.found) == 0 {
		f.openObject()
	}

	if len(f.found) > 1 {
		for i := range f.found {
			f.found[i].Repairs = append(f.found[i].Repairs, Repair{Kind: Several})
		}
	}
	return f.found
}

// trimFence returns a text without the marks of a code block around it.
func trimFence(text string) string {
	inner, ok := strings.CutPrefix(text, "```")
	body, closed := strings.CutSuffix(inner, "```")
	if !ok || !closed {
		return text
	}
	_, body, _ = strings.Cut(body, "\n")
	return strings.TrimSpace(body)
}

// Plain returns the text of an answer without thinking and the marks of a code block, for one
// that is to be a text or a word, and not an object.
func Plain(text string) Candidate {
	rest, thought := cutThinking(strings.TrimSpace(text))
	var repairs []Repair
	if thought {
		repairs = append(repairs, Repair{Kind: Thinking})
	}
	if body := trimFence(rest); body != rest {
		rest, repairs = body, append(repairs, Repair{Kind: Fence})
	}
	return Candidate{Value: rest, Repairs: append(repairs, Repair{Kind: Quotes}), size: len(rest)}
}

// A finder goes through a text.
type finder struct {
	text   string
	steps  int
	common []Repair // of all candidates
	found  []Candidate
}

// scan tries each opening bracket that stands in no value found before.
func (f *finder) scan() {
	for i := 0; i < len(f.text) && len(f.found) < maxCandidates && f.steps > 0; {
		next := strings.IndexAny(f.text[i:], "{[")
		if next < 0 {
			return
		}
		i += next
		if !looksLikeJSON(f.text[i:]) {
			i++
			continue
		}
		end, ok := f.try(i)
		if !ok {
			i++
			continue
		}
		i = end
	}
}

// try reads a value at i. It returns where that ends.
func (f *finder) try(i int) (end int, ok bool) {
	p := &parser{text: f.text, at: i, steps: f.steps}
	v, err := p.parseValue(0, false)
	f.steps = p.steps
	if _, cut := v.(nothing); err != nil || cut {
		return 0, false
	}

	c := Candidate{Value: v, Repairs: slices.Concat(f.common, p.repairs), Unfinished: p.unfinished, size: p.at - i}
	before, after := strings.TrimSpace(f.text[:i]), strings.TrimSpace(f.text[p.at:])
	// A word behind the marks of a code block names its language.
	if strings.HasSuffix(strings.TrimRightFunc(before, unicode.IsLetter), "```") {
		c.Repairs = append(c.Repairs, Repair{Kind: Fence})
		before = strings.TrimSuffix(strings.TrimRightFunc(before, unicode.IsLetter), "```")
		after = strings.TrimPrefix(after, "```")
	}

	if before != "" || after != "" {
		c.Repairs = append(c.Repairs, Repair{Kind: Prose})
	}

	f.found = append(f.found, c)
	return p.at, true
}

// bareKey is how an object begins without its bracket.
var bareKey = regexp.MustCompile("^(?:```[a-z]*\\s*)?([\"'“]?[A-Za-z_][A-Za-z0-9_ .-]{0,60}[\"'”]?\\s*:\\s*[\"'“\\[{0-9tfn-])")

// openObject reads an object that lacks its opening bracket, as where a server wrote that on
// behalf of the model.
func (f *finder) openObject() {
	at := bareKey.FindStringSubmatchIndex(f.text)
	if at == nil {
		return
	}

	// What is left has to end as an object does, or a colon in prose would be taken for a
	// key.
	text := "{" + f.text[at[2]:]
	if !strings.HasSuffix(strings.TrimSpace(strings.TrimSuffix(text, "```")), "}") {
		return
	}

	inner := &finder{text: text, steps: f.steps, common: append(f.common, Repair{Kind: Bracket})}
	inner.scan()
	f.found = inner.found
}

// looksLikeJSON reports whether a text begins as an object or a list of JSON does, and not as
// brackets in prose.
func looksLikeJSON(text string) bool {
	rest := strings.TrimLeftFunc(text[1:], unicode.IsSpace)
	rest = rest[:min(len(rest), maxKey)]

	switch {
	case rest == "":
		return false
	case rest[0] == '/' || rest[0] == '#':
		return true // a comment
	case text[0] == '[':
		return strings.ContainsRune("{[]\"'-0123456789“", rune(rest[0])) || strings.HasPrefix(rest, "“") ||
			strings.HasPrefix(rest, "true") || strings.HasPrefix(rest, "false") || strings.HasPrefix(rest, "null")
	case rest[0] == '}', rest[0] == ',':
		return true
	}
	return beginsElement(rest, true)
}

// thinkingTags are the marks between which models think, with the ones that close them.
var thinkingTags = [][2]string{
	{"<think>", "</think>"},
	{"<thinking>", "</thinking>"},
	{"<thought>", "</thought>"},
	{"<reasoning>", "</reasoning>"},
	{"<reflection>", "</reflection>"},
	{"<scratchpad>", "</scratchpad>"},
	{"<seed:think>", "</seed:think>"},
	{"[THINK]", "[/THINK]"},
	{"◁think▷", "◁/think▷"},
	{"<|begin_of_thought|>", "<|end_of_thought|>"},
	{"<|START_THINKING|>", "<|END_THINKING|>"},
	{"<|channel|>analysis<|message|>", "<|end|>"},
}

// cutThinking returns a text without what stands between the marks of thinking. Thinking that
// begins without a mark ends with one; thinking that does not end hides all behind it.
func cutThinking(text string) (rest string, thought bool) {
	rest = text
	for _, tag := range thinkingTags {
		for strings.HasPrefix(rest, tag[0]) || strings.HasPrefix(strings.ToLower(rest[:min(len(rest), len(tag[0]))]), tag[0]) {
			_, after, ended := strings.Cut(rest[len(tag[0]):], tag[1])
			if !ended {
				return "", true
			}
			rest, thought = strings.TrimSpace(after), true
		}

		// Some templates write the first mark into the prompt, so that the answer lacks it.
		before, after, ended := strings.Cut(rest, tag[1])
		if ended && !strings.Contains(before, tag[0]) && !opensJSON(before) {
			rest, thought = strings.TrimSpace(after), true
		}

		// Thinking may come behind a few words.
		for {
			before, inner, begins := strings.Cut(rest, tag[0])
			if !begins || opensJSON(before) {
				break
			}
			_, after, ended := strings.Cut(inner, tag[1])
			if !ended {
				return before, true
			}
			rest, thought = before+after, true
		}
	}
	return rest, thought
}

// opensJSON reports whether a text begins as JSON, so that marks behind it are a part of that.
func opensJSON(text string) bool {
	text = strings.TrimLeftFunc(text, unicode.IsSpace)
	return text != "" && (text[0] == '{' || text[0] == '[') && looksLikeJSON(text) || strings.HasPrefix(text, "```")
}

// Worthy returns the candidates that can be the answer: what is much shorter than the longest is
// something that is mentioned beside it.
func Worthy(found []Candidate) []Candidate {
	longest := 0
	for _, c := range found {
		longest = max(longest, c.size)
	}
	return slices.DeleteFunc(slices.Clone(found), func(c Candidate) bool { return 4*c.size < longest })
}

// Lines returns objects that follow each other as a list of them.
func Lines(found []Candidate) (Candidate, bool) {
	if len(found) < 2 {
		return Candidate{}, false
	}

	list := make([]any, 0, len(found))
	all := Candidate{Repairs: found[0].Repairs}
	for _, c := range found {
		if _, ok := c.Value.(Object); !ok {
			return Candidate{}, false
		}
		list = append(list, c.Value)
		all.Unfinished = all.Unfinished || c.Unfinished
	}

	all.Value = list
	return all, true
}

// IsWrapped reports whether an answer was taken for an element of what was asked for.
func IsWrapped(repairs []Repair) bool { return slices.Contains(repairs, Repair{Kind: Envelope}) }

package find

import (
	"strings"

	"github.com/coditect/mapreduce/internal/text/rules/field"
	"github.com/coditect/mapreduce/internal/text/rules/form"
	"github.com/coditect/mapreduce/internal/text/rules/page"
	"github.com/coditect/mapreduce/internal/text/rules/phrase"
)

// cutIdentifier returns the part of v that is the number of a thing, if v is that of a field
// of such numbers: what follows behind a comma, or as words in small letters with a date, is
// none of it.
func (s *scope) cutIdentifier(v form.Span) form.Span {
	if !s.Identifier {
		return v
	}
	text := v.Of(s.Text)
	code := field.CodeOf(text)
	rest := strings.TrimLeft(text[len(code):], " \t")
	if code == "" || rest == "" || !field.IsRemark(rest) {
		return v
	}
	return form.NewSpan(v.Start, v.Start+len(code))
}

// isNoCode reports whether v cannot be the number of a thing that is looked for: no colon
// stands between its label and it, and it does not begin with such a number.
func (s *scope) isNoCode(m phrase.Mark, v form.Span) bool {
	if !s.Identifier || field.CodeOf(v.Of(s.Text)) != "" {
		return false
	}
	between := s.Text[m.End:max(m.End, v.Start)]
	return !strings.ContainsAny(between, ":=") && !strings.Contains(between, page.WideColon)
}

// Package sight says what vendors take of pictures: how many in a request, how large each may be, how
// much of it a model sees, and how many tokens it counts as. The rules are the vendors' own, as they
// publish them; where a model has none that is known, the dearest of those of its like counts.
//
// It holds these promises: Tokens is no fewer than a model counts of a picture of that size; Fit
// returns a size of about the same shape that a model sees as it is, and that no vendor refuses; Check
// refuses whatever a vendor would. It is pure, and imports of the project the port to models alone.
package sight

import (
	"math"
	"regexp"
	"strings"

	"github.com/coditect/mapreduce/worker/llm"
)

// A Rule is what a vendor takes of pictures.
type Rule struct {
	Vendor string
	Most   int   // pictures of a request
	Bytes  int64 // of one picture as a request holds it, in Base64
	Total  int64 // of all of them
	Edge   int   // pixels of the longer side that a model sees; vendors shrink what is larger

	seen  func(width, height int) bool  // whether a model sees all pixels of such a picture
	count func(width, height int) int64 // the tokens of it
}

const mebi = 1 << 20

// Rules by vendor. The limits are those of platform.claude.com/docs/en/build-with-claude/vision (5 MB
// and 100 pictures; with more than 20 none may have more than 2,000 pixels, which Edge keeps to),
// docs.aws.amazon.com/bedrock/latest/userguide/conversation-inference-call.html (20 pictures of
// 3.75 MB), developers.openai.com/api/docs/guides/images-vision, ai.google.dev/gemini-api/docs/image-understanding
// (20 MB a request). Other servers publish none.
func ruleOf(provider string) Rule {
	switch provider {
	case "anthropic", "vertex-claude":
		return Rule{Most: 100, Bytes: 5 * mebi, Total: 24 * mebi, Edge: 1568, seen: upTo(claudePatch, claudeSees), count: claudeTokens}
	case "bedrock":
		return Rule{Most: 20, Bytes: 15 * mebi / 4, Total: 16 * mebi, Edge: 1568, seen: upTo(claudePatch, claudeSees), count: dearestRule(claudeTokens, unknown)}
	case "openai", "azure":
		return Rule{Most: 500, Bytes: 20 * mebi, Total: 40 * mebi, Edge: 2048, seen: upTo(openaiPatch, 1536), count: dearestRule(patched(2.46, 1536), patched(1.2, 2500), tiled(85, 170))}
	case "gemini", "vertex":
		return Rule{Most: 900, Bytes: 14 * mebi, Total: 14 * mebi, Edge: 2048, seen: anySize, count: dearestRule(whole(gemini3), geminiTiles)}
	}
	return Rule{Most: 20, Bytes: 5 * mebi, Total: 24 * mebi, Edge: 1568, seen: upTo(claudePatch, claudeSees), count: dearestRule(claudeTokens, unknown)}
}

// Families of models, whose rules are narrower than those of all of a vendor's.
var (
	oldMini   = regexp.MustCompile(`^gpt-4o-mini`)
	minis     = regexp.MustCompile(`^(?:gpt-(?:4\.1|5|5\.\d)-mini)`)
	o4Mini    = regexp.MustCompile(`^o4-mini`)
	nanos     = regexp.MustCompile(`^gpt-(?:4\.1|5|5\.\d)-nano`)
	tiles     = regexp.MustCompile(`^(?:gpt-4o|gpt-4\.[15]|gpt-4-turbo|gpt-5(?:-|$)|gpt-5\.1|o1|o3|computer-use)`)
	patches   = regexp.MustCompile(`^gpt-(?:5\.[4-9]|[6-9])`)
	oldGemini = regexp.MustCompile(`^gemini-[12]`)
	newGemini = regexp.MustCompile(`^gemini-[3-9]`)
	claudes   = regexp.MustCompile(`^claude`)
)

// Of returns the rule of a vendor's model. A deployment of Azure may have any name, and one of an
// alike server any model: then the rule is that of the dearest.
func Of(provider string, model llm.Model) Rule {
	r := ruleOf(provider)
	r.Vendor = provider
	name := strings.ToLower(string(model))
	name = name[strings.LastIndexByte(name, '/')+1:]

	switch provider {
	case "openai", "openrouter":
		switch {
		case oldMini.MatchString(name):
			r.seen, r.count = shortUpTo(768), tiled(2833, 5667)
		case nanos.MatchString(name):
			r.seen, r.count = upTo(openaiPatch, 1536), patched(2.46, 1536)
		case minis.MatchString(name):
			r.seen, r.count = upTo(openaiPatch, 1536), patched(1.62, 1536)
		case o4Mini.MatchString(name):
			r.seen, r.count = upTo(openaiPatch, 1536), patched(1.72, 1536)
		case tiles.MatchString(name):
			r.seen, r.count = shortUpTo(768), tiled(85, 170)
		case patches.MatchString(name):
			r.seen, r.count = upTo(openaiPatch, 2500), patched(1.2, 2500)
		}
	case "gemini", "vertex":
		switch {
		case newGemini.MatchString(name):
			r.count = whole(gemini3)
		case oldGemini.MatchString(name):
			r.count = geminiTiles
		}
	}

	if (provider == "bedrock" || provider == "openrouter") && claudes.MatchString(afterVendor(name)) {
		r.count = claudeTokens
	}
	return r
}

// afterVendor returns the name of a model of Bedrock without those of a continent and a vendor.
func afterVendor(name string) string {
	if _, own, ok := strings.Cut(name, "anthropic."); ok {
		return own
	}
	return name
}

// Both returns the rule of a picture that either of two models may be shown.
func (r Rule) Both(q Rule) Rule {
	if q.count == nil {
		return r
	}
	if r.count == nil {
		return q
	}
	return Rule{
		Vendor: r.Vendor, Most: min(r.Most, q.Most), Bytes: min(r.Bytes, q.Bytes), Total: min(r.Total, q.Total), Edge: min(r.Edge, q.Edge),
		seen:  func(width, height int) bool { return r.seen(width, height) && q.seen(width, height) },
		count: dearestRule(r.count, q.count),
	}
}

// Tokens returns no fewer tokens than a picture of a size in pixels counts as.
func (r Rule) Tokens(width, height int) int64 { return r.count(width, height) }

// Fit returns the largest size of about the same shape, and no larger, that the model sees as it is.
func (r Rule) Fit(width, height int) (int, int) {
	scale := math.Min(1, float64(r.Edge)/float64(max(width, height)))
	size := func(scale float64) (int, int) {
		return max(int(float64(width)*scale), 1), max(int(float64(height)*scale), 1)
	}

	// Patches are whole, so that the largest size is looked for in small steps.
	w, h := size(scale)
	for !r.seen(w, h) {
		scale *= 0.995
		w, h = size(scale)
	}
	return w, h
}

// Check refuses a request whose pictures the vendor would refuse, or not see all of. The error says
// what to do.
func (r Rule) Check(req *llm.Request) error {
	all := req.Pictures()
	if len(all) > r.Most {
		return llm.NewError(llm.Invalid, "a request has %d pictures, and %s takes %d at once; read fewer pages in one call, by smaller chunks", len(all), r.Vendor, r.Most)
	}

	var total int64
	for i, p := range all {
		size := p.Encoded()
		total += size
		switch {
		case size > r.Bytes:
			return llm.NewError(llm.Invalid, "picture %d has %d bytes in Base64, and %s takes %d; make it smaller, or leave it out with --see never", i+1, size, r.Vendor, r.Bytes)
		case max(p.Width, p.Height) > r.Edge:
			return llm.NewError(llm.Invalid, "picture %d has %d×%d pixels, and models of %s see %d; make it smaller", i+1, p.Width, p.Height, r.Vendor, r.Edge)
		}
	}
	if total > r.Total {
		return llm.NewError(llm.Invalid, "the pictures of a request have %d bytes in Base64, and %s takes %d; read fewer pages in one call, by smaller chunks", total, r.Vendor, r.Total)
	}
	return nil
}

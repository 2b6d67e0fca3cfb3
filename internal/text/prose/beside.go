package prose

import (
	"regexp"
	"strings"
)

// tagLabel matches what stands before the tags of a page: a label with a colon, or with a sign of
// tags behind it. Labels may run into the words before them, as lines of a page do in its text.
var tagLabel = regexp.MustCompile(`^\W{0,3}(?:(?i:filed under|filed to|posted in|tagged(?: as| with| under)?|topics?|tags?|categor(?:y|ies)|keywords?|labels?|` +
	`related(?: topics| tags| stories| articles)?|more (?:on|about|from)(?: this| these)?(?: topics?)?)\s*:)`)

// hashtag matches a tag with its sign.
var hashtag = regexp.MustCompile(`(?:^|[\s,;:])#\p{L}`)

// Bounds of a list of tags.
const (
	leastTags  = 5 // without a label
	leastSigns = 2 // tags with a sign
	wordsOfTag = 4 // words of one tag, at most
)

// IsTags reports whether a text is a list of tags or topics, as pages have below what they say: it has
// a label of such lists and no verb of a sentence behind it, or signs of tags, or it consists of very short
// parts without any word that grammar needs.
func IsTags(text string) bool {
	text = strings.TrimSpace(text)
	if at := tagLabel.FindStringIndex(text); at != nil {
		return isListOfNames(text[at[1]:], 1, 2)
	}
	return len(hashtag.FindAllStringIndex(text, leastSigns)) >= leastSigns || isListOfNames(text, leastTags, 4)
}

// isListOfNames reports whether a text consists of so many parts or more, between commas and the like, none
// of which has more than a few words, and one of share or fewer of which have a word that grammar needs.
func isListOfNames(text string, least, share int) bool {
	parts := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(",;|•·\n", r) })
	if len(parts) < least {
		return false
	}

	common := 0
	for _, part := range parts {
		words := Words(part)
		if len(words) > wordsOfTag {
			return false
		}
		for _, w := range words {
			if w.Common && !w.Number {
				common++
			}
		}
	}
	return common*share <= len(parts)
}

// inBrackets matches who took a picture, in brackets.
const inBrackets = `\((?:[^()]*\p{Lu}[^()/]*\s?/\s?\p{Lu}[^()]*|(?i:photos?|image|picture|illustration|courtesy|credit)\b[^()]*` +
	`|[^()]*\b(?:Getty(?: Images)?|AP Photo|Associated Press|AFP|Shutterstock|Alamy|iStock|Unsplash)\b[^()]*)\)`

// credit matches who took a picture, in brackets or behind a label, where a text ends; creditBehind
// where a text begins that stands behind a sentence.
var (
	credit = regexp.MustCompile(inBrackets + `[.\s]*$` +
		`|\b(?:Getty Images|AP Photo|Shutterstock)(?:/[^.]{1,40})?[.\s]*$` +
		`|\b(?i:photo(?:graph)?s?|image|picture|illustration)(?: (?:courtesy|credit))?(?: (?:by|of))?\s?[:/][^.:]{2,60}$`)
	creditBehind = regexp.MustCompile(`^[ \t]?` + inBrackets)
)

// creditBefore matches an agency in capitals where a text begins.
var creditBefore = regexp.MustCompile(`^\s*(?:[A-Z .'/-]{2,40} VIA )?(?:ASSOCIATED PRESS|AP PHOTO|GETTY(?: IMAGES)?|SHUTTERSTOCK|ALAMY)\b`)

// IsCaption reports whether a text is the caption of a picture: it ends with who took the picture, or begins with
// the agency that sells it.
func IsCaption(text string) bool { return credit.MatchString(text) || creditBefore.MatchString(text) }

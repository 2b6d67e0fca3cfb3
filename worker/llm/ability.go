package llm

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A Need is what a job asks of its model.
type Need struct {
	Tools  bool  // it has to call tools
	Embeds bool  // it has to turn texts into vectors, and nothing else
	Sees   bool  // it has to see pictures
	Window int64 // tokens that prompt and answer have to fit into; 0 if that is not known
}

// A kindOfModel is a class of models that can be recognised by their names, with what they
// do.
type kindOfModel struct {
	names *regexp.Regexp // of the last part of a name, in lower case
	of    []string       // the providers that have them; nil is any
	does  Ability        // and nothing else; "" answers
	why   string         // what it does, or does not do, in words
}

// Names of models that do not answer, or that answer and call no tools. The latter are as their
// vendors say: github.com/BerriAI/litellm/issues/10313 and github.com/agno-agi/agno/issues/3505 (Gemma),
// community.openai.com/t/1110750 (o1-mini, o1-preview, chatgpt-4o).
var (
	embeddingNames  = regexp.MustCompile(`embed|^(?:bge-|e5-|gte-|all-minilm|voyage-)`)
	rankingNames    = regexp.MustCompile(`rerank`)
	pictureNames    = regexp.MustCompile(`^(?:dall-e|gpt-image|imagen-|veo-|sora-|stable-diffusion|titan-image|nova-canvas|nova-reel)`)
	speechNames     = regexp.MustCompile(`^(?:whisper|tts-|gpt-realtime)|-tts$|-tts-|-transcribe`)
	moderationNames = regexp.MustCompile(`moderation`)
	completionNames = regexp.MustCompile(`^(?:gpt-3\.5-turbo-instruct|davinci-002|babbage-002)`)
	toollessOpenAI  = regexp.MustCompile(`^(?:o1-mini|o1-preview|chatgpt-4o-latest)`)
	toollessGoogle  = regexp.MustCompile(`^gemma-[123]`)
)

// Models that answer, and see no pictures, by their vendors' own tables. What a vendor has beside these
// is taken for able.
var (
	blindOpenAI = regexp.MustCompile(`^(?:gpt-3\.5|gpt-4(?:-\d{4}|-32k)?(?:-\d{4})?$|o1-mini|o1-preview|o3-mini|gpt-oss)`)
	blindOthers = regexp.MustCompile(`^(?:claude-(?:instant|2)|deepseek-(?:chat|reasoner|coder|v[123]|r1)|gpt-oss|codestral|devstral|mistral-(?:7b|nemo|tiny)|` +
		`(?:open-)?mixtral|open-mistral|llama-?(?:2|3|3\.[13])(?:[-:]|$)|qwen-?(?:2|2\.5|3)(?:[-:](?:coder|\d)|$)|phi-?[34](?:[-:]mini)?(?:$|:)|kimi-k2|glm-4\.[56](?:$|-air)|nova-micro|titan-text)`)
)

// seesNothing reports whether a model is known to see no pictures.
func seesNothing(provider string, model Model) bool {
	name := lastPart(model)
	switch provider {
	case "azure": // where a deployment may have any name
		return false
	case "openai":
		return blindOpenAI.MatchString(name)
	}
	return blindOthers.MatchString(name)
}

// kindsOfModels are tried in order.
func kindsOfModels() []kindOfModel {
	return []kindOfModel{
		{names: rankingNames, does: "ranks", why: "ranks texts, and does not answer"},
		{names: embeddingNames, does: CanEmbed, why: "turns texts into vectors, and does not answer"},
		{names: pictureNames, does: "pictures", why: "makes pictures, and does not answer in text"},
		{names: speechNames, does: "speech", why: "is of speech, and does not answer in text"},
		{names: moderationNames, of: []string{"openai", "mistral"}, does: "judges", why: "judges texts, and does not answer"},
		{names: completionNames, of: []string{"openai"}, does: "completes", why: "goes on with texts, and has no conversations"},
		{names: toollessOpenAI, of: []string{"openai"}, why: "calls no tools"},
		{names: toollessGoogle, of: []string{"gemini"}, why: "calls no tools at this provider"},
	}
}

// Lacks returns what a model does, or does not do, in words, if by its name it cannot do what is
// needed; "" if it can, as far as names tell. A deployment of Azure may have any name.
func Lacks(provider string, model Model, n Need) string {
	kind := kindOf(provider, model)
	switch {
	case kind == nil && n.Sees && seesNothing(provider, model):
		return "sees no pictures"
	case kind == nil:
		if n.Embeds && knownToAnswer(provider, model) {
			return "answers, and turns no texts into vectors"
		}
		return ""
	case kind.does == CanEmbed && n.Embeds, kind.does == "" && !n.Tools && !n.Embeds:
		return ""
	}
	return kind.why
}

// kindOf returns the kind of a model; nil if its name tells none.
func kindOf(provider string, model Model) *kindOfModel {
	if provider == "azure" {
		return nil
	}
	name := lastPart(model)
	for _, k := range kindsOfModels() {
		if (k.of == nil || slices.Contains(k.of, provider)) && k.names.MatchString(name) {
			return &k
		}
	}
	return nil
}

// lastPart returns the name of a model without those of its vendor and its place, in lower case.
func lastPart(model Model) string {
	name := strings.ToLower(string(model))
	name = name[strings.LastIndexByte(name, '/')+1:]
	for { // Bedrock's have those of a continent and a vendor in front
		before, rest, ok := strings.Cut(name, ".")
		if !ok || strings.Trim(before, "abcdefghijklmnopqrstuvwxyz-") != "" {
			return name
		}
		name = rest
	}
}

// answering is how models are named that answer, at vendors that have others too.
var answering = regexp.MustCompile(`^(?:gpt-\d|o\d|claude-|gemini-\d|mistral-(?:small|medium|large))`)

func knownToAnswer(provider string, model Model) bool {
	return provider != "azure" && answering.MatchString(lastPart(model))
}

// LacksOf is Lacks by what the server of a model reports of it, which counts more than its
// name. An offer without abilities says nothing of them.
func LacksOf(o Offer, n Need) string {
	if len(o.Abilities) == 0 && !o.Told {
		return ""
	}

	embeds := slices.Contains(o.Abilities, CanEmbed)
	switch {
	case embeds && len(o.Abilities) == 1 && !n.Embeds:
		return "turns texts into vectors, and does not answer"
	case n.Embeds && o.Told && !embeds:
		return "turns no texts into vectors"
	case n.Tools && o.Told && !slices.Contains(o.Abilities, CanTools):
		return "calls no tools"
	case n.Sees && o.Told && !slices.Contains(o.Abilities, CanImages):
		return "sees no pictures"
	}

	return ""
}

// maxNamed bounds the models that an error names.
const maxNamed = 5

// Able returns models of a provider with known prices that can do what is needed, as far as is
// known: the cheapest first, and no more than an error should name. A window that is not known is
// none.
func (p *Prices) Able(provider string, n Need) []Model {
	all := p.tariffs[provider]
	names := slices.SortedFunc(maps.Keys(all), func(a, b Model) int {
		return cmp.Or(cmp.Compare(all[a].Input, all[b].Input), cmp.Compare(all[a].Output, all[b].Output), cmp.Compare(a, b))
	})
	names = slices.DeleteFunc(names, func(m Model) bool {
		return m == "*" || n.Window > 0 && all[m].Window < n.Window || Lacks(provider, m, n) != ""
	})
	return names[:min(len(names), maxNamed)]
}

// AbleOf returns the models of a server that can do what is needed, as far as it tells; no more than
// an error should name.
func AbleOf(offers []Offer, n Need) []Model {
	var names []Model
	for _, o := range offers {
		if len(names) < maxNamed && LacksOf(o, n) == "" && (o.Window == 0 || o.Window >= n.Window) {
			names = append(names, o.Model)
		}
	}
	return names
}

// CouldBe says which models of a provider could do something, for the end of an error; "" if none is
// known.
func CouldBe(provider string, models []Model) string {
	if len(models) == 0 {
		return ""
	}

	names := make([]string, len(models))
	for i, m := range models {
		names[i] = string(m)
	}

	text := names[0]
	if last := len(names) - 1; last > 0 {
		text = strings.Join(names[:last], ", ") + " and " + names[last]
	}

	return "; of " + provider + ", " + text + " could"
}

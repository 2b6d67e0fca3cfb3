package manners

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A trait is something that a server may refuse. It finds the refusal in the server's words.
type trait func(m Manners, text string, sent Sent) (Manners, string, bool)

// traits are tried in order: those that are named by a word of their own first.
var traits = []trait{
	signatureTrait, streamedToolsTrait, usageTrait, sealedTrait, thoughtTrait, forcedTrait, parameterTrait, parallelTrait, cacheTrait, boundTrait, mostTrait, strictTrait, systemTrait, choiceTrait, keywordTrait, toolTrait, formatTrait, streamTrait,
}

// loneTraits are of interfaces of a server's own.
var loneTraits = []trait{parameterTrait, grammarTrait}

// signatureTrait is of Google's models, which want to know what was thought before a tool was called.
// Of calls that another model made, nobody has that.
func signatureTrait(m Manners, text string, _ Sent) (Manners, string, bool) {
	if m.Unsigned || !strings.Contains(text, "thought_signature") {
		return m, "", false
	}
	m.Unsigned = true
	return m, "calls of tools that other models made say that they bear no signature", true
}

// streamedToolsTrait is of models that call tools, and do so whole.
func streamedToolsTrait(m Manners, text string, sent Sent) (Manners, string, bool) {
	if m.NoStream || !sent.Stream || !hasAny(text, "tool use in streaming mode", "unsupported for streaming") {
		return m, "", false
	}
	m.NoStream = true
	return m, "it does not stream: answers come whole", true
}

func usageTrait(m Manners, text string, sent Sent) (Manners, string, bool) {
	if m.NoUsage || !sent.Stream || !hasAny(text, "stream_options", "include_usage", "stream options") {
		return m, "", false
	}
	m.NoUsage = true
	return m, "it takes no stream_options", true
}

func sealedTrait(m Manners, text string, sent Sent) (Manners, string, bool) {
	if m.NoSealed || !sent.Sealed || !hasAny(text, "encrypted_content", "encrypted content", "'include'", `"include"`) {
		return m, "", false
	}
	m.NoSealed = true
	return m, "it does not give back what a model thought", true
}

// thoughtTrait is of servers that show what a model thinks, and do not take it back. Others demand it:
// their words are about what is missing.
func thoughtTrait(m Manners, text string, sent Sent) (Manners, string, bool) {
	if m.NoThoughts || !sent.Thoughts || !hasAny(text, "reasoning_content", "reasoning_details", "'reasoning'", `"reasoning"`) {
		return m, "", false
	}
	if !refuses(text) || hasAny(text, "passed back", "missing", "required") {
		return m, "", false
	}
	m.NoThoughts = true
	return m, "it does not take back what a model thought", true
}

func parallelTrait(m Manners, text string, _ Sent) (Manners, string, bool) {
	if m.NoParallel || !hasAny(text, "parallel_tool_calls", "parallel tool", "parallel function", "disable_parallel_tool_use", "multiple tool") {
		return m, "", false
	}
	m.NoParallel = true
	return m, "it takes no parallel_tool_calls", true
}

func cacheTrait(m Manners, text string, sent Sent) (Manners, string, bool) {
	if m.NoCache || !sent.Cache || !hasAny(text, "cache_control", "cachepoint", "prompt caching", "prompt-caching") {
		return m, "", false
	}
	m.NoCache = true
	return m, "it takes no marks for its cache", true
}

func boundTrait(m Manners, text string, _ Sent) (Manners, string, bool) {
	const older, newer = "max_tokens", "max_completion_tokens"
	if m.OtherBound || !strings.Contains(text, older) && !strings.Contains(text, newer) || hasNumberBound(text) {
		return m, "", false
	}
	if !refuses(text) {
		return m, "", false
	}
	m.OtherBound = true
	return m, "it has another name for the bound of an answer", true
}

// bounds are how servers say how long an answer may be.
var bounds = []*regexp.Regexp{
	regexp.MustCompile(`at most (\d+) (?:completion|output)`),
	regexp.MustCompile(`max(?:_completion)?_tokens(?: for [\x60'"][^\x60'"]+[\x60'"])?[^0-9]{0,80}(?:less than or equal to|<=|at most|not exceed|no more than|cannot exceed|up to|maximum (?:value )?(?:is|of)|must be between \d+ and|range (?:is|of) \[\d+,) ?[\x60'"]?(\d+)`),
	regexp.MustCompile(`max_tokens: \d+ > (\d+)`),
	regexp.MustCompile(`range of max_tokens (?:should be|is) \[\d+, ?(\d+)\]`),
	regexp.MustCompile(`maximum tokens you requested exceeds the model limit of (\d+)`),
	regexp.MustCompile(`maxoutputtokens[^(]*\(inclusive\) to (\d+) \(exclusive\)`),
	regexp.MustCompile(`(?:maximum|max) (?:allowed |number of )?(?:output|completion) tokens[^0-9]{0,40}(\d+)`),
}

func hasNumberBound(text string) bool { _, ok := numberBound(text); return ok }

func numberBound(text string) (int64, bool) {
	for _, b := range bounds {
		if found := b.FindStringSubmatch(text); found != nil {
			n, err := strconv.ParseInt(found[1], 10, 64)
			if strings.HasSuffix(found[0], "(exclusive)") {
				n--
			}
			return n, err == nil && n > 0
		}
	}
	return 0, false
}

func mostTrait(m Manners, text string, sent Sent) (Manners, string, bool) {
	n, ok := numberBound(text)
	if !ok || n >= sent.Bound || m.Most > 0 && n >= m.Most {
		return m, "", false
	}
	m.Most = n
	return m, fmt.Sprintf("its answers have at most %d tokens", n), true
}

func strictTrait(m Manners, text string, _ Sent) (Manners, string, bool) {
	if m.NoStrict || !wholeWord.MatchString(text) {
		return m, "", false
	}
	m.NoStrict = true
	return m, "nothing can be marked as strict", true
}

// wholeWord finds strict as a name, and not in "restricted".
var wholeWord = regexp.MustCompile(`(?:^|[^a-z])strict(?:$|[^a-z])`)

func systemTrait(m Manners, text string, sent Sent) (Manners, string, bool) {
	if m.NoSystem || !sent.System {
		return m, "", false
	}

	role := hasAny(text, "system role", "role 'system'", `role "system"`, "system message", "system prompt", "'system' with this model", "developer instruction", "role: system", "role not supported", "system_instruction") ||
		strings.Contains(text, "role") && hasAny(text, "system", "'user' or 'assistant'")
	alternate := hasAny(text, "roles must alternate", "must alternate", "should be alternating", "first message must be", "unexpected role")
	if !role && !alternate || role && !alternate && !refuses(text) && !strings.Contains(text, "input should be") {
		return m, "", false
	}

	m.NoSystem = true
	return m, "it has no system role: instructions stand in the first message", true
}

func choiceTrait(m Manners, text string, sent Sent) (Manners, string, bool) {
	if m.FreeTools || m.Form != ByTool && !sent.Tools || strings.Contains(text, "enable-auto-tool-choice") {
		return m, "", false
	}

	if !hasAny(text, "tool_choice", "tool choice", "toolchoice", "forced function", "forced tool", "forces tool", "function_calling_config") {
		return m, "", false
	}

	m.FreeTools = true
	return m, "no tool can be forced", true
}

// boundKeyword finds a keyword that bounds values, as a name.
var boundKeyword = regexp.MustCompile(`["'\[\x60](?:exclusive)?(?:minimum|maximum|m(?:in|ax)(?:items|length)|multipleof|pattern|prefixitems|format)\\?["'\]\x60]`)

// toolSchema finds a place within the schema of a tool's input.
var toolSchema = regexp.MustCompile(`(?:tools|function_?declarations?)[^:]*(?:parameters|input_?schema)`)

// keywordTrait is of servers that take schemas, and not everything in them.
func keywordTrait(m Manners, text string, sent Sent) (Manners, string, bool) {
	if m.Plain || !sent.Schema && !sent.Tools || m.Form > ByTool {
		return m, "", false
	}

	named := boundKeyword.MatchString(text) || sent.Tools && toolSchema.MatchString(text)
	if !named && !hasAny(text, "invalid schema", "invalid_json_schema", "invalid json schema", "schema is not valid", "schema validation", "unsupported schema", "grammar", "keyword", "schema too complex",
		"unsupported_schema", "not permitted in schema", "properties are not supported", "not supported by xgrammar", "minimum", "maxitems", "minitems", "exclusiveminimum", "multipleof", "schemas contains too many", "schema produces a constraint") {
		return m, "", false
	}

	if strings.Contains(text, "empty grammar stack") { // the model cannot follow one, whatever it is
		return m, "", false
	}

	if hasAny(text, "response_format is not", "does not support") && !hasAny(text, "keyword", "minimum", "maximum", "pattern", "items") {
		return m, "", false
	}

	m.Plain = true
	return m, "its schemas take no bounds of values", true
}

func toolTrait(m Manners, text string, sent Sent) (Manners, string, bool) {
	if !sent.Schema || m.Form != ByTool || !hasAny(text, "tool", "function") {
		return m, "", false
	}
	m.Form = ByObject
	if m.NoFormat {
		m.Form = ByPrompt
	}
	return m, "it takes no tools: " + m.Form.String(), true
}

// grammarTrait is of interfaces of a server's own, where nothing is between a schema and a JSON object.
func grammarTrait(m Manners, text string, sent Sent) (Manners, string, bool) {
	if !sent.Schema || m.Form == ByPrompt || !formatWord.MatchString(text) && !hasAny(text, "grammar", "schema", "structured output") {
		return m, "", false
	}
	if m.Form == ByObject {
		m.Form = ByPrompt
		return m, "it takes no format: " + m.Form.String(), true
	}
	m.Form = ByObject
	return m, "it does not constrain answers by a schema: " + m.Form.String(), true
}

// formatWord finds format as a word of its own or of a name, and not in "information".
var formatWord = regexp.MustCompile(`(?:^|[^a-z])format`)

func formatTrait(m Manners, text string, sent Sent) (Manners, string, bool) {
	if !sent.Schema || m.Form == ByPrompt || m.Form == ByTool {
		return m, "", false
	}
	if !formatWord.MatchString(text) && !hasAny(text, "json_schema", "json schema", "json_object", "json mode", "structured output", "structured_output", "output_config", "outputconfig", "responseformat", "guided", "grammar", "schema", "response mime type", "response_mime_type") {
		return m, "", false
	}

	if m.Form == ByObject {
		m.Form = ByPrompt
		return m, "it takes no response_format: " + m.Form.String(), true
	}

	m.NoFormat = m.NoFormat || hasAny(text, "response_format", "response format") && !hasAny(text, "json_schema", "json schema", "type")
	m.Form = ByTool
	return m, "it does not constrain answers by a schema: " + m.Form.String(), true
}

// streamWord finds stream as a word, and not in "upstream".
var streamWord = regexp.MustCompile(`(?:^|[^a-z])stream`)

func streamTrait(m Manners, text string, sent Sent) (Manners, string, bool) {
	if m.NoStream || !sent.Stream || !streamWord.MatchString(text) || !refuses(text) && !hasAny(text, "verified", "not yet", "disabled") {
		return m, "", false
	}
	m.NoStream = true
	return m, "it does not stream: answers come whole", true
}

func hasAny(text string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// refuses reports whether words say that something is not taken, and not that it is wrong.
func refuses(text string) bool {
	return hasAny(text, "support", "unknown", "unrecognized", "unrecognised", "unexpected", "extra", "not permitted", "not allowed", "invalid", "not available", "unavailable", "not implemented",
		"cannot", "can't", "must be", "only ", "deprecated", "no longer", "removed", "disabled", "does not accept", "not accept", "cannot find field", "not a valid", "reject", "refuse", "use 'max", "use max", "instead", "not enabled", "exception", "forbidden")
}

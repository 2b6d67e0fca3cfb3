package errs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// yamlLine is how the YAML package begins a message about a line.
var yamlLine = regexp.MustCompile(`^line (\d+): `)

// yamlWords say what is wrong with a YAML text, and what to do, in place of the messages of the
// YAML package, of which parts stand here in the order in which they are looked for.
func yamlWords() [][2]string {
	return [][2]string{
		{"mapping values are not allowed", `there is a second ": " in the line, or the line is indented too far; put a text that holds ": " in quotes`},
		{"did not find expected ',' or '}'", "a brace { is not closed, or a comma is missing between its entries"},
		{"did not find expected ',' or ']'", "a bracket [ is not closed, or a comma is missing between its elements"},
		{"did not find expected key", "the line does not fit those above it: indent the keys of one mapping alike"},
		{"did not find expected '-' indicator", `the line does not fit the list above it: each element begins with "- ", indented alike`},
		{"could not find expected ':'", `a key is without its ":"; put a text of several lines in quotes`},
		{"did not find expected node content", "a value is missing, or stands outside of its brackets"},
		{"block sequence entries are not allowed", `an element of a list ("- ") stands where none can; begin the list on a line of its own`},
		{"tab character", "lines are indented by blanks, and not by tabs"},
		{"cannot start any token", "a value begins with a character that needs quotes (such as @, `, % or a tab): put the text in quotes, and indent by blanks"},
		{"unexpected end of stream", "a quote is not closed"},
		{"unknown escape character", `a backslash in "double quotes" stands for nothing here; write \\, or use 'single quotes'`},
		{"control characters are not allowed", "the text holds a control character; save it as plain UTF-8"},
		{"excessive aliasing", "aliases (*name) make the file too large"},
		{"contains itself", "an alias (*name) stands within what it names"},
	}
}

// yamlAlias is how the YAML package says that an alias names nothing.
var yamlAlias = regexp.MustCompile(`unknown anchor '(.*)' referenced`)

// YAMLFault says in plain words what is wrong with a text that is to be YAML, and in which line,
// counted from 1; 0 if that is not known. Err is of the YAML package. A text without a fault that
// this function knows keeps the message of that package.
func YAMLFault(err error) (line int, message string) {
	message = strings.TrimPrefix(err.Error(), "yaml: ")
	if m := yamlLine.FindStringSubmatch(message); m != nil {
		line, _ = strconv.Atoi(m[1]) // which is digits
		message = message[len(m[0]):]
	}

	if m := yamlAlias.FindStringSubmatch(message); m != nil {
		return line, fmt.Sprintf("the alias *%s stands for nothing, as no value is marked &%s; put a text that begins with * in quotes", m[1], m[1])
	}

	for _, w := range yamlWords() {
		if strings.Contains(message, w[0]) {
			return line, w[1]
		}
	}

	return line, message
}

// jsonWords say what is wrong with a JSON text, as yamlWords do; %s is the character that stands
// in the place.
func jsonWords() [][2]string {
	return [][2]string{
		{"looking for beginning of object key string", "%s stands where a name in quotes has to; a comma before } is one too many"},
		{"looking for beginning of value", "%s stands where a value has to; a comma before ] is one too many, and texts need quotes"},
		{"after object key:value pair", "%s stands where a comma or } has to"},
		{"after object key", "%s stands where a colon has to"},
		{"after array element", "%s stands where a comma or ] has to"},
		{"in string literal", "a text in quotes holds %s; write line ends as \\n"},
		{"in string escape code", "a backslash in a text stands before %s; write \\\\ for a backslash"},
		{"after top-level value", "%s stands behind the end of the value"},
		{"in literal", "%s stands in a word that is none of true, false and null; put texts in quotes"},
		{"in numeric literal", "%s stands in a number; put texts in quotes"},
	}
}

// jsonCharacter is how encoding/json names what is wrong.
var jsonCharacter = regexp.MustCompile(`^invalid character ('.*?'|'\\'')`)

// JSONFault says in plain words what is wrong with a text that is to be JSON, or with a value in
// it that has another type than is expected. Err is of encoding/json, or wraps one; any other
// error keeps its message.
func JSONFault(err error) string {
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return strings.TrimPrefix(kind.Field+": ", ": ") + "is " + withArticle(kind.Value) + ", and has to be " + jsonType(kind.Type)
	}

	message := strings.TrimPrefix(err.Error(), "json: ")
	if errors.Is(err, io.ErrUnexpectedEOF) || strings.HasSuffix(message, "unexpected end of JSON input") {
		return "the text ends within a value: a bracket, a brace or a quote is not closed"
	}
	if name, ok := strings.CutPrefix(message, "unknown field "); ok {
		return "there is no key " + name
	}

	if m := jsonCharacter.FindStringSubmatch(message); m != nil {
		for _, w := range jsonWords() {
			if strings.Contains(message, w[0]) {
				return fmt.Sprintf(w[1], m[1])
			}
		}
	}

	return message
}

// withArticle returns what encoding/json calls a value, as people say it.
func withArticle(value string) string {
	switch value {
	case "array":
		return "a list"
	case "bool":
		return "true or false"
	case "object":
		return "an object"
	case "string":
		return "a text"
	}

	if number, ok := strings.CutPrefix(value, "number "); ok {
		return "the number " + number
	}
	return "a " + value
}

// jsonType returns what JSON calls values of a type.
func jsonType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct, reflect.Pointer:
		return "an object"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "something else"
}

package xmlfile

import (
	"encoding/xml"
	"maps"
	"regexp"
	"strings"

	"github.com/coditect/mapreduce/internal/document"
)

// Bounds of entities that a document declares.
const (
	maxEntities = 1000
	maxEntity   = 4 << 10 // bytes of one, with those within it
	maxExpanded = 8 << 20 // bytes that all references to them come to
	maxNested   = 16      // entities within each other
)

// declaration finds the entities that a document type declares in place. Those of other files
// are never read.
var declaration = regexp.MustCompile(`<!ENTITY\s+([\pL_:][\pL\pN_:.-]*)\s+(?:"([^"]*)"|'([^']*)')\s*>`)

// reference finds references to entities that are no characters by their number.
var reference = regexp.MustCompile(`&([\pL_:][\pL\pN_:.-]*);`)

// entitiesOf returns what references to entities stand for: what the document declares, the
// names of characters in web pages, and of all others the reference itself. The error is a
// document.RefusedError if they come to more than they may.
func entitiesOf(content string) (map[string]string, error) {
	declared := map[string]string{}
	if head := documentType(content); head != "" {
		for _, m := range declaration.FindAllStringSubmatch(head, maxEntities+1) {
			if len(declared) == maxEntities {
				return nil, document.Refuse("damaged: it declares more than %d entities", maxEntities)
			}
			if _, known := declared[m[1]]; !known { // the first declaration counts
				declared[m[1]] = m[2] + m[3]
			}
		}
	}

	entities, expanded := map[string]string{}, 0
	for _, m := range reference.FindAllStringSubmatch(content, -1) {
		name := m[1]
		value, known := entities[name]
		if !known {
			var err error
			if value, err = expandEntity(name, declared, 0); err != nil {
				return nil, err
			}
			entities[name] = value
		}
		if _, own := declared[name]; own {
			if expanded += len(value); expanded > maxExpanded {
				return nil, document.Refuse("damaged: its entities come to more than %d bytes", maxExpanded)
			}
		}
	}
	return entities, nil
}

// documentType returns the document type with what it declares in place; "" if there is none.
func documentType(content string) string {
	at := strings.Index(content, "<!DOCTYPE")
	if at < 0 {
		return ""
	}

	open := strings.IndexAny(content[at:], "[>")
	if open < 0 || content[at+open] == '>' {
		return ""
	}

	end := strings.Index(content[at+open:], "]")
	for end >= 0 { // the bracket may stand in a value
		rest := strings.TrimLeft(content[at+open+end+1:], " \t\r\n")
		if strings.HasPrefix(rest, ">") {
			return content[at : at+open+end]
		}

		next := strings.Index(content[at+open+end+1:], "]")
		if next < 0 {
			break
		}
		end += 1 + next
	}

	return ""
}

// pageEntities are the names of characters in web pages.
var pageEntities = maps.Clone(xml.HTMLEntity)

// expandEntity returns what a reference to an entity stands for.
func expandEntity(name string, declared map[string]string, depth int) (string, error) {
	value, own := declared[name]
	if !own {
		switch name {
		case "lt", "gt", "amp", "apos", "quot":
			return map[string]string{"lt": "<", "gt": ">", "amp": "&", "apos": "'", "quot": `"`}[name], nil
		}
		if character, ok := pageEntities[name]; ok {
			return character, nil
		}
		return "&" + name + ";", nil
	}

	if depth > maxNested {
		return "", document.Refuse("damaged: more than %d entities within each other", maxNested)
	}

	var b strings.Builder
	at := 0
	for _, m := range reference.FindAllStringSubmatchIndex(value, maxEntity) {
		inner, err := expandEntity(value[m[2]:m[3]], declared, depth+1)
		if err != nil {
			return "", err
		}

		b.WriteString(value[at:m[0]])
		b.WriteString(inner)
		if at = m[1]; b.Len() > maxEntity {
			break
		}
	}

	if b.WriteString(value[at:]); b.Len() > maxEntity {
		return "", document.Refuse("damaged: an entity comes to more than %d bytes", maxEntity)
	}

	return characterReferences(b.String()), nil
}

// characterReference finds references to characters by their number.
var characterReference = regexp.MustCompile(`&#(?:[0-9]{1,7}|x[0-9a-fA-F]{1,6});`)

// characterReferences returns text with characters for the references to their numbers.
func characterReferences(text string) string {
	return characterReference.ReplaceAllStringFunc(text, func(ref string) string {
		var value string
		if xml.Unmarshal([]byte("<a>"+ref+"</a>"), &value) != nil {
			return ref
		}
		return value
	})
}

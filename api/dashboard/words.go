package dashboard

import (
	_ "embed" // the catalogue
	"encoding/json"
	"fmt"
)

// The words of the pages, by name: a translation is another such file. %s and %d stand for
// what is filled in.
//
//go:embed words.json
var catalogue []byte

type words map[string]string

func readWords() (words, error) {
	var w words
	if err := json.Unmarshal(catalogue, &w); err != nil {
		return nil, fmt.Errorf("words of the pages: %w", err)
	}
	return w, nil
}

// say returns words by their name.
func (w words) say(name string, fill ...any) (string, error) {
	text, found := w[name]
	if !found {
		return "", fmt.Errorf("the catalogue has no words for %s", name)
	}
	if len(fill) == 0 {
		return text, nil
	}
	return fmt.Sprintf(text, fill...), nil
}

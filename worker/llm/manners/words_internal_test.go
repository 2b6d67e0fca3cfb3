package manners

import (
	"reflect"
	"testing"

	"github.com/coditect/mapreduce/api/parameters"
)

// Every trait has a word, so that others are told of it.
func TestEveryTraitHasAWord(t *testing.T) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Manners]()) {
		var m Manners
		switch v := reflect.ValueOf(&m).Elem().FieldByIndex(f.Index); {
		case f.Name == "bare": // which no other package sets
			m.bare = true
		case v.Kind() == reflect.Bool:
			v.SetBool(true)
		case v.CanInt():
			v.SetInt(3)
		default:
			v.SetUint(3)
		}
		if text := m.words(); text == "" || fromWords(text) != m {
			t.Errorf("%s is told as %q", f.Name, text)
		}
	}
	all := Manners{Omit: allParameters, Efforts: 1<<len(parameters.Efforts()) - 1}
	if got := fromWords(all.words()); got != all {
		t.Errorf("%+v became %+v", all, got)
	}
}

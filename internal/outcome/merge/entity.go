package merge

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
)

// The name of an entity is a letter for the rule that named it and the data that
// the rule used, so that no two rules give the same name.
const (
	entityAll      = "a"  // the only entity of a summary
	entityDocument = "d:" // followed by the document
	entityRecord   = "r:" // followed by document, unit and record
	entityPlace    = "p:" // followed by a hash of the values and their places
	entityKey      = "k:" // followed by the values of the key as JSON
)

// MayMeet reports whether records of other units may belong to the entity, besides
// those of other pieces of its document.
func MayMeet(entity string) bool {
	return entity == entityAll || strings.HasPrefix(entity, entityKey) || strings.HasPrefix(entity, entityPlace)
}

// entityOf names the entity of a record by the record alone. Another piece of the
// document may hold the key, so a document of one record is named by the document
// until Rekey.
func entityOf(s *schema.Schema, a *Accumulator, r Record) string {
	if s.Entities() == schema.Single {
		return entityAll
	}

	if s.Kind == schema.KindRecord {
		return entityDocument + r.Document
	}

	if s.Entities() == schema.ByKey {
		if name, ok := keyName(s, a); ok {
			return name
		}
	}

	// A record that the neighbouring chunk may have found, too, is named by what it cites.
	if r.Shared {
		if name, ok := placeName(a); ok {
			return name
		}
	}
	return fmt.Sprintf("%s%s:%d.%d", entityRecord, r.Document, r.Order.Unit, r.Order.Record)
}

// placeName names a record by its values and the places that it cites, so that two
// neighbouring chunks that found the same record give it the same name. It fails
// for a record that cites nothing.
func placeName(a *Accumulator) (string, bool) {
	h, part := sha256.New(), make([]byte, 0, 256)

	cited := false
	for _, f := range a.Fields {
		for _, c := range f.Candidates {
			for _, m := range c.Mentions {
				if len(m.Citations) == 0 {
					continue
				}
				cited = true

				// Each part is hashed with its length before it, so that no two lists of
				// parts look alike.
				place := placeOf(m)
				part = part[:0]
				for _, text := range [...]string{f.Path, c.Key, place} {
					part = append(append(strconv.AppendInt(part, int64(len(text)), 10), ':'), text...)
				}
				h.Write(part)
			}
		}
	}

	return entityPlace + hex.EncodeToString(h.Sum(nil)), cited
}

// keyName returns the name of the entity that the key fields identify. It fails
// when one of them has no verified value.
func keyName(s *schema.Schema, a *Accumulator) (string, bool) {
	parts := make([]string, 0, len(s.Key))
	for _, path := range s.Key {
		f := a.findField(path)
		p := s.Field(path)
		if f == nil || p == nil {
			return "", false
		}

		// Values that the schema refuses name no entity, though they are cited.
		verified, _ := splitVerified(f.Candidates)
		verified = slices.DeleteFunc(verified, func(o option) bool { return p.Fits(o.Value) != nil })
		if len(verified) == 0 {
			return "", false
		}

		parts = append(parts, chooser{p, verified}.runStrategy().value.key)
	}

	b, _ := json.Marshal(parts) // strings cannot fail
	return entityKey + string(b), true
}

func (a *Accumulator) findField(path string) *Field {
	i, ok := slices.BinarySearchFunc(a.Fields, path, func(f Field, path string) int {
		return strings.Compare(f.Path, path)
	})
	if !ok {
		return nil
	}
	return &a.Fields[i]
}

// Group merges accumulators of the same entity and returns one for each, in the
// order in which the entities were seen first.
func Group(all []Accumulator) []Accumulator {
	byEntity := map[string][]Accumulator{}
	for _, a := range all {
		byEntity[a.Entity] = append(byEntity[a.Entity], a)
	}

	out := make([]Accumulator, 0, len(byEntity))
	for _, same := range byEntity {
		out = append(out, mergePairwise(same))
	}

	slices.SortFunc(out, func(a, b Accumulator) int {
		return cmp.Or(a.First().Compare(b.First()), strings.Compare(a.Entity, b.Entity))
	})
	return out
}

// mergePairwise merges neighbours until one is left: adding one at a time to a large
// accumulator would copy it each time.
func mergePairwise(same []Accumulator) Accumulator {
	for len(same) > 1 {
		half := make([]Accumulator, 0, (len(same)+1)/2)
		for i := 0; i+1 < len(same); i += 2 {
			half = append(half, Merge(same[i], same[i+1]))
		}

		if len(same)%2 == 1 {
			half = append(half, same[len(same)-1])
		}
		same = half
	}
	return same[0]
}

// Rekey names entities by their keys and groups them. It needs all accumulators of
// a document, together or grouped, because any piece of the document may hold the
// key. A document without the whole key stays an entity of its own.
func Rekey(s *schema.Schema, all []Accumulator) []Accumulator {
	all = Group(all)

	if s.Entities() != schema.ByKey {
		return all
	}

	for i := range all {
		if name, ok := keyName(s, &all[i]); ok {
			all[i].Entity = name
		}
	}
	return Group(all)
}

// Named reports whether an accumulator of one record has the name of an entity that
// Accumulate may have given it.
func Named(s *schema.Schema, a Accumulator, document string, order Order) bool {
	r := Record{Document: document, Order: order}
	if a.Entity == entityOf(s, &a, r) {
		return true
	}
	r.Shared = true
	return a.Entity == entityOf(s, &a, r)
}

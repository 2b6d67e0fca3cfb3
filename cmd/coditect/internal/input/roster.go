package input

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// A roster remembers the ids of documents, to refuse a second one of the same.
// It keeps them as hashes, of which no two are equal by chance, so that a
// million of them are small. The zero roster is ready.
type roster struct {
	seen  map[digest]origin
	files []string // that hold a document a line
}

// A digest is the first half of a SHA-256.
type digest [16]byte

func digestOf(id string) digest {
	sum := sha256.Sum256([]byte(id))
	return digest(sum[:16])
}

// An origin is where a document comes from: a line, or if file is 0 the file
// whose path is the document's id.
type origin struct {
	file int32 // index in roster.files, from 1
	line int32 // from 1
}

// file enters a file that holds a document a line.
func (r *roster) file(name string) int32 {
	r.files = append(r.files, name)
	return int32(len(r.files))
}

func (r *roster) add(id string, o origin) error {
	key := digestOf(id)
	if first, ok := r.seen[key]; ok {
		return errs.Field("input", "%s and %s have the same id %q; rename one of them, or leave one out with --exclude",
			r.name(id, first), r.name(id, o), id)
	}
	if r.seen == nil {
		r.seen = make(map[digest]origin)
	}
	r.seen[key] = o
	return nil
}

func (r *roster) name(id string, o origin) string {
	if o.file == 0 {
		return "the file " + id
	}
	return fmt.Sprintf("%s:%d", r.files[o.file-1], o.line)
}

// maxIDBytes is how long the id of a document may be in a submission.
const maxIDBytes = 512

// documentID returns the id under which a document is submitted. One that is too
// long is cut, and its hash keeps it apart from others.
func documentID(id string) mapreduce.DocumentID {
	if len(id) <= maxIDBytes {
		return mapreduce.DocumentID(id)
	}
	sum := digestOf(id)
	end := maxIDBytes - 1 - 2*len(sum)
	for !utf8.RuneStart(id[end]) {
		end--
	}
	return mapreduce.DocumentID(id[:end] + "~" + hex.EncodeToString(sum[:]))
}

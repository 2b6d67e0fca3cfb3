package input

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/folder"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// A roster remembers the ids of documents and refuses duplicates. It keeps hashes
// without chance collisions, so that a million ids need little memory. The zero
// roster is ready.
type roster struct {
	seen      map[digest]origin
	citations map[digest]origin // by document and passage
	files     []string          // files that hold a document a line
}

// A digest is the first half of a SHA-256.
type digest [16]byte

func digestOf(id string) digest {
	sum := sha256.Sum256([]byte(id))
	return digest(sum[:16])
}

// An origin is the origin of a document: a line, or if file is 0 the file whose path
// is the document's id.
type origin struct {
	file int32 // index in roster.files, from 1
	line int32 // from 1
}

// addFile adds a file that holds a document a line.
func (r *roster) addFile(name string) int32 {
	r.files = append(r.files, name)
	return int32(len(r.files))
}

// addCitation notes a citation by the digest of its document and passage.
func (r *roster) addCitation(whole digest, o origin) {
	if r.citations == nil {
		r.citations = make(map[digest]origin)
	}
	r.citations[whole] = o
}

func (r *roster) add(id string, o origin) error {
	key := digestOf(id)
	if first, ok := r.seen[key]; ok {
		return errs.Field("input", "%s and %s have the same id %q; rename one of them, or leave one out with --exclude",
			r.originName(id, first), r.originName(id, o), id)
	}

	if r.seen == nil {
		r.seen = make(map[digest]origin)
	}
	r.seen[key] = o
	return nil
}

func (r *roster) originName(id string, o origin) string {
	if o.file == 0 {
		return fmt.Sprintf("the file %q", folder.Path(id))
	}
	return fmt.Sprintf("%s:%d", r.files[o.file-1], o.line)
}

// ledgerID returns the id of a skipped document in the ledger. It shortens an id that
// is too long, and appends its hash to keep it unique.
func ledgerID(id string) mapreduce.DocumentID {
	if folder.TooLong(id) == "" {
		return mapreduce.DocumentID(id)
	}

	sum := digestOf(id)
	end := mapreduce.MaxDocumentID - 1 - 2*len(sum)
	for !utf8.RuneStart(id[end]) {
		end--
	}
	return mapreduce.DocumentID(id[:end] + "~" + hex.EncodeToString(sum[:]))
}

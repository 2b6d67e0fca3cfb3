package input

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/document"
	"github.com/coditect/mapreduce/worker/document/jsonl"
)

// notOpened is the reason why an archive is skipped.
const notOpened = "an archive; --archives opens it"

// readMany passes on the documents of a file that holds several.
func (r *reader) readMany(ctx context.Context, e document.Entry, f document.Format, in io.Reader, take func(source) error) error {
	switch {
	case f.Kind == jsonl.Kind:
		return r.readLines(ctx, e, in, take)
	case f.Archive && !r.config.Archives:
		return r.addSource(e, take, func() *mapreduce.Document { return skippedDocument(e, notOpened) })
	}
	m := &memberReader{reader: r, take: take}
	return m.read(ctx, e, f, in, f.Archive)
}

// A memberReader passes on the documents in one file, and in the files in it.
type memberReader struct {
	*reader
	take  func(source) error
	count int // documents so far
}

// maxMembers bounds the documents in one file: a file within a file may hold many, too.
const maxMembers = 1_000_000

// read passes on the members of a file. Archives within an archive stay closed. A file
// that cannot be read is in the ledger, and so is the rest of one that is damaged behind
// its first members.
func (m *memberReader) read(ctx context.Context, e document.Entry, f document.Format, in io.Reader, archived bool) error {
	rest := e
	for member, err := range f.Members(ctx, document.Input{Name: e.Name, Content: in}) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return m.add(rest, func() *mapreduce.Document { return skippedDocument(rest, refusalReason(err)) })
		}
		if m.count++; m.count > maxMembers {
			return m.add(rest, func() *mapreduce.Document {
				return skippedDocument(rest, fmt.Sprintf("more than %d documents in one file", maxMembers))
			})
		}
		of := e
		of.Name = document.MemberName(e.Name, member.Name)
		of.ID, of.Size = document.ID(of.Name), int64(len(member.Content))
		if rest.ID == of.ID {
			rest.Name = document.MemberName(e.Name, "the rest")
			rest.ID, rest.Size = document.ID(rest.Name), 0
		}
		if err := m.readMember(ctx, of, member, archived); err != nil {
			return err
		}
	}
	return nil
}

// readMember passes on one member, with what is in it.
func (m *memberReader) readMember(ctx context.Context, e document.Entry, member document.Member, archived bool) error {
	reason := member.Skip
	if reason == "" {
		reason = document.TooLong(e.ID)
	}
	if reason == "" && e.Size > m.config.MaxBytes {
		reason = fmt.Sprintf("too large: more than %d bytes (--document-bytes)", m.config.MaxBytes)
	}
	if reason != "" {
		return m.add(e, func() *mapreduce.Document { return skippedDocument(e, reason) })
	}
	kind, err := m.config.Formats.Detect(e.Name, member.Content, member.MediaType)
	f, _ := m.config.Formats.Format(kind)
	content := bytes.NewReader(member.Content)
	switch {
	case err != nil:
	case member.Name == "", f.Parse != nil && member.MediaType == f.MediaTypes[0]: // what its format has split already
	case kind == jsonl.Kind:
		return m.readLines(ctx, e, content, m.take)
	case f.Archive && (archived || !m.config.Archives):
		reason := notOpened
		if archived {
			reason = "an archive within an archive, which stays closed"
		}
		return m.add(e, func() *mapreduce.Document { return skippedDocument(e, reason) })
	case f.Members != nil:
		return m.read(ctx, e, f, content, archived || f.Archive)
	}
	return m.add(e, func() *mapreduce.Document {
		d := m.decodeDocument(ctx, e, member.Content, member.MediaType)
		if d.Skip == "" {
			d.Metadata = member.Metadata
		}
		return d
	})
}

// add passes on a document under its id in the ledger.
func (m *memberReader) add(e document.Entry, read func() *mapreduce.Document) error {
	id := ledgerID(e.ID)
	if err := m.roster.add(string(id), origin{}); err != nil {
		return err
	}
	return m.take(source{id: string(id), read: read})
}

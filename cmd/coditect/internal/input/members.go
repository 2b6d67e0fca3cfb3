package input

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"

	"github.com/coditect/mapreduce/api/folder"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/mail"
	"github.com/coditect/mapreduce/internal/document/plain"
)

// notOpened is the reason why an archive is skipped.
const notOpened = "an archive; --archives opens it"

// readMany passes on the documents of a file that holds several.
func (r *reader) readMany(ctx context.Context, e folder.Entry, f document.Format, in io.Reader, take func(source) error) error {
	switch {
	case f.Kind == plain.JSONLinesKind:
		return r.readLines(ctx, e, in, take)
	case f.Archive && !r.config.Archives:
		return r.addSource(e, take, func() *mapreduce.Document { return skippedDocument(e, notOpened) })
	}
	m := &memberReader{reader: r, take: take}
	return m.read(ctx, e, f, in, within{archive: f.Archive})
}

// A memberReader passes on the documents in one file, and in the files in it.
type memberReader struct {
	*reader
	take  func(source) error
	count int // documents so far
}

// within is what a file is in, or is itself.
type within struct {
	archive  bool
	messages int
}

// read passes on the members of a file. Archives within an archive stay closed, and so do
// messages within many. A file that cannot be read is in the ledger, and so is the rest of
// one that is damaged behind its first members.
func (m *memberReader) read(ctx context.Context, e folder.Entry, f document.Format, in io.Reader, of within) error {
	rest, limits, most := e, m.config.Members, m.config.Members.Documents
	if limits.Nesting -= of.messages; limits.Nesting < 0 && !f.Archive {
		return m.add(e, func() *mapreduce.Document { return skippedDocument(e, mail.TooDeep) })
	}
	if limits.Nesting <= 0 {
		limits.Nesting = -1 // not the default
	}
	empty := true

	for member, err := range f.Members(ctx, document.Input{Name: e.Name, Content: in, Members: limits}) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return m.add(rest, func() *mapreduce.Document { return skippedDocument(rest, refusalReason(err)) })
		}

		empty = false
		if m.count++; m.count > most {
			return m.add(rest, func() *mapreduce.Document {
				return skippedDocument(rest, fmt.Sprintf("more than %d documents in one file (--file-documents)", most))
			})
		}

		own := e
		own.Name = document.MemberName(e.Name, member.Name)
		own.ID, own.Size = folder.ID(own.Name), int64(len(member.Content))

		// The first member may have the name of the file, which the rest then cannot have.
		if rest.ID == own.ID {
			rest.Name = document.MemberName(e.Name, "the rest")
			rest.ID, rest.Size = folder.ID(rest.Name), 0
		}

		if err := m.readMember(ctx, own, member, within{of.archive, of.messages + member.Messages}); err != nil {
			return err
		}
	}

	if empty {
		return m.add(e, func() *mapreduce.Document { return skippedDocument(e, "no document is in it") })
	}
	return nil
}

// readMember passes on one member, with what is in it.
func (m *memberReader) readMember(ctx context.Context, e folder.Entry, member document.Member, of within) error {
	reason := member.Skip
	if reason == "" {
		reason = folder.TooLong(e.ID)
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
	case kind == plain.JSONLinesKind:
		return m.readLines(ctx, e, content, m.take)
	case f.Archive && (of.archive || !m.config.Archives):
		reason := notOpened
		if of.archive {
			reason = "an archive within an archive, which stays closed"
		}
		return m.add(e, func() *mapreduce.Document { return skippedDocument(e, reason) })
	case f.Members != nil:
		return m.read(ctx, e, f, content, within{of.archive || f.Archive, of.messages})
	}

	return m.add(e, func() *mapreduce.Document {
		d := m.decodeDocument(ctx, e, member.Content, member.MediaType)
		if d.Skip == "" && len(member.Metadata) > 0 {
			// The title that was found in the text stays unless the member brought its own.
			merged := maps.Clone(d.Metadata)
			if merged == nil {
				merged = map[string]string{}
			}
			maps.Copy(merged, member.Metadata)
			d.Metadata = merged
		}
		return d
	})
}

// add passes on a document under its id in the ledger.
func (m *memberReader) add(e folder.Entry, read func() *mapreduce.Document) error {
	id := ledgerID(e.ID)
	if err := m.roster.add(string(id), origin{}); err != nil {
		return err
	}
	return m.take(source{id: string(id), read: read})
}

package zipfile

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/coditect/mapreduce/internal/document"
)

// Kinds are the names of the formats.
const (
	Zip document.Kind = "zip"
	Tar document.Kind = "tar"
)

// ZipFormat returns the format of zip files that are no documents themselves.
func ZipFormat() document.Format {
	return document.Format{
		Kind: Zip, Archive: true, Members: zipMembers,
		Sniff: func(begin []byte) document.Match {
			if bytes.HasPrefix(begin, []byte("PK\x03\x04")) {
				return document.Begins
			}
			return document.Excluded
		},
		Extensions: []string{".zip"},
		MediaTypes: []string{"application/zip", "application/x-zip-compressed"},
	}
}

// TarFormat returns the format of tar files, packed by gzip or not.
func TarFormat() document.Format {
	return document.Format{
		Kind: Tar, Archive: true, Members: tarMembers,
		Sniff: func(begin []byte) document.Match {
			switch {
			case len(begin) > 262 && string(begin[257:262]) == "ustar":
				return document.Certain
			case bytes.HasPrefix(begin, []byte(gzipMagic)):
				return document.Possible
			}
			return document.Excluded
		},
		Extensions: []string{".tar", ".tgz", ".gz"},
		MediaTypes: []string{"application/x-tar", "application/gzip"},
	}
}

const gzipMagic = "\x1f\x8b"

// flags set the limits of archives.
var flags = Flags{Bytes: "archive-unpacked", Entries: "archive-entries", Unpacked: "archive-unpacked", Ratio: "archive-ratio"}

// names makes the names of members unique, and tells those that lead out of a folder.
type names map[string]int

// unique returns a name that no other member has.
func (n names) unique(name string) string {
	name = strings.TrimPrefix(path.Clean("/"+strings.ReplaceAll(name, `\`, "/")), "/")
	for {
		n[name]++
		if n[name] == 1 {
			return name
		}
		name = fmt.Sprintf("%s#%d", name, n[name])
	}
}

// whyOutside returns the reason why a name is none of a file in a folder, or "".
func whyOutside(name string) string {
	name = strings.ReplaceAll(name, `\`, "/")
	if strings.HasPrefix(name, "/") || len(name) > 1 && name[1] == ':' {
		return "its name leads out of the archive"
	}

	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "its name leads out of the archive"
		}
	}
	return ""
}

// isHidden reports whether a member is one that is not seen, like hidden files of folders.
func isHidden(name string) bool {
	for part := range strings.SplitSeq(strings.ReplaceAll(name, `\`, "/"), "/") {
		if strings.HasPrefix(part, ".") && part != "." && part != ".." || part == "__MACOSX" {
			return true
		}
	}
	return false
}

// zipMembers implements the Members of document.Format.
func zipMembers(ctx context.Context, in document.Input) document.Members {
	return func(yield func(document.Member, error) bool) {
		limits := in.Members.WithDefaults()
		z, err := New(ctx, in.Content, document.Limits{Bytes: limits.Unpacked, Entries: limits.Entries, Unpacked: limits.Unpacked, Ratio: limits.Ratio}, flags)
		if err != nil {
			yield(document.Member{}, err)
			return
		}

		seen := names{}
		for i, name := range z.Names() {
			if strings.HasSuffix(name, "/") || isHidden(name) {
				continue
			}

			m := document.Member{Name: seen.unique(name), Skip: whyOutside(name)}
			if m.Skip == "" {
				if m.Content, err = readZip(z, i, limits.Bytes); err != nil {
					m.Content, m.Skip = nil, skipReason(err)
				}
			}

			// Once ctx has ended, the error of a member says nothing of the member.
			if ctx.Err() != nil {
				yield(document.Member{}, context.Cause(ctx))
				return
			}

			if !yield(m, nil) {
				return
			}
		}
	}
}

// readZip returns the content of a member.
func readZip(z *Reader, i int, most int64) ([]byte, error) {
	e, err := z.OpenAt(i)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	return readBounded(e, most)
}

// tooLarge begins the reason to skip a member that is larger than a document may be.
const tooLarge = "too large"

// readBounded reads a member of at most so many bytes.
func readBounded(r io.Reader, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(data)) > most {
		return nil, document.Refuse(tooLarge+": more than %d bytes (--document-bytes)", most)
	}
	return data, err
}

func skipReason(err error) string {
	if refused, ok := errors.AsType[*document.RefusedError](err); ok {
		return refused.Reason
	}
	return "unreadable: " + err.Error()
}

// tarMembers implements the Members of document.Format.
func tarMembers(ctx context.Context, in document.Input) document.Members {
	return func(yield func(document.Member, error) bool) {
		limits := in.Members.WithDefaults()
		meter := &meter{ctx: ctx, in: bufio.NewReader(in.Content)}
		var content io.Reader = meter

		// A file packed by gzip is known by its first bytes, whatever it is called.

		if begin, err := meter.in.Peek(len(gzipMagic)); err == nil && string(begin) == gzipMagic {
			unpacked, err := gzip.NewReader(meter)
			if err != nil {
				yield(document.Member{}, document.Refuse("damaged: %v", err))
				return
			}
			content = &ratioMeter{in: unpacked, packed: meter, limits: limits}
		}

		if err := eachTar(tar.NewReader(content), limits, yield); err != nil {
			yield(document.Member{}, err)
		}
	}
}

// eachTar yields the members of a tar file.
func eachTar(t *tar.Reader, limits document.MemberLimits, yield func(document.Member, error) bool) error {
	seen := names{}

	for n := 0; ; n++ {
		h, err := t.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, tar.ErrInsecurePath):
			return tarError(err)
		case n == limits.Entries:
			return document.Refuse("an archive of more than %d entries (--%s)", n, flags.Entries)
		case h.Typeflag != tar.TypeReg || isHidden(h.Name):
			continue
		}

		m := document.Member{Name: seen.unique(h.Name), Skip: whyOutside(h.Name)}
		// A member that is too large leaves the others readable; other errors are of the
		// file.
		if m.Skip == "" {
			m.Content, err = readBounded(t, limits.Bytes)
			if refused, ok := errors.AsType[*document.RefusedError](err); ok && strings.HasPrefix(refused.Reason, tooLarge) {
				m.Content, m.Skip = nil, refused.Reason
			} else if err != nil {
				return tarError(err)
			}
		}

		if !yield(m, nil) {
			return nil
		}
	}
}

// tarError turns an error of the library into one that refuses the file.
func tarError(err error) error {
	if _, ok := errors.AsType[*document.RefusedError](err); ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return document.Refuse("damaged: %v", err)
}

// A meter counts the bytes that are read.
type meter struct {
	ctx  context.Context //nolint:containedctx // it lives as long as one call
	in   *bufio.Reader
	read int64
}

// Read implements io.Reader.
func (m *meter) Read(p []byte) (int, error) {
	if m.ctx.Err() != nil {
		return 0, context.Cause(m.ctx)
	}
	n, err := m.in.Read(p)
	m.read += int64(n)
	return n, err
}

// A ratioMeter bounds what is unpacked.
type ratioMeter struct {
	in     io.Reader
	packed *meter
	limits document.MemberLimits
	read   int64
}

// Read implements io.Reader.
func (m *ratioMeter) Read(p []byte) (int, error) {
	n, err := m.in.Read(p)
	m.read += int64(n)
	switch {
	case m.read > m.limits.Unpacked:
		return 0, document.Refuse("expands to more than %d bytes (--%s)", m.limits.Unpacked, flags.Unpacked)
	case m.read > 1<<20 && m.read/m.limits.Ratio > m.packed.read:
		return 0, document.Refuse("expands to more than %d times its size (--%s)", m.limits.Ratio, flags.Ratio)
	}
	return n, err
}

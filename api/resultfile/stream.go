package resultfile

import (
	"bytes"
	"crypto/sha256"
	"hash"
	"io"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// A Reader calls sink with the parts of a result, in order, each time that it is called.
type Reader func(sink func(*mapreduce.ResultPart) error) error

// maxKept is how many bytes of a section are kept in memory. A section that is indented
// has to fit, with its commas.
const maxKept = 2 * maxIndented

// MaxHeld is how many bytes of sections Write holds at most. Beside these it holds the
// references of all citations.
const MaxHeld = 8 * maxKept

// Write writes result.json to out, and needs no file for it: a section that is small is
// kept in memory, and for each that is large the result is read once more, up to eight
// times in all and three for most. If the result is another one then, as that of a job
// which goes on, the error is of the kind errs.Unavailable; what was written is to be
// thrown away then.
func Write(out io.Writer, read Reader) error {
	sections, err := NewSections(func(section string) (Scratch, error) {
		return &kept{section: section, read: read, sum: sha256.New()}, nil
	})
	if err != nil {
		return err
	}

	var job *mapreduce.Job
	err = read(func(p *mapreduce.ResultPart) error {
		if p.Job != nil {
			job = p.Job
		}
		_, err := sections.AddPart(p)
		return err
	})
	if err != nil {
		return err
	}
	if job == nil {
		return ErrEndedEarly
	}

	// The references are not needed any more, and there may be very many.
	sections.cited = refSet{}
	return sections.WriteFile(out, job)
}

// A kept is a scratch that keeps its bytes while they are few, and else reads them again.
type kept struct {
	section string
	read    Reader
	data    bytes.Buffer // all that was written, unless it is large
	large   bool
	sum     hash.Hash // of all that was written
}

// Write implements Scratch.
func (k *kept) Write(p []byte) (int, error) {
	k.sum.Write(p)
	if !k.large && k.data.Len()+len(p) > maxKept {
		k.large, k.data = true, bytes.Buffer{}
	}
	if !k.large {
		k.data.Write(p)
	}
	return len(p), nil
}

// MoveTo implements Scratch.
func (k *kept) MoveTo(out io.Writer) error {
	if !k.large {
		_, err := k.data.WriteTo(out)
		return err
	}

	again := &passed{out: out, sum: sha256.New()}
	sections, err := NewSections(func(section string) (Scratch, error) {
		// All other sections are left out.
		if section == k.section {
			return again, nil
		}
		return nil, nil
	})
	if err != nil {
		return err
	}

	err = k.read(func(p *mapreduce.ResultPart) error {
		_, err := sections.AddPart(p)
		return err
	})

	if err == nil && !bytes.Equal(k.sum.Sum(nil), again.sum.Sum(nil)) {
		err = errs.New(errs.Unavailable, "the %s of the result changed while they were read, as the job goes on: ask again, or when the job has ended", k.section)
	}
	return err
}

// A passed passes on what is written to it.
type passed struct {
	out io.Writer
	sum hash.Hash
}

// Write implements Scratch.
func (s *passed) Write(p []byte) (int, error) {
	s.sum.Write(p)
	return s.out.Write(p)
}

// MoveTo implements Scratch: nothing is left to be moved.
func (*passed) MoveTo(io.Writer) error { return nil }

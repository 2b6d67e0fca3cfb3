package runners

import (
	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/internal/document"
)

// memberFlags are the flags that say what is read of files of several documents. The
// process that submits them keeps to these limits.
type memberFlags struct {
	limits   document.MemberLimits
	unpacked int64 // MiB
}

// AddFlags adds the flags of commands that read the inputs of jobs.
func (m *memberFlags) AddFlags(f *pflag.FlagSet) {
	d := document.MemberLimits{}.WithDefaults()
	f.IntVar(&m.limits.Documents, "file-documents", d.Documents, "largest number of documents in one archive or mailbox, with those of files within it")
	f.IntVar(&m.limits.Entries, "archive-entries", d.Entries, "largest number of entries of an archive")
	f.Int64Var(&m.unpacked, "archive-unpacked", d.Unpacked>>20, "largest size of an archive when it is unpacked, in MiB")
	f.Int64Var(&m.limits.Ratio, "archive-ratio", d.Ratio, "largest ratio of the unpacked size to the packed size of an entry of an archive, or of a packed tar file")
	f.IntVar(&m.limits.Attachments, "mail-attachments", d.Attachments, "largest number of attachments of a message")
	f.IntVar(&m.limits.Nesting, "mail-nesting", d.Nesting, "largest depth of messages within messages, as attachments, that are opened")
}

// Limits returns the limits, or an error that names a flag with a value that makes no
// sense.
func (m *memberFlags) Limits() (document.MemberLimits, error) {
	if *m == (memberFlags{}) { // of a command without the flags
		return document.MemberLimits{}, nil
	}

	for _, f := range []struct {
		name               string
		value, least, most int64
	}{
		{"file-documents", int64(m.limits.Documents), 1, 100_000_000},
		{"archive-entries", int64(m.limits.Entries), 1, 10_000_000},
		{"archive-unpacked", m.unpacked, 1, 1 << 20},
		{"archive-ratio", m.limits.Ratio, 1, 1_000_000},
		{"mail-attachments", int64(m.limits.Attachments), 1, 1_000_000},
		{"mail-nesting", int64(m.limits.Nesting), 0, 100},
	} {
		if f.value < f.least || f.value > f.most {
			return document.MemberLimits{}, exit.UsageError("--%s: must be from %d to %d", f.name, f.least, f.most)
		}
	}

	l := m.limits
	l.Unpacked = m.unpacked << 20
	if l.Nesting == 0 {
		l.Nesting = -1 // 0 is the default
	}
	return l, nil
}

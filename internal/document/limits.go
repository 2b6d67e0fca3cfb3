package document

import (
	"cmp"
	"time"

	"github.com/coditect/mapreduce/api/folder"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// DefaultMaxBytes is the default bound on the size of a document.
const DefaultMaxBytes = folder.DefaultMaxBytes

// Limits bound what reading one document may take. Time is that of a processor which works
// for it, not that of the clock. Zero fields have their defaults: DefaultMaxBytes, 30
// seconds, 10,000 pages, 10,000 entries, 256 MiB unpacked, 300 times the packed size, 256
// elements within each other, and 4,000,000 cells.
type Limits mapreduce.DocumentLimits

// WithDefaults returns the limits with their defaults in place of zeros.
func (l Limits) WithDefaults() Limits {
	return Limits{
		Bytes: cmp.Or(l.Bytes, DefaultMaxBytes), Time: cmp.Or(l.Time, 30*time.Second), Pages: cmp.Or(l.Pages, 10_000),
		Entries: cmp.Or(l.Entries, 10_000), Unpacked: cmp.Or(l.Unpacked, 256<<20), Ratio: cmp.Or(l.Ratio, 300),
		Nesting: cmp.Or(l.Nesting, 256), Cells: cmp.Or(l.Cells, 4_000_000),
	}
}

// Within returns the lower one of each limit of l and most. Zero limits nothing.
func (l Limits) Within(most Limits) Limits {
	return Limits{
		Bytes: lower(l.Bytes, most.Bytes), Time: lower(l.Time, most.Time), Pages: lower(l.Pages, most.Pages),
		Entries: lower(l.Entries, most.Entries), Unpacked: lower(l.Unpacked, most.Unpacked), Ratio: lower(l.Ratio, most.Ratio),
		Nesting: lower(l.Nesting, most.Nesting), Cells: lower(l.Cells, most.Cells),
	}
}

// lower returns the lower one of two limits, of which zero is none.
func lower[T ~int | ~int64](a, b T) T {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// MemberLimits bound what is read of a file of several documents. Zero fields have their
// defaults.
type MemberLimits struct {
	Bytes       int64 // of one of the documents; DefaultMaxBytes
	Documents   int   // in one file, with those of files within it; 1,000,000
	Entries     int   // of an archive; 100,000
	Unpacked    int64 // bytes of all entries of an archive, and of the archive; 4 GiB
	Ratio       int64 // of the unpacked to the packed bytes of an entry above 1 MiB; 300
	Attachments int   // of a message; 1,000
	Nesting     int   // messages within a message, each in the one before; 5, and a negative number is none
}

// WithDefaults returns the limits with their defaults in place of zeros.
func (l MemberLimits) WithDefaults() MemberLimits {
	return MemberLimits{
		Bytes: cmp.Or(l.Bytes, DefaultMaxBytes), Documents: cmp.Or(l.Documents, 1_000_000), Entries: cmp.Or(l.Entries, 100_000),
		Unpacked: cmp.Or(l.Unpacked, 4<<30), Ratio: cmp.Or(l.Ratio, 300), Attachments: cmp.Or(l.Attachments, 1000), Nesting: cmp.Or(l.Nesting, 5),
	}
}

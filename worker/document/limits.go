package document

import "cmp"

// Limits bound what reading one document may take. Zero fields have their defaults.
type Limits struct {
	Bytes    int64 // of the file, and of its text; DefaultMaxBytes
	Entries  int   // of a packed document, such as DOCX; 10,000
	Unpacked int64 // bytes of its entries that are read, together; 256 MiB
	Ratio    int64 // of the unpacked to the packed bytes of an entry above 1 MiB; 300
	Nesting  int   // XML elements within each other; 256
	Cells    int   // of all sheets together, with those that are empty; 4,000,000
}

// WithDefaults returns the limits with their defaults in place of zeros.
func (l Limits) WithDefaults() Limits {
	return Limits{
		Bytes: cmp.Or(l.Bytes, DefaultMaxBytes), Entries: cmp.Or(l.Entries, 10_000), Unpacked: cmp.Or(l.Unpacked, 256<<20),
		Ratio: cmp.Or(l.Ratio, 300), Nesting: cmp.Or(l.Nesting, 256), Cells: cmp.Or(l.Cells, 4_000_000),
	}
}

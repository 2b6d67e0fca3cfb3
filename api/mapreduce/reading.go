package mapreduce

import "time"

// A PageText is which text of web pages is read.
type PageText uint8

// The texts of web pages.
const (
	PageTextDefault PageText = iota // what the worker reads by itself
	PageTextMain                    // the main text, without navigation and advertisements
	PageTextFull                    // all text
)

// Reading is how the documents of a job are read. Its zero leaves that to the workers.
// Passwords, and the program that reads pictures, are the workers' own and stand in no job.
type Reading struct {
	PageText PageText
	Limits   DocumentLimits
}

// DocumentLimits bound what reading one document may take. A zero field sets no limit of
// its own. A worker keeps to the lower one of these and its own.
type DocumentLimits struct {
	Bytes    int64         // of the file, and of its text
	Time     time.Duration // of reading it, beside programs that read pictures
	Pages    int           // of a document that has pages
	Entries  int           // of a packed document, such as DOCX
	Unpacked int64         // bytes of its entries that are read, together
	Ratio    int64         // of the unpacked to the packed bytes of an entry above 1 MiB
	Nesting  int           // elements within each other
	Cells    int           // of all sheets together, with those that are empty
}

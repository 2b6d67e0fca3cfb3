package document

import "iter"

// A Member is a document within a file of several: a message of a mailbox, an attachment
// of a message, a file of an archive.
type Member struct {
	// Name is the member's within its file, with forward slashes. It is empty for what the
	// file itself says, such as the text of a message with attachments. Names are unique
	// within a file, and lead out of no folder.
	Name string
	// MediaType is declared, with its parameters; it may be empty.
	MediaType string
	Content   []byte
	Metadata  map[string]string // of the member; may be nil
	Skip      string            // the reason why it cannot be read, or "" if it can
	Messages  int               // within which it is, of those that the file holds within each other
}

// Members are the documents of one file. An error ends them: it is a RefusedError if the
// file is none of its format or exceeds its limits.
type Members = iter.Seq2[Member, error]

// memberMark stands between the name of a file and that of its member.
const memberMark = "!/"

// MemberName returns the name of a member of a file as a document of its own, such as
// "archive.zip!/name".
func MemberName(file, member string) string {
	if member == "" {
		return file
	}
	return file + memberMark + member
}

package mail

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/jhillyerd/enmime/v2"
	"golang.org/x/text/encoding/htmlindex"

	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/internal/document"
)

// MailboxKind is the name of the format of mailboxes.
const MailboxKind document.Kind = "mbox"

// MailboxFormat returns the format of mailboxes, each a file of many messages.
func MailboxFormat() document.Format {
	return document.Format{
		Kind: MailboxKind, Members: mailboxMembers,
		Sniff: func(begin []byte) document.Match {
			first, rest, _ := bytes.Cut(begin, []byte("\n"))
			second, _, _ := bytes.Cut(rest, []byte("\n"))
			switch {
			case !bytes.HasPrefix(first, []byte(separator)):
				return document.Excluded
			case isHeader(second) && envelopePattern.Match(first):
				return document.Begins
			}
			return document.Possible
		},
		Extensions: []string{".mbox", ".mbx"},
		MediaTypes: []string{"application/mbox"},
	}
}

// envelopePattern finds the address or the year in the line above a message.
var envelopePattern = regexp.MustCompile(`@| (19|20)[0-9][0-9]`)

// separator begins the line above each message of a mailbox.
const separator = "From "

// charsetReader decodes charsets of headers.
func charsetReader(charset string, in io.Reader) (io.Reader, error) {
	enc, err := htmlindex.Get(charset)
	if err != nil {
		return nil, err
	}
	return enc.NewDecoder().Reader(in), nil
}

// members implements the Members of document.Format: the message, and its attachments.
func members(ctx context.Context, in document.Input) document.Members {
	return func(yield func(document.Member, error) bool) {
		limits := in.Members.WithDefaults()

		data, err := io.ReadAll(io.LimitReader(in.Content, limits.Bytes+1))
		if err != nil {
			yield(document.Member{}, fmt.Errorf("mail: %w", err))
			return
		}

		s := &splitter{ctx: ctx, yield: yield, limits: limits, threads: threads{}}
		if int64(len(data)) > limits.Bytes {
			yield(document.Member{Skip: s.tooLarge()}, nil)
			return
		}

		s.message("", data, 0)
	}
}

// A splitter yields messages and their attachments.
type splitter struct {
	ctx     context.Context //nolint:containedctx // it lives as long as one call
	yield   func(document.Member, error) bool
	limits  document.MemberLimits
	threads threads
}

// tooLarge returns the reason to skip a message of too many bytes.
func (s *splitter) tooLarge() string {
	return fmt.Sprintf("too large: more than %d bytes (--document-bytes)", s.limits.Bytes)
}

// message yields a message, and under its name its attachments. Within says how many
// messages it is in. It returns false when that is to end.
func (s *splitter) message(name string, data []byte, within int) bool {
	if s.ctx.Err() != nil {
		s.yield(document.Member{}, context.Cause(s.ctx))
		return false
	}

	self := document.Member{Name: name, MediaType: mediaType, Content: data, Messages: within}

	root, err := readParts(bytes.NewReader(data))
	if err != nil { // the worker that parses it says so, too
		if refused, ok := errors.AsType[*document.RefusedError](err); ok {
			self.Content, self.Skip = nil, refused.Reason
		}
		return s.yield(self, nil)
	}

	m := newMessage(root)
	self.Metadata = s.metadataOf(m)

	if !s.yield(self, nil) {
		return false
	}

	seen := map[string]int{}
	for i, p := range m.attachments {
		if i == s.limits.Attachments {
			return s.yield(document.Member{
				Name: memberName(name, "more"), Skip: fmt.Sprintf("a message of more than %d attachments (--mail-attachments)", i),
			}, nil)
		}
		if !s.yieldAttachment(memberName(name, unique(seen, attachmentName(p, i))), p, self.Metadata, within+1) {
			return false
		}
	}

	return true
}

// yieldAttachment yields an attachment, which is in so many messages. It returns false when that
// is to end.
func (s *splitter) yieldAttachment(name string, p *enmime.Part, of map[string]string, within int) bool {
	switch {
	case p.ContentType != mediaType:
		return s.yield(document.Member{Name: name, MediaType: declaredType(p.ContentType), Content: p.Content, Metadata: of, Messages: within}, nil)
	case within > s.limits.Nesting:
		return s.yield(document.Member{Name: name, Skip: TooDeep}, nil)
	}
	return s.message(name, p.Content, within)
}

// TooDeep is the reason to skip a message that is within more messages than are opened.
const TooDeep = "a message nested too deeply in other messages, which is not opened (--mail-nesting)"

// memberName returns the name of an attachment within the file.
func memberName(message, attachment string) string {
	if message == "" {
		return attachment
	}
	return document.MemberName(message, attachment)
}

// unique returns a name that no attachment before had.
func unique(seen map[string]int, name string) string {
	for {
		seen[name]++
		if seen[name] == 1 {
			return name
		}
		name += "#" + strconv.Itoa(seen[name])
	}
}

// declaredType returns a media type if it is worth anything: many programs declare all
// attachments alike, and the bytes tell.
func declaredType(mediaType string) string {
	if strings.HasPrefix(mediaType, "text/") && mediaType != "text/plain" {
		return mediaType
	}
	return ""
}

// metadataOf returns what is known of a message beside its text.
func (s *splitter) metadataOf(m *message) map[string]string {
	metadata := map[string]string{}
	for key, header := range map[string]string{"from": "From", "to": "To", "date": "Date", "subject": "Subject"} {
		if value := m.value(header); value != "" {
			metadata[key] = shorten.Bytes(value, maxMetadata)
		}
	}

	// Messages of one conversation are known by their ids.
	id := messageID(m.header.Get("Message-Id"))
	if id != "" {
		metadata["message_id"] = shorten.Bytes(id, maxMetadata)
	}

	if thread := s.threads.of(id, m.header.Get("References"), m.header.Get("In-Reply-To")); thread != "" {
		metadata["thread"] = shorten.Bytes(thread, maxMetadata)
	}

	return metadata
}

// maxMetadata bounds a value of metadata, in bytes.
const maxMetadata = 300

// threads has the first message of the conversation that messages belong to, by their id.
type threads map[string]string

// maxThreads bounds how many messages are remembered.
const maxThreads = 1_000_000

// of returns the id of the message with which a conversation began: the first of the
// references, or that of the message which is answered, or the message itself.
func (t threads) of(id, references, reply string) string {
	root := id
	if first := messageID(references); first != "" {
		root = first
	} else if first := messageID(reply); first != "" {
		root = first
	}

	// The message that is answered may itself have been an answer.
	if earlier, ok := t[root]; ok {
		root = earlier
	}

	if id != "" && len(t) < maxThreads {
		t[id] = root
	}

	return root
}

// messageID returns the first id of a header, without its brackets.
func messageID(header string) string {
	_, rest, ok := strings.Cut(header, "<")
	if !ok {
		return ""
	}

	id, _, ok := strings.Cut(rest, ">")
	if !ok {
		return ""
	}

	return strings.ToValidUTF8(strings.TrimSpace(id), "")
}

// mailboxMembers implements the Members of document.Format.
func mailboxMembers(ctx context.Context, in document.Input) document.Members {
	return func(yield func(document.Member, error) bool) {
		s := &splitter{ctx: ctx, yield: yield, limits: in.Members.WithDefaults(), threads: threads{}}
		if err := eachMessage(in.Content, s); err != nil {
			yield(document.Member{}, err)
		}
	}
}

// eachMessage passes on the messages of a mailbox, each held in memory alone. A line that
// begins a message follows an empty one, and a header follows it.
func eachMessage(content io.Reader, s *splitter) error {
	r := bufio.NewReaderSize(content, 64<<10)

	b := messageBuffer{whole: true, most: s.limits.Bytes}
	number, blank := 0, true

	for {
		line, err := r.ReadSlice('\n')
		partial := errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !partial && !errors.Is(err, io.EOF) {
			return fmt.Errorf("mail: %w", err)
		}

		// A line begins a message only if a header follows it.
		begins := blank && bytes.HasPrefix(line, []byte(separator)) && b.whole
		switch {
		case begins:
			next, _ := r.Peek(200) // shorter at the end
			if begins = isHeader(next); !begins {
				b.write(line)
			}
		case b.whole && isQuoted(line):
			b.write(line[1:])
		default:
			b.write(line)
		}

		if begins || errors.Is(err, io.EOF) {
			if number > 0 && !b.pass(s, number) {
				return nil
			}
			b.reset()
			number++
		}

		if errors.Is(err, io.EOF) {
			return nil
		}

		b.whole = !partial
		blank = !partial && len(bytes.TrimRight(line, "\r\n")) == 0
	}
}

// isQuoted reports whether a line of a message would be a separator but for its marks.
func isQuoted(line []byte) bool {
	rest := bytes.TrimLeft(line, ">")
	return len(rest) < len(line) && bytes.HasPrefix(rest, []byte(separator))
}

// A messageBuffer holds a message of a mailbox.
type messageBuffer struct {
	data  []byte
	most  int64 // bytes
	long  bool  // it has more
	whole bool  // the next bytes begin a line
}

func (b *messageBuffer) write(line []byte) {
	if b.long = b.long || int64(len(b.data)+len(line)) > b.most; !b.long {
		b.data = append(b.data, line...)
	}
}

func (b *messageBuffer) reset() { *b = messageBuffer{most: b.most} }

// pass yields the message.
func (b *messageBuffer) pass(s *splitter, number int) bool {
	name := strconv.Itoa(number)
	if b.long {
		return s.yield(document.Member{Name: name, Skip: s.tooLarge()}, nil)
	}
	return s.message(name, b.data, 0)
}

package browser

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"sync"

	"golang.org/x/sys/unix"
)

// Bounds of what Chromium says in one message, in bytes.
const (
	maxAnswer = 64 << 20 // of an answer to a call: a page of maxHTML units, each escaped
	maxEvent  = 8 << 20  // of an event, with the longest address that Chromium knows
)

// tooLarge is the code of the error in the place of an answer of more than maxAnswer bytes.
const tooLarge = -32050

// events are those that anybody listens to: this package, and chromedp to know its tabs.
// chromedp asks for many more. A page decides how many of those there are, and what is in
// them: whatever it writes to its console is one.
var events = map[string]bool{
	"Target.attachedToTarget": true, "Target.detachedFromTarget": true,
	"Target.targetCreated": true, "Target.targetInfoChanged": true, "Target.targetDestroyed": true, "Target.targetCrashed": true,
	"Inspector.targetCrashed": true, "Inspector.detached": true,
	"Page.lifecycleEvent": true, "Page.javascriptDialogOpening": true,
	"Page.frameRequestedNavigation": true, "Page.frameStartedLoading": true, "Page.frameStoppedLoading": true,
}

// How Chromium begins and ends its messages. A quote within a text is escaped, so no text of
// a page looks like these.
var (
	answerHead  = regexp.MustCompile(`^\{"id":(\d{1,18}),`)
	eventHead   = regexp.MustCompile(`^\{"method":"([A-Za-z.]{1,100})",`)
	frameHead   = regexp.MustCompile(`^\{"method":"Page\.frame[A-Za-z]{1,100}","params":\{"frameId":"([0-9A-Za-z]{1,100})"`)
	sessionTail = regexp.MustCompile(`,"sessionId":"([0-9A-Za-z-]{1,100})"\}$`)
)

// A filter bounds what Chromium says in one message.
type filter struct {
	maxAnswer, maxEvent int                     // in bytes
	isPage              func(frame string) bool // reports whether a frame is the page of a tab
}

// relay passes on what Chromium says, message by message, until it ends: the events that
// anybody listens to, and answers. Where an answer is too large, an error stands in its
// place, as its caller waits for it.
func (f filter) relay(to io.Writer, from io.Reader) error {
	in := bufio.NewReaderSize(from, 64<<10)
	for {
		m, err := f.readMessage(in)
		if err != nil {
			return err
		}
		if m = m.allowed(); len(m.data) == 0 {
			continue
		}
		if _, err := to.Write(append(m.data, 0)); err != nil {
			return err
		}
	}
}

// A message is one of Chromium's, of which as much is kept as may be passed on.
type message struct {
	data []byte // its beginning, up to most bytes
	size int
	most int
	end  []byte // its last bytes
}

// maxEnd is how many of a message's last bytes are kept: they name its session.
const maxEnd = 200

// readMessage reads a message up to the zero byte behind it.
func (f filter) readMessage(in *bufio.Reader) (*message, error) {
	m := new(message)
	for {
		part, err := in.ReadSlice(0)
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}

		if m.size == 0 {
			m.most = f.mostOf(part)
		}

		part = bytes.TrimSuffix(part, []byte{0})
		m.size += len(part)
		m.data = append(m.data, part[:min(len(part), max(0, m.most-len(m.data)))]...)
		m.end = append(m.end, part[max(0, len(part)-maxEnd):]...)
		m.end = append(m.end[:0], m.end[max(0, len(m.end)-maxEnd):]...)

		if err == nil {
			return m, nil
		}
	}
}

// mostOf returns how many bytes a message may have that begins with head; 0 for one that is
// not waited for.
func (f filter) mostOf(head []byte) int {
	if answerHead.Match(head) {
		return f.maxAnswer
	}
	if m := eventHead.FindSubmatch(head); m != nil && !events[string(m[1])] {
		return 0
	}

	// chromedp remembers each frame that it hears of, and a page may have any number.
	if m := frameHead.FindSubmatch(head); m != nil && !f.isPage(string(m[1])) {
		return 0
	}
	return f.maxEvent
}

// allowed returns what is passed on of a message: itself, an error in its place, or nothing.
func (m *message) allowed() *message {
	if m.size <= m.most {
		return m
	}

	head := answerHead.FindSubmatch(m.data)
	if head == nil {
		return new(message)
	}

	session := sessionTail.Find(m.end)
	if session == nil {
		session = []byte("}")
	}
	return &message{data: fmt.Appendf(nil, `{"id":%s,"error":{"code":%d,"message":"the page has an answer of %d bytes, and may have %d"}%s`, head[1], tooLarge, m.size, m.most, session)}
}

// A relayed connection is that of Chromium to chromedp, with relay between them.
type relayed struct {
	out   *os.File // what Chromium writes comes out here
	in    *os.File // Chromium's end, closed here when Chromium has it
	ended sync.WaitGroup
}

// between puts relay between chromedp and a Chromium that is about to start: the file that
// Chromium would write to is replaced, and written to by relay. isPage is that of filter.
func between(cmd *exec.Cmd, isPage func(string) bool) (*relayed, error) {
	const writes = 1 // of the two files that Chromium gets; it reads calls from the other
	if len(cmd.ExtraFiles) != writes+1 {
		return nil, fmt.Errorf("chromedp gives Chromium %d files, and not two", len(cmd.ExtraFiles))
	}

	// chromedp closes its own when Chromium has started.
	fd, err := unix.FcntlInt(cmd.ExtraFiles[writes].Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("a pipe of Chromium cannot be used: %w", err)
	}
	to := os.NewFile(uintptr(fd), "pipe of chromedp")

	r := new(relayed)
	if r.out, r.in, err = os.Pipe(); err != nil {
		_ = to.Close()
		return nil, err
	}

	cmd.ExtraFiles[writes] = r.in
	cmd.Stdin = started(func() { _ = r.in.Close() })

	r.ended.Go(func() {
		defer to.Close()
		_ = filter{maxAnswer, maxEvent, isPage}.relay(to, r.out) // until either is gone
	})
	return r, nil
}

// close ends the relay. Chromium, and chromedp's use of it, have ended.
func (r *relayed) close() {
	if r == nil {
		return
	}
	_ = r.in.Close() // it is open if Chromium did not start
	_ = r.out.Close()
	r.ended.Wait()
}

// A started function is the empty standard input of a program. It is called when that is
// read, which is when the program has started.
type started func()

// Read implements io.Reader.
func (s started) Read([]byte) (int, error) {
	s()
	return 0, io.EOF
}

// Package files has the tools that find and read the files of one folder: glob, grep and
// read. Nothing outside of the folder is reached, whatever a path says, wherever a link
// leads, and whatever is exchanged meanwhile: each file is opened below the folder by
// os.Root, and is looked at after it was opened. Documents of known formats are read as
// text by the parsers of the registry.
//
// The package imports worker/tool, its policy, and the registry of internal/document.
package files

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/worker/tool"
	"github.com/coditect/mapreduce/worker/tool/internal/recent"
	"github.com/coditect/mapreduce/worker/tool/policy"
	"github.com/coditect/mapreduce/worker/tool/readable"
)

// Name is the name of the kit.
const Name = "files"

// Config says what the kit is made of.
type Config struct {
	Root    string             // The folder. Needed.
	Formats *document.Registry // Who reads documents. Needed.
	MaxFile int64              // Bytes of a file that is read. Defaults to 32 MiB.
	MaxWalk int                // Files and folders that one call looks at. Defaults to 100,000.
	MaxScan int64              // Bytes of texts that one grep looks through. Defaults to 256 MiB.
	// MaxCache is how many bytes of texts are kept for the next call that reads the same
	// files, for all units together. Defaults to 64 MiB.
	MaxCache int64
	Now      func() time.Time // Defaults to time.Now.
}

func (c Config) withDefaults() Config {
	c.MaxFile = cmp.Or(c.MaxFile, 32<<20)
	c.MaxWalk = cmp.Or(c.MaxWalk, 100_000)
	c.MaxScan = cmp.Or(c.MaxScan, 256<<20)
	c.MaxCache = cmp.Or(c.MaxCache, 64<<20)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Specs returns the tools of the kit.
func Specs() []tool.Spec {
	return []tool.Spec{
		{
			Name: "glob", Idempotent: true, Listing: json.RawMessage(`{"pattern":"**"}`),
			Description: "Lists the files of the folder whose paths match a pattern, sorted, with their sizes. " +
				"* stands for any characters of a name, ** for any folders. A pattern without / is matched against names at any depth.",
			Input: json.RawMessage(`{"type":"object","properties":{` +
				`"pattern":{"type":"string","description":"such as **/*.md or report-202?.pdf"},` +
				`"limit":{"type":"integer","minimum":1,"maximum":1000,"description":"most files to list; 200 if it is left out"}},` +
				`"required":["pattern"],"additionalProperties":false}`),
		},
		{
			Name: "grep", Idempotent: true, Timeout: time.Minute,
			Description: "Finds the lines of the files of the folder that match a regular expression (RE2 syntax), also in PDF, office and mail documents.",
			Input: json.RawMessage(`{"type":"object","properties":{` +
				`"pattern":{"type":"string","maxLength":1000,"description":"a regular expression"},` +
				`"glob":{"type":"string","description":"looks in files that match alone, such as *.md"},` +
				`"ignore_case":{"type":"boolean"},` +
				`"context":{"type":"integer","minimum":0,"maximum":10,"description":"lines to show before and after each; 1 if it is left out"},` +
				`"limit":{"type":"integer","minimum":1,"maximum":500,"description":"most lines that match; 50 if it is left out"}},` +
				`"required":["pattern"],"additionalProperties":false}`),
		},
		{
			Name: "read", Idempotent: true, Timeout: time.Minute, Address: "path",
			Description: "Reads a file of the folder as text, also PDF, office and mail documents. A long text is read in parts: start says where to go on.",
			Input: json.RawMessage(`{"type":"object","properties":{` +
				`"path":{"type":"string","description":"relative to the folder, as glob lists it"},` +
				`"start":{"type":"integer","minimum":0,"description":"the character to begin at; 0 if it is left out"}},` +
				`"required":["path"],"additionalProperties":false}`),
		},
	}
}

// A Kit is the tools of a folder.
type Kit struct {
	config Config
	root   *os.Root
	texts  *recent.Cache[string, *fileText]
	slots  chan struct{} // holds an element for each file that is being read
}

var _ tool.Kit = (*Kit)(nil)

// New returns the kit of a folder, which stays the same folder if another one gets its name.
func New(c Config) (*Kit, error) {
	c = c.withDefaults()
	root, err := os.OpenRoot(c.Root)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Root, readable.CauseOf(err))
	}
	return &Kit{config: c, root: root, texts: recent.New[string, *fileText](c.MaxCache), slots: make(chan struct{}, max(4, 2*runtime.GOMAXPROCS(0)))}, nil
}

// Name implements tool.Kit.
func (*Kit) Name() string { return Name }

// Tools implements tool.Kit.
func (*Kit) Tools() []tool.Spec { return Specs() }

// Open implements tool.Kit. The sessions of units have nothing of their own.
func (k *Kit) Open(context.Context) (tool.Session, error) { return session{k}, nil }

// Close implements tool.Kit.
func (k *Kit) Close() error { return k.root.Close() }

type session struct{ kit *Kit }

// Close implements tool.Session.
func (session) Close() error { return nil }

// Call implements tool.Session.
func (s session) Call(ctx context.Context, name string, input json.RawMessage) (*tool.Result, error) {
	switch name {
	case "glob":
		return s.kit.runGlob(ctx, input)
	case "grep":
		return s.kit.runGrep(ctx, input)
	case "read":
		return s.kit.read(ctx, input)
	}
	return nil, fmt.Errorf("%w: %s", tool.ErrNoTool, name)
}

// read runs the tool of this name.
func (k *Kit) read(ctx context.Context, input json.RawMessage) (*tool.Result, error) {
	var in struct {
		Path  string `json:"path"`
		Start int    `json:"start"`
	}
	if err := tool.DecodeInput(input, &in); err != nil {
		return nil, err
	}

	name, err := policy.CheckPath(in.Path)
	if err != nil {
		return nil, err
	}
	t, err := k.readText(ctx, name)
	if err != nil {
		return nil, err
	}

	w, err := tool.ShowFrom(t.text, in.Start, tool.DefaultOutput)
	if err != nil {
		return nil, err
	}

	note := fmt.Sprintf("%s: %s", name, w)
	if t.cut > 0 {
		note += fmt.Sprintf("\nThe file is longer: %d bytes at its end cannot be read.", t.cut)
	}

	return &tool.Result{Text: note, Evidence: []tool.Evidence{k.evidence(name, t, w.Range)}, Cut: t.cut}, nil
}

// evidence returns what may be cited of a file.
func (k *Kit) evidence(name string, t *fileText, shown ...tool.Range) tool.Evidence {
	return tool.Evidence{
		URI: name, Title: t.title, Media: t.media, Retrieved: k.config.Now().UTC(), Text: t.text, Shown: shown,
		Metadata: map[string]string{"modified": t.modified.UTC().Format(time.RFC3339)},
	}
}

// A fileText is the text of a file as it was at a time. It does not change.
type fileText struct {
	text     string
	title    string // "" if it names none
	cut      int64  // bytes at the end that were left out
	media    string
	size     int64
	modified time.Time
}

// readText returns the text of a file.
func (k *Kit) readText(ctx context.Context, name string) (*fileText, error) {
	select {
	case k.slots <- struct{}{}:
		defer func() { <-k.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}

	f, info, err := k.openFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()

	// A file with the same size and time is taken for the same.
	if t, kept := k.texts.Find(name); kept && t.size == info.Size() && t.modified.Equal(info.ModTime()) {
		return t, nil
	}
	if info.Size() > k.config.MaxFile {
		return nil, fmt.Errorf("%s has %d bytes, and files of at most %d are read", name, info.Size(), k.config.MaxFile)
	}

	read, err := readable.Read(ctx, k.config.Formats, document.Input{Name: name, Content: &bounded{ctx: ctx, from: f, left: k.config.MaxFile}})
	if err != nil {
		return nil, fmt.Errorf("%s %w", name, err)
	}

	t := &fileText{text: read.Text, title: read.Title, cut: read.Cut, media: read.Media, size: info.Size(), modified: info.ModTime()}
	k.texts.Keep(name, t, int64(len(t.text)))
	return t, nil
}

// openFile opens a regular file below the root. Nothing happens to anything else that has
// its name: it is looked at before it is opened, as a device may act when it is opened, and
// afterwards, as it may have been exchanged. A FIFO that nobody writes to makes no call wait.
func (k *Kit) openFile(name string) (*os.File, fs.FileInfo, error) {
	info, err := k.root.Stat(name)
	if err != nil {
		return nil, nil, refusedOr(name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, notRegular(name, info)
	}

	// O_NONBLOCK: opening a FIFO that nobody writes to must not wait.
	f, err := k.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, refusedOr(name, err)
	}

	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = notRegular(name, info)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// notRegular is the error for what is no file that could be read.
func notRegular(name string, info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsDir():
		return fmt.Errorf("%s is a folder; glob lists its files", name)
	case mode&fs.ModeNamedPipe != 0:
		return &tool.Refused{What: "the path " + name, Why: "it is a pipe, and only files are read"}
	case mode&fs.ModeSocket != 0:
		return &tool.Refused{What: "the path " + name, Why: "it is a socket, and only files are read"}
	}
	return &tool.Refused{What: "the path " + name, Why: "it is a device, and only files are read"}
}

// refusedOr returns a *tool.Refused for a path that leads out of the root, and what is wrong
// with any other, without the path of the root.
func refusedOr(name string, err error) error {
	cause := readable.CauseOf(err)
	if strings.Contains(cause.Error(), "escapes") { // os has no name for this error
		return &tool.Refused{What: "the path " + name, Why: "a link in it leads out of the root of the tool"}
	}
	return fmt.Errorf("%s: %w", name, cause)
}

// A bounded reader ends with an error behind its bound, as a file may grow while it is read,
// and when ctx ends.
type bounded struct {
	ctx  context.Context
	from io.Reader
	left int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.ctx.Err() != nil {
		return 0, context.Cause(b.ctx)
	}

	if b.left <= 0 {
		var one [1]byte
		if n, err := b.from.Read(one[:]); n == 0 {
			return 0, err
		}
		return 0, errors.New("the file grows while it is read")
	}

	n, err := b.from.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

package files

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/coditect/mapreduce/api/folder"
	"github.com/coditect/mapreduce/api/shorten"

	"github.com/coditect/mapreduce/worker/tool"
	"github.com/coditect/mapreduce/worker/tool/policy"
)

// An entry is a file that a walk has found.
type entry struct {
	name string // path below the root, with slashes
	size int64
}

// errWalkBound ends a walk that has looked at as much as one call may.
var errWalkBound = errors.New("the folder has more files than one call looks at")

// walk yields the files of the folder whose paths match a pattern, sorted within their
// folders. It passes over hidden files and folders, over what is no file, and over links
// to folders, so that it ends. A last error is errWalkBound, or that of ctx.
func (k *Kit) walk(ctx context.Context, glob folder.Glob) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		left := k.config.MaxWalk
		var visit func(dir string) bool
		visit = func(dir string) bool {
			names, err := k.readFolder(ctx, dir, &left)
			for _, d := range names {
				name := path.Join(dir, d.Name())
				if d.IsDir() {
					if !visit(name) {
						return false
					}
					continue
				}

				if !glob.Match(name) {
					continue
				}

				info, err := k.root.Stat(name)
				if err == nil && info.Mode().IsRegular() && !yield(entry{name, info.Size()}, nil) {
					return false
				}
			}

			// The files that were found before the error come first.
			if err != nil {
				yield(entry{}, err)
			}
			return err == nil
		}

		visit(".")
	}
}

// readFolder returns what is in a folder, sorted, as far as left allows. A folder that
// cannot be read, or is none any more, is empty.
func (k *Kit) readFolder(ctx context.Context, dir string, left *int) ([]fs.DirEntry, error) {
	f, err := k.root.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil //nolint:nilerr // what cannot be read is passed over
	}
	defer f.Close()

	var all []fs.DirEntry
	for {
		some, err := f.ReadDir(1024)
		for _, d := range some {
			if *left--; *left < 0 {
				err = errWalkBound
				break
			}
			if checked, refused := policy.CheckPath(path.Join(dir, d.Name())); refused == nil && checked != "." {
				all = append(all, d)
			}
		}

		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err == nil:
			continue
		case !errors.Is(err, errWalkBound):
			err = nil // io.EOF, or a folder that has gone
		}

		slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		return all, err
	}
}

// runGlob runs the tool of this name.
func (k *Kit) runGlob(ctx context.Context, input json.RawMessage) (*tool.Result, error) {
	var in struct {
		Pattern string `json:"pattern"`
		Limit   int    `json:"limit"`
	}
	if err := tool.DecodeInput(input, &in); err != nil {
		return nil, err
	}
	glob, err := parseGlob(in.Pattern)
	if err != nil {
		return nil, err
	}

	limit := min(max(cmp.Or(in.Limit, 200), 1), 1000)
	var out strings.Builder
	found, more := 0, ""
	var links []tool.Link
	for e, err := range k.walk(ctx, glob) {
		line := fmt.Sprintf("%s\t%d bytes\n", e.name, e.size)
		switch {
		case errors.Is(err, errWalkBound):
			more = fmt.Sprintf("%v; there may be more.", err)
		case err != nil:
			return nil, err
		// Some room is kept for what more says.
		case found == limit, out.Len()+len(line) > tool.DefaultOutput-200:
			more = "There are more: give a narrower pattern."
		default:
			found++
			out.WriteString(line)
			links = append(links, tool.Link{Text: e.name, Address: e.name})
		}

		if more != "" {
			break
		}
	}

	if found == 0 {
		return &tool.Result{Text: strings.TrimSpace("No file matches. " + more)}, nil
	}
	out.WriteString(more)
	return &tool.Result{Text: strings.TrimSpace(out.String()), Links: links}, nil
}

// parseGlob reads a pattern of paths. One that could only match outside of the folder is
// refused like a path.
func parseGlob(pattern string) (folder.Glob, error) {
	if len(pattern) > policy.MaxPath {
		return folder.Glob{}, fmt.Errorf("the pattern has %d bytes, and at most %d are accepted", len(pattern), policy.MaxPath)
	}
	if strings.HasPrefix(pattern, "/") || slices.Contains(strings.Split(pattern, "/"), "..") {
		return folder.Glob{}, &tool.Refused{What: fmt.Sprintf("the pattern %.200q", pattern), Why: "patterns are relative to the root of the tool, and do not lead out of it"}
	}
	return folder.ParseGlob(pattern)
}

// maxQuoted is the most bytes of the text of a file that grep returns as evidence. A longer
// text is read first.
const maxQuoted = 256 << 10

// runGrep runs the tool of this name.
func (k *Kit) runGrep(ctx context.Context, input json.RawMessage) (*tool.Result, error) {
	in := struct {
		Pattern    string `json:"pattern"`
		Glob       string `json:"glob"`
		IgnoreCase bool   `json:"ignore_case"`
		Context    int    `json:"context"`
		Limit      int    `json:"limit"`
	}{Glob: "**", Context: 1}
	if err := tool.DecodeInput(input, &in); err != nil {
		return nil, err
	}

	if len(in.Pattern) > 1000 {
		return nil, errors.New("pattern: has more than 1000 bytes")
	}
	flags := ""
	if in.IgnoreCase {
		flags = "(?i)"
	}
	pattern, err := regexp.Compile(flags + in.Pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}

	glob, err := parseGlob(cmp.Or(in.Glob, "**"))
	if err != nil {
		return nil, err
	}

	g := &grepping{
		kit: k, pattern: pattern, around: min(max(in.Context, 0), 10), left: min(max(cmp.Or(in.Limit, 50), 1), 500),
		room: tool.DefaultOutput - 2048, quoted: tool.MaxEvidence, scan: k.config.MaxScan,
	}

	if err := g.files(ctx, glob); err != nil {
		return nil, err
	}
	return g.result(), nil
}

// A grepping is one grep under way.
type grepping struct {
	kit     *Kit
	pattern *regexp.Regexp
	around  int // lines before and after each

	left   int   // lines that may still match
	room   int   // bytes that may still be shown
	quoted int   // bytes of texts that may still be evidence
	scan   int64 // bytes of texts that may still be looked through

	matched, scanned int // files
	evidence         []tool.Evidence
	unquoted         strings.Builder // of files too long to be evidence
	unread           int             // files without a text that can be read
	unreadName       string          // of the first of them
	more             string          // why it ended early
}

// files looks through the files that match a pattern.
func (g *grepping) files(ctx context.Context, glob folder.Glob) error {
	for e, err := range g.kit.walk(ctx, glob) {
		switch {
		case errors.Is(err, errWalkBound):
			g.more = err.Error()
		case err != nil:
			return err
		case g.left == 0 || g.room <= 0:
			g.more = "there are more files to look through"
		case g.scan < e.size:
			g.more = fmt.Sprintf("one call looks through %d bytes of files", g.kit.config.MaxScan)
		}

		if g.more != "" {
			return nil
		}

		t, err := g.kit.readText(ctx, e.name)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			if g.unread++; g.unread == 1 {
				g.unreadName = e.name
			}
			continue
		}

		g.scanned++
		// A text may be longer than its file, which may be packed.
		g.scan -= max(e.size, int64(len(t.text)))
		if g.text(ctx, e.name, t); ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// maxSegment is the most bytes that are matched at a time. The time for one is bounded, and
// between two the end of the call is looked for.
const maxSegment = 32 << 10

// segmentEnd returns the end of the line that begins at a byte, or of a part of it.
func segmentEnd(text string, at int) int {
	if end := strings.IndexByte(text[at:min(len(text), at+maxSegment)], '\n'); end >= 0 {
		return at + end
	}
	return shorten.Boundary(text, at+maxSegment)
}

// text looks through the text of a file, line by line.
func (g *grepping) text(ctx context.Context, name string, t *fileText) {
	var shown []tool.Range
	for at := 0; at < len(t.text) && g.left > 0 && g.room > 0 && ctx.Err() == nil; {
		end := segmentEnd(t.text, at)
		hit := g.pattern.FindStringIndex(t.text[at:end])
		begin := at
		at = end + 1
		if hit == nil {
			continue
		}

		line := lineAround(t.text, begin+hit[0], g.around)
		g.left--

		// Ranges that meet become one, and what both show counts once.
		if n := len(shown); n > 0 && line.Start <= shown[n-1].End+1 {
			g.room -= max(0, line.End-shown[n-1].End)
			shown[n-1].End = max(line.End, shown[n-1].End)
		} else {
			g.room -= line.End - line.Start
			shown = append(shown, line)
		}
	}

	if len(shown) == 0 {
		return
	}

	g.matched++
	if len(t.text) <= maxQuoted && len(t.text) <= g.quoted {
		g.quoted -= len(t.text)
		g.evidence = append(g.evidence, g.kit.evidence(name, t, shown...))
		return
	}

	for _, s := range shown {
		fmt.Fprintf(&g.unquoted, "%s, line %d (read it to cite it):\n%s\n", name, 1+strings.Count(t.text[:s.Start], "\n"), strings.TrimRight(t.text[s.Start:s.End], "\n"))
	}
}

// maxLine is the most bytes of a line that are shown.
const maxLine = 1000

// lineAround returns the line at a byte with so many lines before and after it, cut where
// lines are long.
func lineAround(text string, at, around int) tool.Range {
	r := tool.Range{Start: at, End: at}

	// Upwards: each round finds the start of one more line.
	for i := 0; ; i++ {
		r.Start = 1 + strings.LastIndexByte(text[:r.Start], '\n')
		if i == around || r.Start == 0 {
			break
		}
		r.Start--
	}

	// Downwards in the same way.
	for i := 0; ; i++ {
		next := strings.IndexByte(text[r.End:], '\n')
		if next < 0 {
			r.End = len(text)
			break
		}
		r.End += next
		if i == around {
			break
		}
		r.End++
	}

	if at-r.Start > maxLine {
		r.Start = shorten.Boundary(text, at-maxLine)
	}
	if r.End-at > maxLine {
		r.End = shorten.Boundary(text, at+maxLine)
	}
	return r
}

// result returns what was found.
func (g *grepping) result() *tool.Result {
	var out strings.Builder
	fmt.Fprintf(&out, "%d of the %d files that were looked through have lines that match.\n", g.matched, g.scanned)
	if g.more != "" {
		fmt.Fprintf(&out, "This is not all: %s. Give a narrower pattern or glob.\n", g.more)
	}
	if g.unread > 0 {
		fmt.Fprintf(&out, "%d files have no text that could be read, such as %s.\n", g.unread, g.unreadName)
	}

	text, cut := tool.CutText(g.unquoted.String(), tool.DefaultOutput-out.Len())
	_, _ = io.WriteString(&out, text) // never fails
	return &tool.Result{Text: strings.TrimSpace(out.String()), Evidence: g.evidence, Cut: cut}
}

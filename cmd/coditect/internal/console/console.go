// Package console is what commands read from and write to: the streams of the process, small
// files that flags name, data as text or JSON, tables, the progress of a job, and text that is
// safe to show on a terminal.
package console

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A Console is what a command reads from and writes to.
type Console struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer // without control characters once the command line runs
	Raw            io.Writer // Stdout as it is; see Data
	StdoutTerminal bool      // Stdout is a terminal
	Screen         io.Writer // Stderr as it is, for the progress meter
	Terminal       bool      // Stderr is one
	Width          func() int
	Format         Format // of printed data; set by a flag
}

// Data returns where to print data for other programs, byte by byte. A terminal gets no
// control characters.
func (c *Console) Data() io.Writer {
	if c.StdoutTerminal {
		return c.Stdout
	}
	return c.Raw
}

const timeLayout = "2006-01-02T15:04:05Z"

// PrintData prints v as JSON, or calls inText to print text.
func (c *Console) PrintData(v any, inText func()) error {
	if c.Format != JSON {
		inText()
		return nil
	}
	e := json.NewEncoder(c.Stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// PrintLine prints v as JSON on one line, or calls inText to print text.
func (c *Console) PrintLine(v any, inText func()) error {
	if c.Format != JSON {
		inText()
		return nil
	}
	e := json.NewEncoder(c.Stdout)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// PrintTable prints rows below a header.
func (c *Console) PrintTable(header string, rows func(row func(cells ...any))) {
	w := tabwriter.NewWriter(c.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, strings.ReplaceAll(header, " ", "\t"))

	rows(func(cells ...any) {
		for i, c := range cells {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, VisibleText(fmt.Sprint(c)))
		}
		fmt.Fprintln(w)
	})

	_ = w.Flush() // nobody reads an error about the terminal
}

// VisibleText returns s on one line, without control characters for a terminal.
func VisibleText(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\r':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), !unicode.IsPrint(r) && !unicode.IsSpace(r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// FormatTime returns a time as all commands show it.
func FormatTime(t time.Time) string { return t.UTC().Format(timeLayout) }

// PrintNextPage prints the flag that shows the next page.
func (c *Console) PrintNextPage(token string) {
	if token != "" {
		fmt.Fprintf(c.Stderr, "there are more: --page-token %s\n", token)
	}
}

// ProgressMeter returns a meter that shows progress on standard error.
func (c *Console) ProgressMeter() *Meter {
	return NewMeter(MeterConfig{Out: c.Screen, Terminal: c.Terminal, Width: c.Width})
}

// NewLogger returns a logger of warnings without times, which do not matter on a
// terminal.
func NewLogger(m *Meter) *slog.Logger {
	return slog.New(slog.NewTextHandler(m, &slog.HandlerOptions{
		Level: slog.LevelWarn,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// offeredWords is the annotation of a flag with the words that a shell completes it by.
const offeredWords = "coditect_offered_words"

// OfferWords makes a shell complete a flag of cmd, which must exist, by words.
func OfferWords(cmd *cobra.Command, flag string, words ...string) {
	f := cmd.Flag(flag)

	if f.Annotations == nil {
		f.Annotations = make(map[string][]string, 1)
	}
	f.Annotations[offeredWords] = words
}

// OfferedWords returns the words that complete a flag.
func OfferedWords(f *pflag.Flag) []string { return f.Annotations[offeredWords] }

// ShellQuote returns a word as a shell takes it.
func ShellQuote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:@%+=,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

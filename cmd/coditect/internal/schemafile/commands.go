// Package schemafile has the commands that help to write a schema: one tries it on
// documents, another proposes one for them, and the third prints their text.
package schemafile

import (
	"bufio"
	"bytes"
	"context"
	"iter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/input"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
	"github.com/coditect/mapreduce/cmd/coditect/internal/runners"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/text/layout"
)

// commands makes the commands of this group.
type commands struct{ *program.Program }

// Command returns the command schema with those below it.
func Command(p *program.Program) *cobra.Command {
	c := &commands{p}
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Check a schema and try it on documents, or propose one",
		Example: `  coditect mapreduce schema check schema.yaml --on docs
  coditect mapreduce schema infer docs > schema.yaml`,
	}
	cmd.AddCommand(c.checkCommand(), c.inferCommand())
	return cmd
}

// inputFlags say which documents to read.
type inputFlags struct {
	include, exclude []string
	followLinks      bool
	encoding         string
	sample           int
}

func (i *inputFlags) addFlags(f *pflag.FlagSet, r *runners.Runners) {
	r.Documents.AddFlags(f)
	f.StringArrayVar(&i.include, "include", nil, "`glob` of the files to read in folders; may be repeated")
	f.StringArrayVar(&i.exclude, "exclude", nil, "`glob` of files and folders to ignore; may be repeated")
	f.BoolVar(&i.followLinks, "follow-symlinks", false, "follow links in folders to files outside of them")
	f.StringVar(&i.encoding, "encoding", "", "`name` of the encoding of plain text documents, such as windows-1252 (default: detected)")
	f.IntVar(&i.sample, "sample", 0, "read only a sample of `N` documents; 0 reads all")
}

// A text is a document that was read; skip says why it has no text.
type text struct {
	name, content, skip string
	layout              layout.Layout
	notes               []string
}

// texts yields the documents of paths as text. Documents that workers parse are
// parsed here.
func (c *commands) texts(ctx context.Context, paths []string, flags *inputFlags) (iter.Seq2[text, error], error) {
	formats, err := c.Runners.DocumentFormats()
	if err != nil {
		return nil, err
	}

	config := input.Config{
		Formats: formats, Inputs: paths, Include: flags.include, Exclude: flags.exclude, FollowLinks: flags.followLinks,
		Encoding: flags.encoding, Sample: flags.sample,
		Stdin: bufio.NewReaderSize(console.NewInterruptibleReader(ctx, c.Stdin), 64<<10),
	}

	if err := input.Check(ctx, config); err != nil {
		return nil, err
	}

	// Documents are read one by one, as the caller takes them.
	return func(yield func(text, error) bool) {
		for d, err := range input.Documents(ctx, config) {
			if err != nil {
				yield(text{}, err)
				return
			}
			if !yield(parse(ctx, formats, d), nil) {
				return
			}
		}
	}, nil
}

// parse returns the text of a document.
func parse(ctx context.Context, formats *document.Registry, d *mapreduce.Document) text {
	t := text{name: string(d.ID), content: string(d.Content), skip: d.Skip}
	kind, err := formats.Detect(t.name, d.Content, d.MediaType)
	format, known := formats.Format(kind)
	if t.skip != "" || err != nil || !known || format.Plain {
		return t
	}

	parsed, err := formats.Parse(ctx, document.Input{Name: t.name, MediaType: d.MediaType, Content: bytes.NewReader(d.Content)})
	if err != nil {
		return text{name: t.name, skip: err.Error()}
	}

	t.content, t.layout, t.notes = parsed.Text, parsed.Layout, parsed.Notes
	return t
}

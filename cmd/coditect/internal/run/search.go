package run

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/worker/tool/search"
)

// A searchResult is what search prints.
type searchResult struct {
	Query  string        `json:"query"`
	Stores []storeResult `json:"stores"`
}

// A storeResult is what one store has.
type storeResult struct {
	Store    string          `json:"store"`
	Passages []passageResult `json:"passages"`
	Note     string          `json:"note,omitempty"`
	Error    string          `json:"error,omitempty"`
}

// A passageResult is a passage with its place: half-open ranges of bytes and of characters of
// the text of its document.
type passageResult struct {
	Document  string  `json:"document"`
	Title     string  `json:"title,omitempty"`
	ByteStart int     `json:"byte_start"`
	ByteEnd   int     `json:"byte_end"`
	Start     int     `json:"start"`
	End       int     `json:"end"`
	Score     float64 `json:"score"`
	Quote     string  `json:"quote"`
}

func (cmds *commands) searchCommand() *cobra.Command {
	var topK int
	cmd := &cobra.Command{
		Use:   "search QUERY --search-store NAME=DIR...",
		Short: "Show the passages that search_local finds in folders of documents",
		Long: `Search shows what agents with the tool search_local find for a query. The query is a
question or a few words; it has no operators. Each folder has an index, which is made once
and kept. Later only files that were added, changed or deleted are read.`,
		Example: `  coditect mapreduce search "Who regulates banks?" --search-store papers=papers
  coditect mapreduce search heron --search-store papers=papers --search-store notes=notes --top-k 1 -o json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return cmds.search(cmd.Context(), search.Query{Text: strings.Join(args, " "), TopK: topK})
		},
	}

	cmd.Flags().IntVar(&topK, "top-k", search.DefaultTopK, "number of passages of each folder")
	cmds.Runners.Documents.AddFlags(cmd.Flags())
	cmds.Runners.Tools.AddSearchFlags(cmd.Flags())
	return cmd
}

func (cmds *commands) search(ctx context.Context, q search.Query) (err error) {
	if q.TopK < 1 || q.TopK > search.MaxTopK {
		return exit.UsageError("--top-k: must be from 1 to %d", search.MaxTopK)
	}

	cmds.Runners.Note = func(message string) { fmt.Fprintf(cmds.Stderr, "note: %s\n", message) }
	kit, err := cmds.Runners.OpenSearch()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kit.Close()) }()
	stores, err := kit.Search(ctx, q)
	if err != nil {
		return exit.RefusedError("%w", err)
	}

	out := searchResult{Query: q.Text, Stores: []storeResult{}}
	for _, s := range stores {
		r := storeResult{Store: s.Store, Passages: []passageResult{}, Note: s.Note}
		// One store that fails does not hide what the others found.
		if s.Err != nil {
			r.Error = s.Err.Error()
			err = errors.Join(err, s.Err)
		}
		for _, h := range s.Hits {
			r.Passages = append(r.Passages, passageResult{h.Document, h.Title, h.Start, h.End, h.CharStart, h.CharEnd, h.Score, h.Quote})
		}
		out.Stores = append(out.Stores, r)
	}

	return errors.Join(err, cmds.PrintData(out, func() { cmds.printPassages(out) }))
}

func (cmds *commands) printPassages(out searchResult) {
	for _, s := range out.Stores {
		if len(s.Passages) == 0 && s.Error == "" {
			fmt.Fprintf(cmds.Stdout, "%s: no passage has any of these words\n", s.Store)
		}
		if s.Note != "" {
			fmt.Fprintln(cmds.Stderr, s.Note)
		}

		for _, p := range s.Passages {
			fmt.Fprintf(cmds.Stdout, "%s: %s, characters %d to %d\n", s.Store, p.Document, p.Start, p.End)
			for line := range strings.SplitSeq(p.Quote, "\n") {
				fmt.Fprintln(cmds.Stdout, strings.TrimRight("    "+strings.TrimSpace(line), " "))
			}
		}
	}
}

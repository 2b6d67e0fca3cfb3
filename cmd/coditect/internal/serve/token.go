package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/api/auth"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
)

// tokenCommand returns the command that makes a token.
func tokenCommand(p *program.Program) *cobra.Command {
	var file string
	var days int
	cmd := &cobra.Command{
		Use:   "token NAME --output FILE",
		Short: "Make a token, and print its line for a token file",
		Long: `Token makes a random token and writes it to a file that only its owner can read. It prints
a line with the hash of the token, for the file of ` + "`coditect serve --tokens`" + `. In a policy
the holder of the token is token:NAME.`,
		Example: `  coditect certs token ci --output ci.token >> tokens.txt
  coditect mapreduce list --server localhost:7600 --tls-ca certs/ca.pem --token-file ci.token`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return makeToken(p, args[0], file, days) },
	}

	cmd.Flags().StringVar(&file, "output", "", "new `file` for the token")
	cmd.Flags().IntVar(&days, "days", 0, "`days` until the token expires; 0 is never")
	return cmd
}

func makeToken(p *program.Program, name, file string, days int) error {
	switch {
	case file == "":
		return exit.UsageError("--output is missing: the file for the token")
	case days < 0:
		return exit.UsageError("--days: must not be negative")
	}

	var expires time.Time
	if days > 0 {
		expires = time.Now().Add(time.Duration(days) * 24 * time.Hour)
	}

	secret, line, err := auth.NewToken(name, expires)
	if err != nil {
		return exit.UsageError("%w", err)
	}

	// A file that is there may hold a token in use.
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return exit.RefusedError("--output: %s is there already; another token needs another file", file)
	} else if err != nil {
		return exit.RefusedError("--output: %w", err)
	}

	_, err = fmt.Fprintln(f, secret)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}

	fmt.Fprintln(p.Stdout, line)
	return nil
}

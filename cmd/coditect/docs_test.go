package main_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/pflag"

	main "github.com/coditect/mapreduce/cmd/coditect"
	"github.com/coditect/mapreduce/internal/dev/testenv"
)

// TestDocsOfTools runs what docs/tools.md shows, and compares the output with what it shows. A
// file that is shown by cat is made before.
func TestDocsOfTools(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	text, err := os.ReadFile("../../docs/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	var script, files strings.Builder
	script.WriteString("env XDG_CACHE_HOME=$WORK/cache\n")
	n := 0
	for i, block := range strings.Split(string(text), "```") {
		shown, ok := strings.CutPrefix(block, "console\n")
		if i%2 == 0 || !ok {
			continue
		}
		for _, one := range strings.Split("\n"+shown, "\n$ ")[1:] {
			command, output, _ := strings.Cut(one, "\n")
			output = strings.TrimSuffix(output, "\n") + "\n"
			if name, ok := strings.CutPrefix(command, "cat "); ok {
				fmt.Fprintf(&files, "-- %s --\n%s", name, output)
				continue
			}
			n++
			fmt.Fprintf(&script, "exec %s\ncmp stdout want-%d\n", strings.ReplaceAll(command, `"`, `'`), n)
			fmt.Fprintf(&files, "-- want-%d --\n%s", n, output)
		}
	}
	if n == 0 {
		t.Fatal("docs/tools.md shows no command")
	}
	path := filepath.Join(t.TempDir(), "docs.txtar")
	if err := os.WriteFile(path, []byte(script.String()+files.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{Files: []string{path}, Setup: func(e *testscript.Env) error {
		e.Setenv("HOME", e.WorkDir)
		return nil
	}})
}

// A shownCommand is a command line that a document shows.
type shownCommand struct {
	where  string // the file
	words  []string
	inline bool // in a sentence, where values may be left out
}

// TestCommandsInDocsExist checks that each command line in the documents has commands,
// flags and arguments that exist.
func TestCommandsInDocsExist(t *testing.T) {
	commands := commandsInDocs(t)
	if len(commands) < 80 {
		t.Errorf("found only %d command lines", len(commands))
	}
	for _, c := range commands {
		err := main.CheckCommandLine(c.words)
		if c.inline && (as[*pflag.ValueRequiredError](err) || as[*pflag.InvalidValueError](err)) {
			continue // as in `run --budget N`
		}
		if err != nil {
			t.Errorf("%s: coditect %s: %v", c.where, strings.Join(c.words, " "), err)
		}
	}
}

func as[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// commandsInDocs returns the command lines of all documents.
func commandsInDocs(t *testing.T) (all []shownCommand) {
	files, err := filepath.Glob("../../docs/*.md")
	for _, more := range []string{"../../*.md", "../../examples/*/README.md", "../../deploy/*/README.md"} {
		some, e := filepath.Glob(more)
		files, err = append(files, some...), errors.Join(err, e)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if filepath.Base(file) == "CHANGELOG.md" { // it shows commands of earlier versions
			continue
		}
		fenced := false
		text := strings.ReplaceAll(readFile(t, file), "\\\n", "")
		for line := range strings.SplitSeq(text, "\n") {
			where := filepath.Base(file)
			switch {
			case strings.HasPrefix(strings.TrimSpace(line), "```"):
				fenced = !fenced
			case fenced:
				if words := commandWords(line); words != nil {
					all = append(all, shownCommand{where: where, words: words})
				}
			default:
				for _, code := range inlineCode.FindAllStringSubmatch(line, -1) {
					if words := inlineCommand(code[1]); words != nil {
						all = append(all, shownCommand{where: where, words: words, inline: true})
					}
				}
			}
		}
	}
	return all
}

var (
	inlineCode   = regexp.MustCompile("`([^`]+)`")
	commandStart = regexp.MustCompile(`(?:^|\s)(?:coditect|\./bin/coditect|bin/coditect|go run \./cmd/coditect)\s+([a-z].*)$`)
	shellWord    = regexp.MustCompile(`(?:"[^"]*"|'[^']*'|[^\s"'])+`)
	jobCommand   = regexp.MustCompile(`^(?:run|plan|resume|replay|pipelines|tools|search|status|watch|list|units|audit|result|pause|cancel|wake|delete|doctor|cache|eval|schema) `)
	ownCommand   = regexp.MustCompile(`^(?:serve|worker|certs|mcp) `)
)

// commandWords returns the words of a command line of the program, or nil of another line.
func commandWords(line string) []string {
	m := commandStart.FindStringSubmatch(line)
	if m == nil {
		return nil
	}
	var words []string
	for _, word := range shellWord.FindAllString(m[1], -1) {
		if strings.ContainsAny(word[:1], "|>&#;)") {
			break
		}
		if word != "…" && word != "..." {
			words = append(words, strings.NewReplacer(`"`, "", "'", "").Replace(word))
		}
	}
	return words
}

// inlineCommand returns the words of a command in a sentence, or nil of other code. Only
// those with a flag are sure to be one.
func inlineCommand(code string) []string {
	switch {
	case strings.HasPrefix(code, "coditect "):
		return commandWords(code)
	case !strings.Contains(code, " --"):
		return nil
	case jobCommand.MatchString(code):
		return commandWords("coditect mapreduce " + code)
	case ownCommand.MatchString(code):
		return commandWords("coditect " + code)
	}
	return nil
}

package prose

import (
	"fmt"
	"slices"
	"strings"
)

// Module is the path of this project's module, with a slash behind it.
const Module = "github.com/coditect/mapreduce/"

// Layers says which package may import what: see layers.txt, which has its form.
type Layers struct {
	rules []rule
}

// A rule is a line of the list.
type rule struct {
	left, right packages
	operator    string // ->, -/> or <-
	why         string // the sentence above the line, or above the lines before it
}

// ReadLayers reads a list of rules. An error names the line.
func ReadLayers(list string) (*Layers, error) {
	l, why, fresh := new(Layers), "", true
	for n, line := range strings.Split(list, "\n") {
		line = strings.TrimSpace(line)
		comment, isComment := strings.CutPrefix(line, "#")
		switch {
		case line == "":
			fresh = true
			continue
		case isComment && fresh:
			why, fresh = strings.TrimSpace(comment), false
			continue
		case isComment:
			why += " " + strings.TrimSpace(comment)
			continue
		}

		fields := strings.Fields(line)
		at := slices.IndexFunc(fields, func(f string) bool { return f == "->" || f == "-/>" || f == "<-" })
		if at < 1 || at == len(fields)-1 {
			return nil, fmt.Errorf("line %d: %q is no rule: PACKAGES, then ->, -/> or <-, then PACKAGES", n+1, line)
		}
		l.rules = append(l.rules, rule{left: fields[:at], operator: fields[at], right: fields[at+1:], why: why})
	}
	return l, nil
}

// Refusal says why a package may not import another, or nothing if it may. Both are paths of
// imports, those of this project without its module; isTest says whether a test file does.
func (l *Layers) Refusal(from, imported string, isTest bool) string {
	if l.isForAll(imported) {
		return ""
	}

	ours := !strings.Contains(firstElement(imported), ".") && l.isOurs(imported)
	for _, r := range l.rules {
		refused := false
		switch r.operator {
		case "->":
			refused = !isTest && ours && from != imported && r.left.have(from) && !r.right.have(imported)
		case "-/>":
			refused = !isTest && r.left.have(from) && r.right.have(imported)
		case "<-":
			refused = r.left.have(imported) && !r.right.have(from) && !(isTest && slices.Contains(r.right, "tests"))
		}
		if refused {
			return r.why
		}
	}
	return ""
}

// isForAll reports whether a line lets all import a package.
func (l *Layers) isForAll(imported string) bool {
	return slices.ContainsFunc(l.rules, func(r rule) bool {
		return r.operator == "<-" && slices.Contains(r.right, "all") && r.left.have(imported)
	})
}

// Reason says why a package imports no more of this project than it may: the sentence above the
// last line with -> that holds for it. It is empty if no such line does.
func (l *Layers) Reason(of string) (why string) {
	for _, r := range l.rules {
		if r.operator == "->" && r.left.have(of) {
			why = r.why
		}
	}
	return why
}

// isOurs reports whether a path without a domain is of this project, not of the standard library.
func (l *Layers) isOurs(imported string) bool {
	return slices.Contains([]string{"api", "cmd", "deploy", "internal", "orchestrator", "proto", "store", "worker"}, firstElement(imported))
}

func firstElement(p string) string {
	first, _, _ := strings.Cut(p, "/")
	return first
}

// Unused returns the patterns of the list that stand for no package of this project: a package
// was renamed, or is gone. all are the packages that there are.
func (l *Layers) Unused(all []string) (patterns []string) {
	for _, r := range l.rules {
		for _, p := range slices.Concat(r.left, r.right) {
			p = strings.TrimPrefix(p, "!")
			if !l.isOurs(p) || slices.ContainsFunc(all, func(name string) bool { return packages{p}.have(name) }) {
				continue
			}
			patterns = append(patterns, p)
		}
	}
	return patterns
}

// packages are patterns of packages, those with a ! left out.
type packages []string

// have reports whether a package is one of p.
func (p packages) have(name string) bool {
	found := false
	for _, pattern := range p {
		without, isLeftOut := strings.CutPrefix(pattern, "!")
		if isLeftOut && matches(without, name) {
			return false
		}
		found = found || !isLeftOut && matches(pattern, name)
	}
	return found
}

// matches reports whether a pattern stands for a package.
func matches(pattern, name string) bool {
	base, isTree := strings.CutSuffix(pattern, "/...")
	if parent, isStep := strings.CutSuffix(base, "/*"); isStep {
		below, ok := strings.CutPrefix(name, parent+"/")
		if !ok {
			return false
		}
		return isTree || !strings.Contains(below, "/")
	}
	return name == base || isTree && strings.HasPrefix(name, base+"/")
}

package bench

import (
	"bytes"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// An entry is a name of a mapping in block style with all that stands below it: whole lines of a
// text.
type entry struct {
	from, to int // lines, from 0, half-open
	column   int // at which the name begins, from 0
	depth    int // how many steps of the path lead to it
}

// splice changes what stands at a path by writing anew the smallest entry that holds all of the
// change, and nothing else of the text.
func (d *draft) splice(root *yaml.Node, path []string, part string, fn func(*yaml.Node) error) error {
	lines := strings.SplitAfter(d.text, "\n")
	if find(root, path) == nil {
		return errGone
	}

	// An entry may only be written alone if nothing around it changes. Where the named part is not there yet,
	// it is put in front of another one, and the text of that stays.
	if part != "" {
		if done, err := d.spliceNew(root, lines, path, part, fn); done || err != nil {
			return err
		}
	}

	e, found := deepest(root, lines, path)
	if !found {
		return d.rewrite(lines, entry{0, len(lines), 0, 0}, path, fn, true)
	}
	return d.rewrite(lines, e, path, fn, false)
}

// spliceNew changes an object by one of its entries: it compares the object before and after, and
// writes only the entry of that name, wherever that is new, other or gone.
func (d *draft) spliceNew(root *yaml.Node, lines []string, path []string, part string, fn func(*yaml.Node) error) (done bool, err error) {
	object := find(root, path)
	if object.Kind != yaml.MappingNode || object.Style&yaml.FlowStyle != 0 || len(object.Content) == 0 || !isBlock(root, lines, path) {
		return false, nil
	}

	had := indexOf(object, part)
	before := names(object)
	if part == "properties" && had >= 0 {
		return d.insertProperty(lines, path, object.Content[had+1], fn, object)
	}

	var old entry
	if had >= 0 {
		if old, done = entryOf(lines, object.Content[had], len(path)+1); !done {
			return false, nil
		}
	}
	if err := fn(object); err != nil {
		return true, err
	}

	now := indexOf(object, part)
	switch {
	case had < 0 && now < 0:
		return true, nil
	case now < 0: // it is gone
		d.text = strings.Join(slices.Delete(lines, old.from, old.to), "")
		return true, nil
	}

	column := object.Content[0].Column - 1
	if had < 0 {
		column = columnOf(object, now)
	}
	written, err := writeEntry(object.Content[now], object.Content[now+1], column, indentOf(d.text))
	if err != nil {
		return true, err
	}
	if had >= 0 {
		d.text = strings.Join(slices.Replace(lines, old.from, old.to, ownLines(lines, old, written)...), "")
		return true, nil
	}

	// It stands in front of the entry that was next.
	next := object.Content[now+2]
	at, ok := entryOf(lines, next, len(path)+1)
	if !ok || !slices.Contains(before, next.Value) {
		return false, errText
	}
	d.text = strings.Join(slices.Insert(lines, at.from, written...), "")
	return true, nil
}

// insertProperty puts a new property among those of an object.
func (d *draft) insertProperty(lines []string, path []string, properties *yaml.Node, fn func(*yaml.Node) error, object *yaml.Node) (done bool, err error) {
	if properties.Kind != yaml.MappingNode || properties.Style&yaml.FlowStyle != 0 || len(properties.Content) == 0 {
		return false, nil
	}
	before := names(properties)
	if err := fn(object); err != nil {
		return true, err
	}

	for i := 0; i+1 < len(properties.Content); i += 2 {
		key := properties.Content[i]
		if slices.Contains(before, key.Value) {
			continue
		}
		column := properties.Content[(i+2)%len(properties.Content)].Column - 1
		written, err := writeEntry(key, properties.Content[i+1], column, indentOf(d.text))
		if err != nil {
			return true, err
		}
		behind, ok := entryOf(lines, properties.Content[i-2], len(path)+2)
		if !ok {
			return true, errText
		}
		if last := lines[behind.to-1]; !strings.HasSuffix(last, "\n") {
			lines[behind.to-1] = last + "\n"
		}
		d.text = strings.Join(slices.Insert(lines, behind.to, written...), "")
		return true, nil
	}
	return true, nil
}

func names(n *yaml.Node) []string {
	var all []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		all = append(all, n.Content[i].Value)
	}
	return all
}

// columnOf is the column of the names of a mapping in which one is new.
func columnOf(n *yaml.Node, fresh int) int {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if i != fresh && n.Content[i].Column > 0 {
			return n.Content[i].Column - 1
		}
	}
	return 0
}

// isBlock reports whether all that leads to a place is in block style.
func isBlock(root *yaml.Node, lines []string, path []string) bool {
	if len(path) == 0 {
		return true
	}
	e, found := deepest(root, lines, path)
	return found && e.depth == len(path)
}

// deepest returns the innermost entry on the way to a place whose lines are its own.
func deepest(root *yaml.Node, lines []string, path []string) (e entry, found bool) {
	n := root
	for i, step := range path {
		if n.Kind == yaml.SequenceNode {
			if n.Style&yaml.FlowStyle != 0 {
				return e, found
			}
			n = find(n, []string{step})
			continue
		}

		at := indexOf(n, step)
		if at < 0 || n.Style&yaml.FlowStyle != 0 {
			return e, found
		}
		one, ok := entryOf(lines, n.Content[at], i+1)
		if !ok {
			return e, found
		}

		e, found, n = one, true, n.Content[at+1]
	}
	return e, found
}

// entryOf returns the lines of an entry by its name, without the comments and blank lines behind it.
func entryOf(lines []string, key *yaml.Node, depth int) (entry, bool) {
	from, column := key.Line-1, key.Column-1
	if from < 0 || from >= len(lines) || column < 0 || column > len(lines[from]) {
		return entry{}, false
	}
	if before := lines[from][:column]; strings.Trim(before, " -") != "" {
		return entry{}, false // something else stands in its line
	}

	to := from + 1
	for to < len(lines) {
		text := strings.TrimSpace(lines[to])
		indent := len(lines[to]) - len(strings.TrimLeft(lines[to], " "))
		inList := indent == column && strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "---") && !strings.Contains(lines[from][:column], "-")
		if text != "" && !strings.HasPrefix(text, "#") && indent <= column && !inList {
			break
		}
		to++
	}
	for to > from+1 {
		if text := strings.TrimSpace(lines[to-1]); text != "" && !strings.HasPrefix(text, "#") {
			break
		}
		to--
	}
	return entry{from, to, column, depth}, true
}

// rewrite writes some lines anew: those of an entry, or all.
func (d *draft) rewrite(lines []string, e entry, path []string, fn func(*yaml.Node) error, whole bool) error {
	var text strings.Builder
	for i, line := range lines[e.from:e.to] {
		cut := min(e.column, len(line))
		if i > 0 {
			cut = min(cut, len(line)-len(strings.TrimLeft(line, " ")))
		}
		text.WriteString(line[cut:])
	}

	root, err := parse(text.String())
	if err != nil {
		return errText // it uses what stands elsewhere
	}
	below := path
	if !whole {
		below = append([]string{path[e.depth-1]}, path[e.depth:]...)
	}
	at := find(root, below)
	if at == nil {
		return errText
	}
	if err := fn(at); err != nil {
		return err
	}

	var written []string
	if whole {
		written, err = writeNode(root, 0, indentOf(d.text))
	} else {
		if d.name != "" {
			setName(root.Content[0], d.name)
			d.name = ""
		}
		written, err = writeEntry(root.Content[0], root.Content[1], e.column, indentOf(d.text))
		written = ownLines(lines, e, written)
	}
	if err != nil {
		return err
	}
	d.text = strings.Join(slices.Replace(slices.Clone(lines), e.from, e.to, written...), "")
	return nil
}

// ownLines puts in front of what was written what stood in front of it in its line, such as the
// mark of a list.
func ownLines(lines []string, e entry, written []string) []string {
	if len(written) > 0 {
		written[0] = lines[e.from][:e.column] + strings.TrimLeft(written[0], " ")
	}
	if last := len(written) - 1; last >= 0 && !strings.HasSuffix(lines[e.to-1], "\n") {
		written[last] = strings.TrimSuffix(written[last], "\n")
	}
	return written
}

// writeEntry writes an entry as lines that begin at a column.
func writeEntry(key, value *yaml.Node, column, indent int) ([]string, error) {
	return writeNode(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{key, value}}, column, indent)
}

func writeNode(n *yaml.Node, column, indent int) ([]string, error) {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(max(2, indent))
	if err := e.Encode(n); err != nil {
		return nil, errText
	}

	lines := strings.SplitAfter(out.String(), "\n")
	written := lines[:0]
	for _, line := range lines {
		if line == "" {
			continue
		}
		if strings.TrimSpace(line) != "" {
			line = strings.Repeat(" ", column) + line
		}
		written = append(written, line)
	}
	return written, nil
}

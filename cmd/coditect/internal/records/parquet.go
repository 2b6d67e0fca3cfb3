package records

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/coditect/mapreduce/api/schema"
)

// rowsAtOnce is how many rows are encoded together.
const rowsAtOnce = 1024

// A parquetWriter writes a row for each record. All columns are optional.
type parquetWriter struct {
	out     *parquet.GenericWriter[any]
	config  Config
	columns []column
	rows    []parquet.Row
	n       int // records so far
}

// A tableNode is the root of a schema whose columns keep their order; parquet.Group
// sorts them by name.
type tableNode struct {
	parquet.Group
	names []string
}

// Fields implements parquet.Node.
func (t tableNode) Fields() []parquet.Field {
	fields := t.Group.Fields()
	slices.SortFunc(fields, func(a, b parquet.Field) int {
		return slices.Index(t.names, a.Name()) - slices.Index(t.names, b.Name())
	})
	return fields
}

func (t *tableNode) add(name string, n parquet.Node) {
	t.names = append(t.names, name)
	t.Group[name] = n
}

func newParquet(out io.Writer, c Config) (*parquetWriter, error) {
	w := &parquetWriter{config: c, columns: columnsOf(c.Schema)}
	root := tableNode{Group: parquet.Group{}}
	root.add(sourcesColumn, parquet.Optional(parquet.List(parquet.Optional(parquet.String()))))
	if len(w.columns) == 0 {
		root.add(valueColumn, parquet.Optional(parquet.String()))
	}

	for _, col := range w.columns {
		// The name of a field may be that of a column with another's citation.
		if root.Group[col.name] != nil {
			return nil, sameName(col.name)
		}
		root.add(col.name, nodeOf(col))
		if !c.Citations {
			continue
		}
		for _, name := range columnsAbout(col) {
			root.add(col.name+"."+name, citationNode(name))
		}
	}

	if c.Seen {
		if root.Group[seenColumn] != nil {
			return nil, sameName(seenColumn)
		}
		root.add(seenColumn, parquet.Optional(parquet.JSON()))
	}

	w.out = parquet.NewGenericWriter[any](out, parquet.NewSchema("records", root), parquet.Compression(&parquet.Snappy),
		parquet.CreatedBy("coditect", "", ""))
	return w, nil
}

func sameName(name string) error {
	return fmt.Errorf("records: two columns would have the name %q; parquet needs others", name)
}

// nodeOf returns the type of a column.
func nodeOf(c column) parquet.Node {
	if c.isList() {
		return parquet.Optional(parquet.List(parquet.Optional(leafOf(c.property.Items))))
	}
	return parquet.Optional(leafOf(c.property))
}

// leafOf returns the type of a value. Values without a type, and lists and objects in
// lists, are JSON.
func leafOf(p *schema.Property) parquet.Node {
	switch {
	case p.Type == schema.Integer:
		return parquet.Int(64)
	case p.Type == schema.Number:
		return parquet.Leaf(parquet.DoubleType)
	case p.Type == schema.Boolean:
		return parquet.Leaf(parquet.BooleanType)
	case p.Type == schema.String && p.Format == schema.Date:
		return parquet.Date()
	case p.Type == schema.String:
		return parquet.String()
	}
	return parquet.JSON()
}

// citationNode returns the type of a column of citations.
func citationNode(name string) parquet.Node {
	switch name {
	case "_start", "_end":
		return parquet.Optional(parquet.Int(64))
	case "_confidence":
		return parquet.Optional(parquet.Leaf(parquet.DoubleType))
	}
	return parquet.Optional(parquet.String())
}

// The definition levels of optional columns: of a value, of an empty list, and of an
// element of a list.
const (
	levelValue   = 1
	levelEmpty   = 1
	levelElement = 3
)

// A rowBuilder makes the row of a record, column by column.
type rowBuilder struct {
	row  parquet.Row
	next int // column
}

// addValue adds a value, or null if it is the zero Value.
func (b *rowBuilder) addValue(v parquet.Value) {
	level := levelValue
	if v.IsNull() {
		level = 0
	}
	b.row = append(b.row, v.Level(0, level, b.next))
	b.next++
}

// addList adds a list, or null if it is nil.
func (b *rowBuilder) addList(list []parquet.Value) {
	switch {
	case list == nil:
		b.row = append(b.row, parquet.NullValue().Level(0, 0, b.next))
	case len(list) == 0:
		b.row = append(b.row, parquet.NullValue().Level(0, levelEmpty, b.next))
	}
	for i, v := range list {
		b.row = append(b.row, v.Level(min(i, 1), levelElement, b.next))
	}
	b.next++
}

// WriteRecord implements Writer.
func (w *parquetWriter) WriteRecord(r *Record) error {
	w.n++
	f, err := flatten(r)
	if err != nil {
		return err
	}

	b := &rowBuilder{}
	sources := make([]parquet.Value, 0, len(f.sources))
	for _, s := range f.sources {
		sources = append(sources, parquet.ValueOf(s))
	}
	b.addList(sources)

	// Without a schema, a record is one column of text.
	if len(w.columns) == 0 {
		if text, ok := textOf(r.JSON).(string); ok {
			b.addValue(parquet.ValueOf(text))
		} else {
			b.addValue(parquet.ValueOf(string(r.JSON)))
		}
	}

	for _, col := range w.columns {
		if err := addColumn(b, f, col); err != nil {
			return fmt.Errorf("record %d: %s: %w; the other formats can hold it", w.n, col.name, err)
		}
		if w.config.Citations {
			addCitation(b, f, col)
		}
	}

	if w.config.Seen {
		if err := addSeen(b, f); err != nil {
			return err
		}
	}

	if w.rows = append(w.rows, b.row); len(w.rows) < rowsAtOnce {
		return nil
	}
	return w.flush()
}

func (w *parquetWriter) flush() error {
	_, err := w.out.WriteRows(w.rows)
	w.rows = w.rows[:0]
	return err
}

func addColumn(b *rowBuilder, f *flat, col column) error {
	v := f.valueOf(col)
	if !col.isList() {
		value, err := valueAs(v, col.property)
		b.addValue(value)
		return err
	}

	// A value that is missing is null, while a list without elements is empty.
	if v == nil {
		b.addList(nil)
		return nil
	}

	list, ok := v.([]any)
	if !ok {
		return fmt.Errorf("%v is not a list", v)
	}

	values := make([]parquet.Value, 0, len(list))
	for _, item := range list {
		value, err := valueAs(item, col.property.Items)
		if err != nil {
			return err
		}
		values = append(values, value)
	}

	b.addList(values)
	return nil
}

// valueAs returns a value in the type of its column.
func valueAs(v any, p *schema.Property) (parquet.Value, error) {
	none := parquet.NullValue()
	if v == nil {
		return none, nil
	}

	switch node := leafOf(p); node.Type().Kind() {
	case parquet.Int64:
		if n, ok := v.(json.Number); ok {
			return wholeNumber(n)
		}
	case parquet.Double:
		if n, ok := v.(json.Number); ok {
			x, err := n.Float64()
			return parquet.ValueOf(x), err
		}
	case parquet.Boolean:
		if x, ok := v.(bool); ok {
			return parquet.ValueOf(x), nil
		}
	case parquet.Int32: // a date
		if s, ok := v.(string); ok {
			day, err := time.Parse(time.DateOnly, s)
			return parquet.ValueOf(int32(day.Unix() / (24 * 60 * 60))), err
		}
	default:
		if p.Type == schema.String {
			if s, ok := v.(string); ok {
				return parquet.ValueOf(s), nil
			}
			return none, fmt.Errorf("%v is not a text", v)
		}
		data, err := encode(v)
		return parquet.ValueOf(string(data)), err
	}

	return none, fmt.Errorf("%v is not of the type %s", v, p.Type)
}

// wholeNumber returns an integer, also one that is written as 12.0 or 1e3.
func wholeNumber(n json.Number) (parquet.Value, error) {
	i, err := n.Int64()
	if err == nil {
		return parquet.ValueOf(i), nil
	}
	x, err := n.Float64()
	if err == nil && x == math.Trunc(x) && math.Abs(x) < 1<<63 {
		return parquet.ValueOf(int64(x)), nil
	}
	return parquet.NullValue(), fmt.Errorf("%s is not an integer of 64 bits", n)
}

// addCitation adds the columns of the citation of a column.
func addCitation(b *rowBuilder, f *flat, col column) {
	if col.property.Hints.Derived {
		addDerived(b, f, col)
		return
	}

	c := f.citationOf(col)
	if c == nil {
		for range citationColumns {
			b.addValue(parquet.NullValue())
		}
		return
	}

	b.addValue(parquet.ValueOf(c.Quote))
	b.addValue(parquet.ValueOf(string(c.Document)))
	b.addValue(parquet.ValueOf(c.Start))
	b.addValue(parquet.ValueOf(c.End))
	b.addValue(parquet.ValueOf(c.Grade))
	b.addValue(parquet.ValueOf(f.confidence[col.name]))
}

// addSeen adds the column of values that models saw.
func addSeen(b *rowBuilder, f *flat) error {
	seen, err := f.seenJSON()
	if err != nil {
		return err
	}
	if seen == nil {
		b.addValue(parquet.NullValue())
	} else {
		b.addValue(parquet.ValueOf(string(seen)))
	}
	return nil
}

// addDerived adds the columns of what a derived column follows from.
func addDerived(b *rowBuilder, f *flat, col column) {
	d, ok := f.derived[col.name]
	if !ok {
		for range derivedColumns {
			b.addValue(parquet.NullValue())
		}
		return
	}

	formula, quotes := f.derivation(col)
	if d.Formula == nil {
		b.addValue(parquet.NullValue())
	} else {
		b.addValue(parquet.ValueOf(formula))
	}
	b.addValue(parquet.ValueOf(quotes))
	b.addValue(parquet.ValueOf(f.confidence[col.name]))
}

// Close implements Writer.
func (w *parquetWriter) Close() error {
	if err := w.flush(); err != nil {
		return err
	}
	return w.out.Close()
}

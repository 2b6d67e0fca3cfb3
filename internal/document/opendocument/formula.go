package opendocument

import (
	"encoding/xml"
	"errors"
	"path"
	"strings"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/equation"
	"github.com/coditect/mapreduce/internal/document/xmlread"
)

// readObject returns the text of an object that is a formula: what is in the element e, or
// the entry that it refers to. Other objects, such as charts, have none.
func (p *parser) readObject(e xml.StartElement) (string, error) {
	text, err := p.readFormula(xmlread.Attr(e, "href"))
	if err != nil {
		return "", err
	}

	err = p.xml.Each(func(e xml.StartElement) error {
		if e.Name.Local != "math" || text != "" {
			return p.xml.Skip()
		}
		text, err = equation.ReadMathML(p.xml, e)
		return err
	}, nil)

	// A few bytes may refer to a large formula, so the text is counted before it is written.
	if p.formulaBytes += int64(len(text)); p.formulaBytes > p.zip.Limits().Bytes {
		return "", document.Refuse("formulas of more than %d bytes (--document-bytes)", p.zip.Limits().Bytes)
	}
	return text, err
}

// readFormula returns the text of the formula that a reference leads to, if there is one. It
// is read once, however often it is referred to.
func (r *reader) readFormula(reference string) (string, error) {
	if reference == "" {
		return "", nil
	}

	name := strings.TrimPrefix(path.Join("/", reference, "content.xml"), "/")
	text, ok := r.formulas[name]
	if ok || name == "content.xml" || !r.zip.Has(name) {
		return text, nil
	}

	isFormula := false
	err := r.openRoot(name, func(d *xmlread.Decoder, root xml.StartElement) (err error) {
		if isFormula = root.Name.Local == "math"; isFormula {
			text, err = equation.ReadMathML(d, root)
		}
		return err
	})

	if !isFormula && errors.As(err, new(*document.RefusedError)) {
		err = nil // it is an object of another program
	}

	r.formulas[name] = text
	return text, err
}

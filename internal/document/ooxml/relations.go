package ooxml

import (
	"cmp"
	"encoding/xml"
	"path"
	"strings"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/xmlread"
	"github.com/coditect/mapreduce/internal/document/zipfile"
)

// A relation is what an entry refers to.
type relation struct{ kind, target string }

// relationsOf returns what an entry refers to within the file, by id.
func relationsOf(z *zipfile.Reader, name string) (map[string]relation, error) {
	folder, file := path.Split(name)
	rels := path.Join(folder, "_rels", file+".rels")
	found := map[string]relation{}
	if !z.Has(rels) {
		return found, nil
	}

	e, err := z.Open(rels)
	if err != nil {
		return nil, err
	}
	defer e.Close()

	d := xmlread.New(rels, e, z.Limits())
	return found, d.Document(func(xml.StartElement) error {
		return d.Each(func(e xml.StartElement) error {
			if xmlread.Attr(e, "TargetMode") != "External" {
				// Targets are relative to the folder of the entry, unless they begin with a
				// slash. Some programs write backslashes.
				target := strings.ReplaceAll(xmlread.Attr(e, "Target"), `\`, "/")
				if !strings.HasPrefix(target, "/") {
					target = path.Join(folder, target)
				}
				found[xmlread.Attr(e, "Id")] = relation{path.Base(xmlread.Attr(e, "Type")), strings.TrimPrefix(target, "/")}
			}
			return d.Skip()
		}, nil)
	})
}

// mainPart returns the name of the entry that the others belong to, which Office calls as usual says.
// Other programs may name it otherwise.
func mainPart(z *zipfile.Reader, usual string) (string, error) {
	// Relations that are damaged do no harm where the name says as much.
	ofFile, err := relationsOf(z, "")
	if err != nil && !z.Has(usual) {
		return "", err
	}

	main := partOf(z, ofFile, "officeDocument", usual)
	if !z.Has(main) {
		return "", document.Refuse("damaged: it lacks %s", usual)
	}

	return main, nil
}

// partOf returns the name of the entry of a kind among relations, or the usual one if they lead to none.
// A program that saved the file under other names may have left old entries under the usual ones.
func partOf(z *zipfile.Reader, relations map[string]relation, kind, usual string) string {
	// Relations have no order, and of several entries each reading has to take the same.
	found := ""
	for _, rel := range relations {
		switch {
		case rel.kind != kind || !z.Has(rel.target):
		case strings.EqualFold(rel.target, usual):
			return usual
		case found == "" || rel.target < found:
			found = rel.target
		}
	}

	return cmp.Or(found, usual)
}

package results

import (
	"context"
	_ "embed"
	"html/template"
)

//go:embed report.html.tmpl
var htmlText string

// htmlTemplate escapes text from documents and models according to its context.
var htmlTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"sources": sourcesOf,
	"sure":    confidenceOf,
	"columns": func() []string { return statisticsColumns },
	"add":     func(a, b int) int { return a + b },
}).Parse(htmlText))

// writeHTML writes report.html.
func (w *writer) writeHTML(context.Context) error {
	v, err := w.report.buildView()
	if err != nil {
		return err
	}
	return w.dir.writeFile("report.html", func(out *file) error { return htmlTemplate.Execute(out, v) })
}
